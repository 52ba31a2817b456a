//! What an object makes for itself in Kubernetes, beside its resource in OpenStack.

use super::{Flow, settled::uid_of};
use crate::{actuator::Actuator, parts::Chore, stop::Stop};

impl<A: Actuator> Flow<A> {
    /// What has to be done about the parts of an object, as the directory knows them.
    pub(super) fn chores(&self, object: &A::Kind) -> Result<Vec<Chore>, Stop> {
        let wanted = A::parts(object)?;
        let mut chores: Vec<Chore> = self.directory.surplus(&uid_of(object), &wanted);
        for part in wanted {
            let standing = self.directory.standing(&uid_of(object), &part.key);
            chores.extend(part.chore(standing)?);
        }
        Ok(chores)
    }

    /// Does what has to be done about the parts.
    pub(super) async fn carry_out(&self, object: &A::Kind, chores: &[Chore]) -> Result<(), Stop> {
        for chore in chores {
            chore.carry_out(self.cloud.kubernetes(), object).await?;
        }
        Ok(())
    }

    /// Removes all parts. They end by themselves.
    pub(super) async fn break_up(&self, object: &A::Kind) -> Result<(), Stop> {
        self.needs(object).await?;
        self.carry_out(object, &self.directory.surplus(&uid_of(object), &[])).await
    }
}
