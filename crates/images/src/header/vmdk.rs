//! A sparse VMDK carries a description in text, which may name any file as its parent or as an extent.

use std::io::{Read, Seek};

use super::{Bytes, SECTOR, read, unsafe_image, unsupported};
use crate::Error;

/// The most of the description that is read. Real ones are shorter than a kilobyte.
const MAX_DESCRIPTION: u64 = 64 << 10;
/// Where `qemu` looks for the parent, wherever the header says that the description is.
const PARENT_OFFSET: u64 = SECTOR;
const PARENT_SIZE: u64 = 20 * SECTOR;
const PARENT: &[u8] = b"parentFileNameHint";

pub(super) fn check<F: Read + Seek>(head: &Bytes, file: &mut F) -> Result<(), Error> {
    let (capacity, offset, sectors) = (head.le64(12), head.le64(28), head.le64(36));
    if capacity == 0 {
        return Err(unsafe_image("its data is in other files"));
    }
    if offset == 0 || sectors == 0 {
        return Err(unsupported("an extent of a VMDK in several files"));
    }
    let size = sectors.saturating_mul(SECTOR);
    if size > MAX_DESCRIPTION {
        return Err(unsupported("a VMDK with a description too long to check"));
    }
    let description = read(file, offset.saturating_mul(SECTOR), size)?;
    check_description(&String::from_utf8_lossy(&description))?;
    let other = read(file, PARENT_OFFSET, PARENT_SIZE)?;
    if other.windows(PARENT.len()).any(|window| window == PARENT) {
        return Err(unsafe_image("it has a parent image"));
    }
    Ok(())
}

fn check_description(text: &str) -> Result<(), Error> {
    const WHOLE: [&str; 2] = ["monolithicsparse", "streamoptimized"];
    let text = text.trim_end_matches('\0').to_ascii_lowercase();
    let mut kind = None;
    let mut extents = 0;
    for line in text.lines().map(str::trim) {
        if let Some((key, value)) = line.split_once('=') {
            let value = value.trim().trim_matches('"');
            match key.trim() {
                "createtype" => kind = Some(value.to_owned()),
                "parentcid" if value != "ffffffff" => return Err(unsafe_image("it has a parent image")),
                "parentfilenamehint" => return Err(unsafe_image("it has a parent image")),
                _ => {}
            }
        } else if ["rw ", "rdonly ", "noaccess "].iter().any(|access| line.starts_with(access)) {
            extents += 1;
        }
    }
    match kind {
        Some(kind) if !WHOLE.contains(&kind.as_str()) => Err(unsafe_image(&format!("it is a VMDK of type {kind}"))),
        Some(_) if extents == 1 => Ok(()),
        Some(_) => Err(unsafe_image(&format!("it has {extents} extents"))),
        None => Err(unsupported("a VMDK without a description")),
    }
}
