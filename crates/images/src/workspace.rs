use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use crate::Error;

/// Our files' names start with this, so that nothing else is ever taken for a leftover.
const PREFIX: &str = "kupenstack-image-";

/// The folder in which images are kept while they are worked on.
#[derive(Clone, Debug)]
pub struct Workspace {
    folder: PathBuf,
}

impl Workspace {
    /// Opens the folder, makes it when it is missing, and removes what an earlier process left in it.
    ///
    /// One process owns the folder: files of another one at work would be removed.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, Error> {
        let folder = folder.into();
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .and_then(|()| remove_leftovers(&folder))
            .map_err(Error::io("prepare the folder for images"))?;
        Ok(Self { folder })
    }

    /// A new empty file that is removed when the value is dropped.
    pub(crate) fn scratch(&self) -> Result<Scratch, Error> {
        let file = tempfile::Builder::new().prefix(PREFIX).tempfile_in(&self.folder).map_err(Error::writing(None))?;
        Ok(Scratch(file.into_temp_path()))
    }

    /// Refuses early what cannot fit.
    pub(crate) fn require_space(&self, needed: u64) -> Result<(), Error> {
        let space = rustix::fs::statvfs(&self.folder)
            .map_err(|error| Error::io("look at the folder for images")(error.into()))?;
        let available = space.f_bavail.saturating_mul(space.f_frsize);
        if available < needed { Err(Error::NoSpace { needed: Some(needed) }) } else { Ok(()) }
    }
}

fn remove_leftovers(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// A file of the workspace; it is removed when this value is dropped.
#[derive(Debug)]
pub struct Scratch(TempPath);

impl Scratch {
    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Workspace;
    use crate::{Actor, Error};

    #[test]
    fn files_go_when_dropped_and_leftovers_at_the_next_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/images");
        let workspace = Workspace::open(&path).unwrap();
        let (dropped, left) = (workspace.scratch().unwrap(), workspace.scratch().unwrap());
        let gone = dropped.path().to_owned();
        drop(dropped);
        assert!(!gone.exists());
        std::mem::forget(left);
        fs::write(path.join("of-somebody-else"), "").unwrap();
        Workspace::open(&path).unwrap();
        let names: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["of-somebody-else"]);
    }

    #[test]
    fn a_disk_that_is_too_small_is_the_operators_business() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(folder.path()).unwrap();
        workspace.require_space(1).unwrap();
        let error = workspace.require_space(u64::MAX).unwrap_err();
        assert_eq!((error.reason(), error.actor()), ("NoSpace", Actor::Operator));
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_an_error() {
        assert!(matches!(Workspace::open("/proc/no/such"), Err(Error::Io { .. })));
    }
}
