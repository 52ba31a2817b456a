//! Where the files are that tests read.

use std::{env, path::PathBuf};

/// The folder of the crate whose tests run. Cargo tells it at every run: what was written into a test when it was built may be
/// another checkout, whose builds the same cache has.
pub fn crate_folder() -> PathBuf {
    let told = env::var_os("CARGO_MANIFEST_DIR");
    told.unwrap_or_else(|| panic!("CARGO_MANIFEST_DIR is not set: tests are run by cargo")).into()
}

/// The folder of the repository.
pub fn repository() -> PathBuf {
    crate_folder().join("../..")
}
