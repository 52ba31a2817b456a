//! What a file is, told from its own bytes, before any program that follows references gets to see it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use crate::{Error, Format};

mod vhd;
mod vmdk;

/// Enough for every header and for the first volume descriptor of a CD.
const HEAD: u64 = 64 << 10;
const SECTOR: u64 = 512;

/// Files that hold a disk image inside, or none at all.
const FOREIGN: [(usize, &[u8], &str); 15] = [
    (0, b"\x1f\x8b\x08", "a gzip file; unpack it first (gunzip)"),
    (0, b"\xfd7zXZ\0", "an xz file; unpack it first (unxz)"),
    (0, b"BZh", "a bzip2 file; unpack it first (bunzip2)"),
    (0, b"\x28\xb5\x2f\xfd", "a zstd file; unpack it first (unzstd)"),
    (0, b"\x04\x22\x4d\x18", "an lz4 file; unpack it first (unlz4)"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive; unpack the image in it first"),
    (0, b"PK\x03\x04", "a zip archive; unpack the image in it first"),
    (257, b"ustar", "a tar archive, such as an OVA; unpack the image in it first"),
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

/// Refuses by the beginning of a file what would be refused when all of it is there.
pub(crate) fn refuse_early(beginning: &[u8]) -> Result<(), Error> {
    let packed = FOREIGN.iter().filter(|(offset, ..)| *offset == 0);
    packed
        .into_iter()
        .find(|(_, magic, _)| beginning.starts_with(magic))
        .map_or(Ok(()), |(.., what)| Err(unsupported(what)))
}

fn detect_in<F: Read + Seek>(file: &mut F) -> Result<Format, Error> {
    let length = file.seek(SeekFrom::End(0)).map_err(Error::io("read the image"))?;
    let head = Bytes(read(file, 0, HEAD)?);
    if length < SECTOR {
        return Err(unsupported("shorter than one sector"));
    }
    let footer = Bytes(read(file, length - SECTOR, SECTOR)?);
    match claims(&head, &footer)[..] {
        [] => refuse_foreign(&head).map(|()| Format::Raw),
        [format] => {
            match format {
                Format::Qcow2 => qcow2(&head),
                Format::Vmdk => vmdk::check(&head, file),
                Format::Vdi => vdi(&head),
                Format::Vhd => vhd::check([&head, &footer]),
                Format::Vhdx => vhd::check_vhdx(file),
                Format::Iso | Format::Raw => Ok(()),
            }?;
            Ok(format)
        }
        // Which of them it is, every program would decide for itself, and what one has checked another would not read.
        [one, other, ..] => Err(unsafe_image(&format!("it is both {one} and {other}"))),
    }
}

/// The formats whose marks a file carries.
fn claims(head: &Bytes, footer: &Bytes) -> Vec<Format> {
    let marks = [
        (head.has(0, b"QFI\xfb"), Format::Qcow2),
        (head.has(0, b"KDMV"), Format::Vmdk),
        (head.has(0, b"vhdxfile"), Format::Vhdx),
        (head.has(0x40, &[0x7f, 0x10, 0xda, 0xbe]), Format::Vdi),
        (head.has(0, vhd::COOKIE) || footer.has(0, vhd::COOKIE), Format::Vhd),
        (head.has(0x8001, b"CD001"), Format::Iso),
    ];
    marks.into_iter().filter_map(|(is_there, format)| is_there.then_some(format)).collect()
}

fn qcow2(head: &Bytes) -> Result<(), Error> {
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
    Ok(())
}

/// Images are dynamic (1) or static (2); others are changes to another image, or what was undone of one.
fn vdi(head: &Bytes) -> Result<(), Error> {
    match head.le32(0x4c) {
        1 | 2 => Ok(()),
        3 | 4 => Err(unsafe_image("it has a parent image")),
        kind => Err(unsupported(&format!("VDI type {kind}"))),
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

    fn le16(&self, offset: usize) -> u16 {
        u16::from_le_bytes(self.array(offset))
    }

    fn le32(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.array(offset))
    }

    fn le64(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.array(offset))
    }
}

#[cfg(test)]
mod tests;
