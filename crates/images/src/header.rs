//! What a file is, told from its own bytes, before any program that follows references gets to see it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use crate::{Error, Format};

/// Enough for every header and for the first volume descriptor of a CD.
const HEAD: u64 = 64 << 10;
const SECTOR: u64 = 512;
/// The most of a VMDK's embedded description that is read.
const MAX_DESCRIPTION: u64 = 64 << 10;

/// Files that hold a disk image inside, or none at all.
const FOREIGN: [(usize, &[u8], &str); 15] = [
    (0, b"\x1f\x8b", "a gzip file; unpack it first"),
    (0, b"\xfd7zXZ\0", "an xz file; unpack it first"),
    (0, b"BZh", "a bzip2 file; unpack it first"),
    (0, b"\x28\xb5\x2f\xfd", "a zstd file; unpack it first"),
    (0, b"\x04\x22\x4d\x18", "an lz4 file; unpack it first"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it first"),
    (0, b"PK\x03\x04", "a zip archive; unpack it first"),
    (257, b"ustar", "a tar archive; unpack it first"),
    (0, b"QED\0", "a QED image"),
    (0, b"# Disk DescriptorFile", "the description of a VMDK in several files"),
    (0, b"COWD", "an extent of a VMDK in several files"),
    (0, b"WithoutFreeSpace", "a Parallels image"),
    (0, b"WithouFreSpacExt", "a Parallels image"),
    (0, b"Bochs Virtual HD Image", "a Bochs image"),
    (0, b"\x7fELF", "a program"),
];

/// Tells the format and refuses what needs other files or a key.
pub(crate) fn detect(path: &Path) -> Result<Format, Error> {
    let mut file = File::open(path).map_err(Error::io("open the image"))?;
    detect_in(&mut file)
}

fn detect_in<F: Read + Seek>(file: &mut F) -> Result<Format, Error> {
    let length = file.seek(SeekFrom::End(0)).map_err(Error::io("read the image"))?;
    let head = Bytes(read(file, 0, HEAD)?);
    if length < SECTOR {
        return Err(unsupported("shorter than one sector"));
    }
    if head.has(0, b"QFI\xfb") {
        return qcow2(&head);
    }
    if head.has(0, b"KDMV") {
        return vmdk(&head, file);
    }
    if head.has(0, b"vhdxfile") {
        return Ok(Format::Vhdx);
    }
    if head.has(0x40, &[0x7f, 0x10, 0xda, 0xbe]) {
        return Ok(Format::Vdi);
    }
    for at in [0, length - SECTOR] {
        let footer = Bytes(read(file, at, SECTOR)?);
        if footer.has(0, b"conectix") {
            return vhd(&footer);
        }
    }
    if head.has(0x8001, b"CD001") {
        return Ok(Format::Iso);
    }
    refuse_foreign(&head)?;
    Ok(Format::Raw)
}

fn qcow2(head: &Bytes) -> Result<Format, Error> {
    const EXTERNAL_DATA: u64 = 1 << 2;
    let version = head.be32(4);
    if !matches!(version, 2 | 3) {
        return Err(unsupported(&format!("qcow2 version {version}")));
    }
    if head.be64(8) != 0 {
        return Err(unsafe_image("it has a backing file"));
    }
    if head.be32(32) != 0 {
        return Err(unsafe_image("it is encrypted"));
    }
    if version == 3 && head.be64(72) & EXTERNAL_DATA != 0 {
        return Err(unsafe_image("its data is in another file"));
    }
    Ok(Format::Qcow2)
}

/// A sparse VMDK carries a description in text, which may name any file as its parent or as an extent.
fn vmdk<F: Read + Seek>(head: &Bytes, file: &mut F) -> Result<Format, Error> {
    let (capacity, offset, sectors) = (head.le64(12), head.le64(28), head.le64(36));
    if capacity == 0 {
        return Err(unsafe_image("its data is in other files"));
    }
    if offset == 0 || sectors == 0 {
        return Err(unsupported("an extent of a VMDK in several files"));
    }
    let size = sectors.saturating_mul(SECTOR).min(MAX_DESCRIPTION);
    let description = read(file, offset.saturating_mul(SECTOR), size)?;
    check_description(&String::from_utf8_lossy(&description))?;
    Ok(Format::Vmdk)
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

fn vhd(footer: &Bytes) -> Result<Format, Error> {
    match footer.be32(60) {
        2 | 3 => Ok(Format::Vhd),
        4 => Err(unsafe_image("it has a parent image")),
        kind => Err(unsupported(&format!("VHD type {kind}"))),
    }
}

fn refuse_foreign(head: &Bytes) -> Result<(), Error> {
    if head.has(0, b"LUKS\xba\xbe") {
        return Err(unsafe_image("it is encrypted"));
    }
    if let Some((.., what)) = FOREIGN.iter().find(|(offset, magic, _)| head.has(*offset, magic)) {
        return Err(unsupported(what));
    }
    if is_text(&head.0) { Err(unsupported("text, perhaps an error page")) } else { Ok(()) }
}

/// Whether the first sector is nothing but text. A disk has a program, a table or nothing at all there.
fn is_text(head: &[u8]) -> bool {
    let sector = &head[..head.len().min(512)];
    let length = sector.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let printable = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t' | b'\r' | b'\n' | 0x80..);
    length > 0 && sector[..length].iter().all(printable)
}

fn read<F: Read + Seek>(file: &mut F, offset: u64, most: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(offset))
        .and_then(|_| file.take(most).read_to_end(&mut bytes))
        // An offset from the image itself may be one that no file can have.
        .or_else(|error| if error.kind() == io::ErrorKind::InvalidInput { Ok(0) } else { Err(error) })
        .map_err(Error::io("read the image"))?;
    Ok(bytes)
}

fn unsupported(message: &str) -> Error {
    Error::UnsupportedFormat { message: message.to_owned() }
}

fn unsafe_image(message: &str) -> Error {
    Error::UnsafeImage { message: message.to_owned() }
}

/// Bytes that read as zero beyond their end.
struct Bytes(Vec<u8>);

impl Bytes {
    fn has(&self, offset: usize, magic: &[u8]) -> bool {
        self.0.get(offset..).is_some_and(|rest| rest.starts_with(magic))
    }

    fn array<const N: usize>(&self, offset: usize) -> [u8; N] {
        self.0.get(offset..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
    }

    fn be32(&self, offset: usize) -> u32 {
        u32::from_be_bytes(self.array(offset))
    }

    fn be64(&self, offset: usize) -> u64 {
        u64::from_be_bytes(self.array(offset))
    }

    fn le64(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.array(offset))
    }
}
