//! Runs controllers.

use crate::cli::ControllerArgs;

pub(crate) fn main(_args: ControllerArgs) -> anyhow::Result<()> {
    anyhow::bail!("")
}
