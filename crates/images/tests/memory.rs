//! No image is ever held in memory. Alone in its binary, since it measures the whole process.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::pin::pin;

use futures::TryStreamExt;
use kupenstack_images::{FetchSettings, Fetcher, Format, Guard, ImageFile, QemuImg, QemuLimits, Source, Workspace};

const MIB: u64 = 1 << 20;
/// Twenty times what may be used.
const IMAGE: u64 = 640 * MIB;
const ALLOWED: u64 = 32 * MIB;

#[tokio::test]
async fn an_image_is_fetched_inspected_converted_and_read_in_bounded_memory() {
    rustls::crypto::ring::default_provider().install_default().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let workspace = Workspace::open(folder.path(), None).unwrap();
    let source = Source::http(&serve_noise(), None).unwrap();
    let guard = Guard::new(vec!["127.0.0.0/8".parse().unwrap()], Vec::new());
    let fetcher = Fetcher::new(FetchSettings { guard, ..FetchSettings::default() }).unwrap();
    let qemu = QemuImg::new(QemuLimits::default());

    let before = anonymous_memory();
    let mut most = before;
    let mut look = || most = most.max(anonymous_memory());

    let download = fetcher.fetch(&source, &workspace, |_| look()).await.unwrap();
    assert_eq!(download.bytes, IMAGE);
    let inspection = qemu.inspect(download.file.path()).await.unwrap();
    let to = Format::Qcow2;
    let converted = qemu.convert(download.file.path(), &inspection, to, &workspace, |_| look()).await.unwrap();
    let upload = ImageFile::open(converted.path()).await.unwrap();
    assert!(upload.length > IMAGE, "no holes, so the converted image is no smaller");
    let mut stream = pin!(upload.into_stream());
    while stream.try_next().await.unwrap().is_some() {
        look();
    }

    let grown = most - before;
    println!("{} MiB more memory for an image of {} MiB", grown / MIB, IMAGE / MIB);
    assert!(grown < ALLOWED, "memory grew by {} MiB for an image of {} MiB", grown / MIB, IMAGE / MIB);
}

/// Serves a disk without holes.
fn serve_noise() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1024]).unwrap();
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {IMAGE}\r\n\r\n").unwrap();
        let chunk: Vec<u8> = (0..MIB).map(|index| u8::try_from(index % 255 + 1).unwrap()).collect();
        for _ in 0..IMAGE / MIB {
            stream.write_all(&chunk).unwrap();
        }
    });
    format!("http://{address}/disk.img")
}

/// Bytes of this process that are neither a file's nor shared.
fn anonymous_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}
