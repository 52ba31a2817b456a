//! Images that would harm whoever opened them, or are none.

use std::fs;

use kupenstack_images::{Actor, Error, Format};
use rstest::rstest;

use crate::{MIB, Place, SIZE, patch, qemu, refusal, write_disk};

#[rstest]
#[case::backing_file("create -f qcow2 -b disk.raw -F raw image", "backing file")]
#[case::absolute_backing_file("create -f qcow2 -u -b /etc/passwd -F raw image 8M", "backing file")]
#[case::protocol_as_backing_file("create -f qcow2 -u -b nbd://127.0.0.1:1/x -F raw image 8M", "backing file")]
#[case::data_file("create -f qcow2 -o data_file=other.raw,data_file_raw=on image 8M", "another file")]
#[case::vmdk_with_parent("create -f vmdk -u -b disk.vmdk -F vmdk image 8M", "parent")]
#[tokio::test]
async fn an_image_that_needs_another_file_is_refused(#[case] made_by: &str, #[case] why: &str) {
    let place = Place::new();
    write_disk(&place.path("disk.raw"), SIZE);
    place.qemu("convert -O vmdk disk.raw disk.vmdk");
    place.qemu(made_by);
    let error = refusal(&place.path("image")).await;
    assert_eq!((error.reason(), error.actor()), ("UnsafeImage", Actor::User), "{error:?}");
    assert!(error.to_string().contains(why), "{error}");
}

#[rstest]
#[case::flat("monolithicFlat")]
#[case::split("twoGbMaxExtentSparse")]
#[tokio::test]
async fn a_vmdk_in_several_files_is_refused_whichever_of_them_it_is(#[case] subformat: &str) {
    let place = Place::new();
    write_disk(&place.path("disk.raw"), SIZE);
    place.qemu(&format!("convert -O vmdk -o subformat={subformat} disk.raw image.vmdk"));
    let error = refusal(&place.path("image.vmdk")).await;
    assert_eq!(error.reason(), "UnsupportedFormat", "{error:?}");
    if subformat == "twoGbMaxExtentSparse" {
        let error = refusal(&place.path("image-s001.vmdk")).await;
        assert_eq!(error.reason(), "UnsupportedFormat", "{error:?}");
    }
}

/// The encryption is qemu-img's own where that costs nothing. For LUKS it would measure the machine's speed, which it
/// refuses on a busy one; there the header says it.
#[tokio::test]
async fn an_encrypted_image_is_refused() {
    let encrypted = |error| matches!(error, Error::UnsafeImage { message } if message.contains("encrypted"));
    let place = Place::new();
    place.qemu("create -f qcow2 --object secret,id=s,data=x -o encrypt.format=aes,encrypt.key-secret=s image 8M");
    assert!(encrypted(refusal(&place.path("image")).await));
    patch(&place.path("image"), 32, &2_u32.to_be_bytes());
    assert!(encrypted(refusal(&place.path("image")).await), "qcow2 with LUKS");
    place.qemu("create -f raw luks 8M");
    patch(&place.path("luks"), 0, b"LUKS\xba\xbe\x00\x01");
    assert!(encrypted(refusal(&place.path("luks")).await), "LUKS");
}

#[tokio::test]
async fn a_vmdk_whose_own_description_lists_other_files_is_refused() {
    let place = Place::new();
    let image = place.image(Format::Vmdk);
    // A header of capacity zero makes readers believe the description alone.
    patch(&image, 12, &[0; 8]);
    assert_eq!(refusal(&image).await.reason(), "UnsafeImage");

    let image = place.image(Format::Vmdk);
    let description = "# Disk DescriptorFile\nversion=1\nCID=1\nparentCID=ffffffff\ncreateType=\"monolithicFlat\"\n\
                       RW 1 FLAT \"/etc/shadow\" 0\n\0";
    patch(&image, 512, description.as_bytes());
    assert_eq!(refusal(&image).await.reason(), "UnsafeImage");
}

#[tokio::test]
async fn a_vhd_with_a_parent_is_refused() {
    let place = Place::new();
    let image = place.image(Format::Vhd);
    patch(&image, 60, &4_u32.to_be_bytes());
    assert_eq!(refusal(&image).await.reason(), "UnsafeImage");
}

#[tokio::test]
async fn a_vmdk_whose_parent_is_where_only_qemu_looks_is_refused() {
    let place = Place::new();
    let image = place.image(Format::Vmdk);
    let bytes = fs::read(&image).unwrap();
    // The header points to a good description at another place than the usual one.
    let elsewhere = bytes.len().next_multiple_of(512);
    let mut moved = bytes.clone();
    moved.resize(elsewhere, 0);
    moved.extend_from_slice(&bytes[512..512 * 21]);
    moved[28..36].copy_from_slice(&u64::try_from(elsewhere / 512).unwrap().to_le_bytes());
    fs::write(&image, &moved).unwrap();
    assert!(qemu().inspect(&image).await.is_ok(), "so far it is a good image");
    patch(&image, 512, b"CID=1\nparentCID=00000001\nparentFileNameHint=\"/etc/shadow\"\n\0");
    assert_eq!(refusal(&image).await.reason(), "UnsafeImage");

    let image = place.image(Format::Vmdk);
    patch(&image, 36, &1000_u64.to_le_bytes());
    assert_eq!(refusal(&image).await.reason(), "UnsupportedFormat", "a description too long to be read to its end");
}

#[rstest]
#[case::vdi(Format::Vdi, 0x4c, &[4, 0, 0, 0])]
#[case::vhdx(Format::Vhdx, 0, &[])]
#[tokio::test]
async fn changes_to_another_image_are_refused(#[case] format: Format, #[case] at: u64, #[case] patched: &[u8]) {
    let place = Place::new();
    let image = place.image(format);
    if format == Format::Vhdx {
        let parameters: [u8; 16] =
            [0x37, 0x67, 0xa1, 0xca, 0x36, 0xfa, 0x43, 0x4d, 0xb3, 0xb6, 0x33, 0xf0, 0xaa, 0x44, 0xe7, 0x6b];
        let bytes = fs::read(&image).unwrap();
        let entry = bytes.windows(16).position(|window| window == parameters).unwrap();
        let table = bytes.windows(8).position(|window| window == b"metadata").unwrap();
        let item = u32::from_le_bytes(bytes[entry + 16..entry + 20].try_into().unwrap());
        patch(&image, u64::try_from(table).unwrap() + u64::from(item) + 4, &2_u32.to_le_bytes());
    } else {
        patch(&image, at, patched);
    }
    let error = refusal(&image).await;
    assert!(matches!(&error, Error::UnsafeImage { message } if message.contains("parent")), "{error:?}");
}

/// Two programs that looked at such a file would see two different disks.
#[rstest]
#[case::qcow2_and_vhd(Format::Qcow2, None, b"conectix")]
#[case::qcow2_and_iso(Format::Qcow2, Some(0x8001), b"CD001")]
#[case::vdi_and_qcow2(Format::Vdi, Some(0), b"QFI\xfb\0\0\0\x03")]
#[tokio::test]
async fn a_file_of_two_formats_is_refused(#[case] format: Format, #[case] at: Option<u64>, #[case] mark: &[u8]) {
    let place = Place::new();
    let image = place.image(format);
    let end = fs::metadata(&image).unwrap().len() - 512;
    patch(&image, at.unwrap_or(end), mark);
    let error = refusal(&image).await;
    assert!(matches!(&error, Error::UnsafeImage { message } if message.contains("both")), "{error:?}");
}

#[tokio::test]
async fn a_disk_that_begins_like_an_image_is_no_disk() {
    let place = Place::new();
    let image = place.image(Format::Raw);
    patch(&image, 0, b"QFI\xfb\0\0\0\x03");
    assert_eq!(refusal(&image).await.reason(), "DamagedImage");
    patch(&image, 0, b"QFI\xfb\0\0\0\x09");
    assert_eq!(refusal(&image).await.reason(), "UnsupportedFormat");
}

#[rstest]
#[case::gzip(b"\x1f\x8b\x08\0", "gzip")]
#[case::xz(b"\xfd7zXZ\0", "xz")]
#[case::zstd(b"\x28\xb5\x2f\xfd", "zstd")]
#[case::zip(b"PK\x03\x04", "zip")]
#[case::qed(b"QED\0", "QED")]
#[tokio::test]
async fn what_is_no_disk_is_refused(#[case] magic: &[u8], #[case] called: &str) {
    let place = Place::new();
    let path = place.path("file");
    fs::write(&path, [magic, &[0; 4096]].concat()).unwrap();
    let error = refusal(&path).await;
    assert_eq!((error.reason(), error.actor()), ("UnsupportedFormat", Actor::User), "{error:?}");
    assert!(error.to_string().contains(called), "{error}");
}

#[tokio::test]
async fn an_error_page_and_a_stub_are_refused() {
    let place = Place::new();
    fs::write(place.path("page"), "<!DOCTYPE html>\n<p>Please log in ä</p>\n".repeat(100)).unwrap();
    assert!(
        matches!(refusal(&place.path("page")).await, Error::UnsupportedFormat { message } if message.contains("text"))
    );
    fs::write(place.path("stub"), [0; 511]).unwrap();
    assert!(matches!(refusal(&place.path("stub")).await, Error::UnsupportedFormat { .. }));
}

#[tokio::test]
async fn a_qcow2_cut_in_its_header_is_damaged() {
    let place = Place::new();
    let image = place.image(Format::Qcow2);
    patch(&image, 20, &63_u32.to_be_bytes());
    let error = refusal(&image).await;
    assert_eq!((error.reason(), error.actor()), ("DamagedImage", Actor::User), "{error:?}");
}

#[tokio::test]
async fn a_bomb_is_refused() {
    let place = Place::new();
    place.qemu("create -f qcow2 image 3T");
    assert!(fs::metadata(place.path("image")).unwrap().len() < MIB);
    let error = refusal(&place.path("image")).await;
    assert!(matches!(error, Error::TooLarge { bytes, limit } if bytes == 3 << 40 && limit == 2 << 40), "{error:?}");
}

/// The largest number that fits into the header, and what it would need in tables.
#[tokio::test]
async fn so_is_one_that_claims_more_than_any_disk_has() {
    let place = Place::new();
    let image = place.image(Format::Qcow2);
    patch(&image, 24, &(1_u64 << 62).to_be_bytes());
    let error = refusal(&image).await;
    assert_eq!(error.actor(), Actor::User, "{error:?}");
}
