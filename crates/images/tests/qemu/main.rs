//! Inspection and conversion by the real `qemu-img`, of good images and of images made to do harm.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod hostile;

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use kupenstack_images::{Actor, Error, Format, Inspection, Progress, QemuImg, QemuLimits, Workspace};
use rstest::rstest;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
const SIZE: u64 = 8 * MIB;

struct Place {
    folder: TempDir,
    workspace: Workspace,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(folder.path().join("workspace"), None).unwrap();
        Self { folder, workspace }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `qemu-img` in the folder.
    fn qemu(&self, arguments: &str) {
        let run = Command::new("qemu-img").args(arguments.split(' ')).current_dir(self.folder.path()).output();
        let output = run.unwrap_or_else(|error| panic!("these tests need qemu-img (Debian: qemu-utils): {error}"));
        assert!(output.status.success(), "qemu-img {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// A disk with a boot sector and some data, in a format.
    fn image(&self, format: Format) -> PathBuf {
        let raw = self.path("disk.raw");
        write_disk(&raw, SIZE);
        let image = self.path("image");
        match format {
            Format::Raw => fs::copy(raw, &image).map(drop).unwrap(),
            Format::Iso => write_iso(&image),
            Format::Vhd => self.qemu("convert -O vpc -o force_size=on disk.raw image"),
            other => self.qemu(&format!("convert -O {other} disk.raw image")),
        }
        image
    }

    fn left_in_workspace(&self) -> usize {
        fs::read_dir(self.path("workspace")).unwrap().count()
    }
}

fn write_disk(path: &Path, size: u64) {
    let file = File::create(path).unwrap();
    file.set_len(size).unwrap();
    file.write_all_at(&[0xeb, 0x63, 0x90], 0).unwrap();
    file.write_all_at(&[0x55, 0xaa], 510).unwrap();
    file.write_all_at(&vec![7; 100_000], size / 2).unwrap();
}

fn write_iso(path: &Path) {
    let file = File::create(path).unwrap();
    file.set_len(MIB).unwrap();
    file.write_all_at(b"\x01CD001\x01", 0x8000).unwrap();
}

fn qemu() -> QemuImg {
    QemuImg::new(QemuLimits::default())
}

async fn refusal(path: &Path) -> Error {
    qemu().inspect(path).await.unwrap_err()
}

#[rstest]
#[tokio::test]
async fn every_format_is_told_from_the_bytes(
    #[values(Format::Raw, Format::Qcow2, Format::Vmdk, Format::Vdi, Format::Vhd, Format::Vhdx, Format::Iso)]
    format: Format,
) {
    let place = Place::new();
    let inspection = qemu().inspect(&place.image(format)).await.unwrap();
    let virtual_size = if format == Format::Iso { MIB } else { SIZE };
    assert_eq!(inspection, Inspection { format, virtual_size });
}

#[rstest]
#[case::old_qcow2("create -f qcow2 -o compat=0.10 image 8M", Format::Qcow2)]
#[case::compressed_qcow2("convert -c -O qcow2 disk.raw image", Format::Qcow2)]
#[case::streamed_vmdk("convert -O vmdk -o subformat=streamOptimized disk.raw image", Format::Vmdk)]
#[case::fixed_vhd("convert -O vpc -o subformat=fixed,force_size=on disk.raw image", Format::Vhd)]
#[case::static_vdi("convert -O vdi -o static=on disk.raw image", Format::Vdi)]
#[tokio::test]
async fn so_is_every_variant(#[case] made_by: &str, #[case] format: Format) {
    let place = Place::new();
    write_disk(&place.path("disk.raw"), SIZE);
    place.qemu(made_by);
    assert_eq!(qemu().inspect(&place.path("image")).await.unwrap().format, format);
}

/// Overwrites bytes of an image.
fn patch(path: &Path, offset: u64, bytes: &[u8]) {
    let mut file = File::options().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(offset)).unwrap();
    file.write_all(bytes).unwrap();
}

#[tokio::test]
async fn what_unfolds_to_more_than_there_is_room_for_is_refused_before_it_does() {
    let (place, size) = (Place::new(), 64 * MIB);
    fs::write(place.path("disk.raw"), vec![7; usize::try_from(size).unwrap()]).unwrap();
    place.qemu("convert -c -O qcow2 disk.raw image");
    let image = place.path("image");
    assert!(fs::metadata(&image).unwrap().len() < MIB, "it is packed");
    let qemu = qemu();
    let inspection = qemu.inspect(&image).await.unwrap();
    let small = Workspace::open(place.path("workspace"), Some(size / 2)).unwrap();
    let convert = async |qemu: &QemuImg, workspace| {
        qemu.convert(&image, &inspection, Format::Raw, workspace, |_| {}).await.map(drop).unwrap_err()
    };
    let error = convert(&qemu, &small).await;
    assert!(matches!(error, Error::NoSpace { needed: Some(needed) } if needed >= size), "{error:?}");
    let limits = QemuLimits { max_output: size - 1, ..QemuLimits::default() };
    let error = convert(&QemuImg::new(limits), &place.workspace).await;
    assert!(matches!(error, Error::TooLarge { bytes, .. } if bytes == size), "{error:?}");
    assert_eq!(place.left_in_workspace(), 0);
}

#[rstest]
#[tokio::test]
async fn conversion_keeps_every_byte(
    #[values(Format::Raw, Format::Qcow2, Format::Vmdk, Format::Vdi, Format::Vhd, Format::Vhdx)] from: Format,
    #[values(Format::Raw, Format::Qcow2, Format::Vmdk, Format::Vdi, Format::Vhd, Format::Vhdx)] to: Format,
) {
    let (place, qemu) = (Place::new(), qemu());
    let image = place.image(from);
    let inspection = qemu.inspect(&image).await.unwrap();
    let mut last = None;
    let on_progress = |progress: Progress| last = Some(progress);
    let converted = qemu.convert(&image, &inspection, to, &place.workspace, on_progress).await.unwrap();
    assert_eq!(last, Some(Progress { done: SIZE, total: Some(SIZE) }));
    let expected = Inspection { format: to, virtual_size: SIZE };
    assert_eq!(qemu.inspect(converted.path()).await.unwrap(), expected);

    let driver = if to == Format::Vhd { "vpc".to_owned() } else { to.to_string() };
    place.qemu(&format!("compare -f {driver} -F raw {} disk.raw", converted.path().display()));
    drop(converted);
    assert_eq!(place.left_in_workspace(), 0);
}

/// Its address space is limited, and a thread that finds none left ends the program. There are as many as the disk is slow.
#[tokio::test]
async fn threads_of_a_conversion_take_little() {
    let place = Place::new();
    let data: Vec<u8> = (0..64 * MIB).map(|n| u8::try_from(n / 4096 % 251).unwrap()).collect();
    fs::write(place.path("disk.raw"), data).unwrap();
    place.qemu("convert -O qcow2 disk.raw image");
    let image = place.path("image");
    let qemu = QemuImg::new(QemuLimits { memory: 128 * MIB, ..QemuLimits::default() });
    let inspection = qemu.inspect(&image).await.unwrap();
    for _ in 0..5 {
        qemu.convert(&image, &inspection, Format::Vhdx, &place.workspace, |_| {}).await.unwrap();
    }
}

#[tokio::test]
async fn a_cd_is_read_as_raw_and_never_made() {
    let (place, qemu) = (Place::new(), qemu());
    let image = place.image(Format::Iso);
    let inspection = qemu.inspect(&image).await.unwrap();
    qemu.convert(&image, &inspection, Format::Qcow2, &place.workspace, |_| {}).await.unwrap();
    let error = qemu.convert(&image, &inspection, Format::Iso, &place.workspace, |_| {}).await.unwrap_err();
    assert_eq!(error.reason(), "UnsupportedFormat");
}

#[tokio::test]
async fn holes_stay_holes() {
    let (place, qemu) = (Place::new(), qemu());
    place.qemu("create -f qcow2 image 10G");
    let image = place.path("image");
    let inspection = qemu.inspect(&image).await.unwrap();
    let converted = qemu.convert(&image, &inspection, Format::Raw, &place.workspace, |_| {}).await.unwrap();
    let metadata = fs::metadata(converted.path()).unwrap();
    assert_eq!(metadata.len(), 10 << 30);
    assert!(metadata.blocks() * 512 < MIB, "{} blocks", metadata.blocks());
}

#[tokio::test]
async fn a_folder_in_memory_serves_too() {
    let (place, qemu, memory) = (Place::new(), qemu(), tempfile::tempdir_in("/dev/shm").unwrap());
    let workspace = Workspace::open(memory.path(), None).unwrap();
    let image = place.image(Format::Raw);
    let inspection = qemu.inspect(&image).await.unwrap();
    let converted = qemu.convert(&image, &inspection, Format::Qcow2, &workspace, |_| {}).await.unwrap();
    qemu.convert(converted.path(), &qemu.inspect(converted.path()).await.unwrap(), Format::Raw, &workspace, |_| {})
        .await
        .unwrap();
}

#[tokio::test]
async fn a_full_disk_is_told_apart_from_a_bad_image() {
    let place = Place::new();
    let full = place.path("full");
    fs::write(
        &full,
        "#!/bin/sh\ncase $1 in convert) exec cat /dev/zero > /dev/full;; *) exec qemu-img \"$@\";; esac\n",
    )
    .unwrap();
    make_executable(&full);
    let qemu = qemu().with_program(&full);
    let image = place.image(Format::Raw);
    let inspection = qemu.inspect(&image).await.unwrap();
    let error = qemu.convert(&image, &inspection, Format::Qcow2, &place.workspace, |_| {}).await.map(drop).unwrap_err();
    assert_eq!((error.reason(), error.actor()), ("NoSpace", Actor::Operator), "{error:?}");
}

/// The disk is a real one, made in a user namespace where the kernel lets everybody do that.
#[tokio::test]
async fn a_disk_that_fills_up_during_the_conversion_is_told_and_left_clean() {
    let place = Place::new();
    let workspace = place.path("workspace");
    let in_namespace = |command: &str| {
        let mount = format!("mount -t tmpfs -o size=1m full {} && {command}", workspace.display());
        format!("unshare --user --map-root-user --mount sh -c '{mount}' \"$@\"")
    };
    if !Command::new("sh").args(["-c", &in_namespace("true")]).status().is_ok_and(|status| status.success()) {
        println!("skipped: no user namespaces here");
        return;
    }
    let program = place.path("on-a-small-disk");
    let convert = in_namespace("exec qemu-img \"$0\" \"$@\"");
    fs::write(&program, format!("#!/bin/sh\ncase $1 in convert) {convert};; *) exec qemu-img \"$@\";; esac\n"))
        .unwrap();
    make_executable(&program);
    let qemu = qemu().with_program(&program);
    let image = place.path("image");
    fs::write(&image, vec![7; usize::try_from(4 * MIB).unwrap()]).unwrap();
    for to in [Format::Raw, Format::Qcow2, Format::Vmdk, Format::Vdi, Format::Vhd, Format::Vhdx] {
        let inspection = Inspection { format: Format::Raw, virtual_size: 4 * MIB };
        let error = qemu.convert(&image, &inspection, to, &place.workspace, |_| {}).await.map(drop).unwrap_err();
        assert_eq!((error.reason(), error.actor()), ("NoSpace", Actor::Operator), "{to}: {error:?}");
        assert_eq!(place.left_in_workspace(), 0);
    }
}

#[tokio::test]
async fn a_damaged_image_fails_and_leaves_nothing() {
    let (place, qemu) = (Place::new(), qemu());
    let image = place.image(Format::Qcow2);
    let inspection = qemu.inspect(&image).await.unwrap();
    // The table of tables points to where none can begin.
    let table = u64::from_be_bytes(fs::read(&image).unwrap()[40..48].try_into().unwrap());
    patch(&image, table, &512_u64.to_be_bytes());
    let error = qemu.convert(&image, &inspection, Format::Raw, &place.workspace, |_| {}).await.map(drop).unwrap_err();
    assert!(matches!(error, Error::ConversionFailed { .. } | Error::Damaged { .. }), "{error:?}");
    assert_eq!(place.left_in_workspace(), 0);
}

#[tokio::test]
async fn a_missing_program_is_the_operators_business() {
    let place = Place::new();
    let image = place.image(Format::Raw);
    let qemu = qemu().with_program("/no/such/qemu-img");
    let error = qemu.inspect(&image).await.unwrap_err();
    assert_eq!((error.reason(), error.actor()), ("ToolUnavailable", Actor::Operator), "{error:?}");
}

#[tokio::test]
async fn too_little_memory_ends_the_program_and_not_the_machine() {
    let place = Place::new();
    let image = place.image(Format::Qcow2);
    let qemu = QemuImg::new(QemuLimits { memory: 4 * MIB, ..QemuLimits::default() });
    assert!(qemu.inspect(&image).await.is_err());
}

#[tokio::test]
async fn a_conversion_out_of_time_is_ended() {
    let place = Place::new();
    let slow = place.path("slow");
    let script = "#!/bin/sh\ncase $1 in convert) exec sleep 100;; *) exec qemu-img \"$@\";; esac\n";
    fs::write(&slow, script).unwrap();
    make_executable(&slow);
    let limits = QemuLimits { convert: Duration::from_secs(1), ..QemuLimits::default() };
    let qemu = QemuImg::new(limits).with_program(&slow);
    let image = place.image(Format::Raw);
    let inspection = qemu.inspect(&image).await.unwrap();
    let since = Instant::now();
    let error = qemu.convert(&image, &inspection, Format::Qcow2, &place.workspace, |_| {}).await.map(drop).unwrap_err();
    assert_eq!(error.reason(), "ConversionFailed");
    assert!(since.elapsed() < Duration::from_secs(20));
    assert_eq!(place.left_in_workspace(), 0);
}

fn make_executable(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
