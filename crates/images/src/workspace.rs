use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tempfile::TempPath;

use crate::Error;

/// Our files' names start with this, so that nothing else is ever taken for a leftover.
const PREFIX: &str = "kupenstack-image-";
/// The unit in which file systems count what a file takes.
const BLOCK: u64 = 512;

/// The folder in which images are kept while they are worked on.
#[derive(Clone, Debug)]
pub struct Workspace(Arc<Folder>);

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// The most that may be in it.
    limit: Option<u64>,
    /// What all files together may grow to.
    promised: Mutex<u64>,
}

impl Workspace {
    /// Opens the folder, makes it when it is missing, and removes what an earlier process left in it. All files
    /// together take `limit` bytes at most, and never more than the disk has.
    ///
    /// One process owns the folder: files of another one at work would be removed.
    pub fn open(path: impl Into<PathBuf>, limit: Option<u64>) -> Result<Self, Error> {
        let path = path.into();
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .and_then(|()| remove_leftovers(&path))
            .map_err(Error::io("prepare the folder for images"))?;
        Ok(Self(Arc::new(Folder { path, limit, promised: Mutex::new(0) })))
    }

    /// A new empty file that is removed when the value is dropped.
    pub(crate) fn scratch(&self) -> Result<Scratch, Error> {
        let file = tempfile::Builder::new().prefix(PREFIX).tempfile_in(&self.0.path).map_err(Error::writing(None))?;
        let room = Room { folder: Arc::clone(&self.0), bytes: Mutex::new(0) };
        Ok(Scratch { path: file.into_temp_path(), room })
    }
}

impl Folder {
    /// Takes `more` bytes for a file that is to have `whole`, with what belongs to the same image.
    fn promise(&self, more: u64, whole: u64) -> Result<(), Error> {
        let mut promised = lock(&self.promised);
        let others = promised.saturating_sub(whole.saturating_sub(more));
        let room = self.limit.unwrap_or(u64::MAX).min(self.disk()?);
        if room.saturating_sub(*promised) >= more {
            *promised += more;
            return Ok(());
        }
        let fits_alone = others > 0 && whole <= room;
        Err(if fits_alone { Error::Crowded { needed: more } } else { Error::NoSpace { needed: Some(more) } })
    }

    /// What our files may grow to, by what is free on the disk and what they take already.
    fn disk(&self) -> Result<u64, Error> {
        let look = || -> io::Result<u64> {
            let space = rustix::fs::statvfs(&self.path)?;
            let free = space.f_bavail.saturating_mul(space.f_frsize);
            Ok(free.saturating_add(taken(&self.path)?))
        };
        look().map_err(Error::io("look at the folder for images"))
    }
}

fn ours(folder: &Path) -> io::Result<impl Iterator<Item = fs::DirEntry>> {
    let entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    Ok(entries.into_iter().filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)))
}

/// The bytes that our files take, holes left out.
fn taken(folder: &Path) -> io::Result<u64> {
    // A file may go while we look.
    let sizes = ours(folder)?.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.blocks() * BLOCK);
    Ok(sizes.sum())
}

fn remove_leftovers(folder: &Path) -> io::Result<()> {
    ours(folder)?.try_for_each(|entry| remove(&entry.path()))
}

/// Removes a file. An earlier process may still be about to end, and do that itself.
fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn lock(bytes: &Mutex<u64>) -> MutexGuard<'_, u64> {
    bytes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file of the workspace; it is removed, and its room given back, when this value is dropped.
#[derive(Debug)]
pub struct Scratch {
    // Before the room: what is given back has to be free.
    path: TempPath,
    room: Room,
}

/// What one file may grow to.
#[derive(Debug)]
struct Room {
    folder: Arc<Folder>,
    bytes: Mutex<u64>,
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut promised = lock(&self.folder.promised);
        *promised = promised.saturating_sub(*lock(&self.bytes));
    }
}

impl Scratch {
    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes sure that the file may grow to a size, in competition with all others. Refuses early what cannot fit.
    pub(crate) fn reserve(&self, size: u64) -> Result<(), Error> {
        self.reserve_beside(size, 0)
    }

    /// As [`Self::reserve`]; `beside` is what another file of the same image takes meanwhile, which waiting won't free.
    pub(crate) fn reserve_beside(&self, size: u64, beside: u64) -> Result<(), Error> {
        let mut bytes = lock(&self.room.bytes);
        if size > *bytes {
            self.room.folder.promise(size - *bytes, size.saturating_add(beside))?;
            *bytes = size;
        }
        Ok(())
    }

    /// Gives back what is not needed beyond a size.
    pub(crate) fn shrink_to(&self, size: u64) {
        let mut bytes = lock(&self.room.bytes);
        let rest = bytes.saturating_sub(size);
        *bytes -= rest;
        let mut promised = lock(&self.room.folder.promised);
        *promised = promised.saturating_sub(rest);
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
        let workspace = Workspace::open(&path, None).unwrap();
        let (dropped, left) = (workspace.scratch().unwrap(), workspace.scratch().unwrap());
        let gone = dropped.path().to_owned();
        drop(dropped);
        assert!(!gone.exists());
        std::mem::forget(left);
        fs::write(path.join("of-somebody-else"), "").unwrap();
        Workspace::open(&path, None).unwrap();
        let names: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["of-somebody-else"]);
    }

    #[test]
    fn leftovers_that_go_by_themselves_are_no_obstacle() {
        let folder = tempfile::tempdir().unwrap();
        super::remove(&folder.path().join("gone")).unwrap();
        assert!(super::remove(folder.path()).is_err(), "what is there and stays is one");
    }

    #[test]
    fn a_disk_that_is_too_small_is_the_operators_business() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(folder.path(), None).unwrap();
        let scratch = workspace.scratch().unwrap();
        scratch.reserve(1).unwrap();
        let error = scratch.reserve(1 << 60).unwrap_err();
        assert_eq!((error.reason(), error.actor()), ("NoSpace", Actor::Operator));
    }

    #[test]
    fn all_files_together_stay_within_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(folder.path(), Some(100)).unwrap();
        let (one, other) = (workspace.scratch().unwrap(), workspace.scratch().unwrap());
        one.reserve(60).unwrap();
        other.reserve(40).unwrap();
        other.reserve(30).unwrap();
        assert!(matches!(other.reserve(41), Err(Error::Crowded { needed: 1 })), "it fits when the other is gone");
        assert!(matches!(other.reserve(101), Err(Error::NoSpace { needed: Some(61) })), "it never fits");
        one.shrink_to(50);
        other.reserve(50).unwrap();
        drop(one);
        other.reserve(100).unwrap();
        assert!(matches!(other.reserve(101), Err(Error::NoSpace { .. })), "alone and too large");
        drop(other);
        workspace.scratch().unwrap().reserve(100).unwrap();
    }

    #[test]
    fn an_image_does_not_wait_for_itself() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(folder.path(), Some(100)).unwrap();
        let (source, converted) = (workspace.scratch().unwrap(), workspace.scratch().unwrap());
        source.reserve(60).unwrap();
        assert!(matches!(converted.reserve_beside(50, 60), Err(Error::NoSpace { needed: Some(50) })));
        let other = workspace.scratch().unwrap();
        other.reserve(10).unwrap();
        assert!(matches!(converted.reserve_beside(35, 60), Err(Error::Crowded { needed: 35 })));
        drop(other);
        converted.reserve_beside(35, 60).unwrap();
    }

    #[test]
    fn what_is_promised_is_not_free_for_others() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(folder.path(), None).unwrap();
        let (one, other) = (workspace.scratch().unwrap(), workspace.scratch().unwrap());
        let disk = workspace.0.disk().unwrap();
        one.reserve(disk / 4 * 3).unwrap();
        assert!(matches!(other.reserve(disk / 2), Err(Error::Crowded { .. })));
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_an_error() {
        assert!(matches!(Workspace::open("/proc/no/such", None), Err(Error::Io { .. })));
    }
}
