//! Microsoft's formats, both of which know images that hold only the changes to another one.

use std::io::{Read, Seek};

use super::{Bytes, read, unsafe_image, unsupported};
use crate::Error;

/// The beginning of a VHD's footer, which is the last sector and, unless the size is fixed, the first one too.
pub(super) const COOKIE: &[u8] = b"conectix";

/// The two places of a VHDX's list of regions.
const REGIONS: [u64; 2] = [192 << 10, 256 << 10];
const TABLE: u64 = 64 << 10;
/// The most entries of either table, by the format's definition.
const MOST_ENTRIES: u32 = 2047;
/// Identifiers as they are stored: the metadata among the regions, the parameters among the metadata.
const METADATA: &[u8] =
    &[0x06, 0xa2, 0x7c, 0x8b, 0x90, 0x47, 0x9a, 0x4b, 0xb8, 0xfe, 0x57, 0x5f, 0x05, 0x0f, 0x88, 0x6e];
const PARAMETERS: &[u8] =
    &[0x37, 0x67, 0xa1, 0xca, 0x36, 0xfa, 0x43, 0x4d, 0xb3, 0xb6, 0x33, 0xf0, 0xaa, 0x44, 0xe7, 0x6b];
const HAS_PARENT: u32 = 1 << 1;

pub(super) fn check(copies: [&Bytes; 2]) -> Result<(), Error> {
    copies.into_iter().filter(|copy| copy.has(0, COOKIE)).try_for_each(|footer| match footer.be32(60) {
        2 | 3 => Ok(()),
        4 => Err(unsafe_image("it has a parent image")),
        kind => Err(unsupported(&format!("VHD type {kind}"))),
    })
}

/// Both lists of regions are looked at, since a program may use either.
pub(super) fn check_vhdx<F: Read + Seek>(file: &mut F) -> Result<(), Error> {
    let mut known = false;
    for at in REGIONS {
        let regions = Bytes(read(file, at, TABLE)?);
        let Some(metadata) = regions.has(0, b"regi").then(|| entry(&regions, 16, regions.le32(8), METADATA)).flatten()
        else {
            continue;
        };
        let offset = regions.le64(metadata + 16);
        let table = Bytes(read(file, offset, TABLE)?);
        let count = u32::from(table.le16(10));
        let Some(item) = table.has(0, b"metadata").then(|| entry(&table, 32, count, PARAMETERS)).flatten() else {
            continue;
        };
        let at = offset.saturating_add(u64::from(table.le32(item + 16)));
        if Bytes(read(file, at, 8)?).le32(4) & HAS_PARENT != 0 {
            return Err(unsafe_image("it has a parent image"));
        }
        known = true;
    }
    if known { Ok(()) } else { Err(Error::Damaged { message: "a VHDX without parameters".to_owned() }) }
}

/// Where the entry with an identifier is in a table whose entries, of 32 bytes, begin at `first`.
fn entry(table: &Bytes, first: usize, count: u32, identifier: &[u8]) -> Option<usize> {
    let places = (0..count.min(MOST_ENTRIES)).filter_map(|index| Some(first + usize::try_from(index).ok()? * 32));
    places.into_iter().find(|&at| table.has(at, identifier))
}
