use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kupenstack_process::{Failure, Finished, Invocation, run, run_with};
use serde::Deserialize;
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::progress::Percentage;
use crate::{Error, Format, Progress, Scratch, Workspace, header};

/// Sets limits that cannot be raised again, then becomes the program. `$1` … `$3`: memory in KiB, processor time in
/// seconds, file size in 512-byte blocks. Stacks are small, since each thread takes a whole one of the memory, and where
/// the disk is slow there are many threads.
const LIMITED: &str =
    r#"ulimit -c 0 && ulimit -s 2048 && ulimit -v "$1" && ulimit -t "$2" && ulimit -f "$3" && shift 3 && exec "$@""#;
/// The shell's exit code for a program that is not there.
const NOT_THERE: i32 = 127;
/// The description of one image is a few kilobytes.
const MAX_OUTPUT: usize = 1 << 20;
/// The flag that opens a file past the page cache.
const DIRECT: i32 = rustix::fs::OFlags::DIRECT.bits().cast_signed();
const MAX_MESSAGE: usize = 1024;
/// What the system says when a disk, or somebody's share of it, is full.
const FULL: [&str; 2] = ["No space left on device", "Disk quota exceeded"];

/// What `qemu-img` may cost. Its input comes from strangers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QemuLimits {
    /// Its address space in bytes.
    pub memory: u64,
    /// How long it may look at an image.
    pub inspect: Duration,
    /// How long it may convert one.
    pub convert: Duration,
    /// The largest disk an image may unfold to, in bytes.
    pub max_virtual_size: u64,
    /// The largest file a conversion may make, in bytes; holes count, as they are uploaded.
    pub max_output: u64,
}

impl Default for QemuLimits {
    /// 1 GiB of memory, 30 s to inspect, 2 h to convert, disks of 2 TiB, files of 1 TiB as Glance's `image_size_cap`.
    fn default() -> Self {
        Self {
            memory: 1 << 30,
            inspect: Duration::from_secs(30),
            convert: Duration::from_hours(2),
            max_virtual_size: 2 << 40,
            max_output: 1 << 40,
        }
    }
}

/// What an image is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// The format, by its own bytes.
    pub format: Format,
    /// The size of the disk in it, in bytes.
    pub virtual_size: u64,
}

/// The program `qemu-img`, run with limits on memory, time and output.
#[derive(Clone, Debug)]
pub struct QemuImg {
    program: PathBuf,
    limits: QemuLimits,
}

impl QemuImg {
    /// `qemu-img` from the `PATH`.
    pub fn new(limits: QemuLimits) -> Self {
        Self { program: "qemu-img".into(), limits }
    }

    /// Another program in its place.
    #[must_use]
    pub fn with_program(self, program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), ..self }
    }

    /// Tells what an image is, and refuses one that needs other files, a key, or more room than allowed.
    pub async fn inspect(&self, path: &Path) -> Result<Inspection, Error> {
        let image = path.to_owned();
        let format = spawn_blocking(move || header::detect(&image))
            .await
            .map_err(|error| Error::io("read the image")(error.into()))??;
        let arguments = ["info", "--output=json", "-f", format.driver()].map(OsString::from);
        let info: Info = self.describe(arguments, path).await?;
        info.check(path)?;
        if info.virtual_size > self.limits.max_virtual_size {
            return Err(Error::TooLarge { bytes: info.virtual_size, limit: self.limits.max_virtual_size });
        }
        Ok(Inspection { format, virtual_size: info.virtual_size })
    }

    /// Converts an inspected image into a new file of the workspace. Dropping the future ends the conversion.
    pub async fn convert(
        &self,
        path: &Path,
        image: &Inspection,
        to: Format,
        workspace: &Workspace,
        on_progress: impl FnMut(Progress) + Send,
    ) -> Result<Scratch, Error> {
        if to == Format::Iso {
            return Err(Error::NoConversion { from: image.format, to });
        }
        let converted = self.room(path, image, to, workspace).await?;
        let mut arguments: Vec<OsString> =
            ["convert", "-p", "-f", image.format.driver(), "-O", to.driver()].map(OsString::from).into();
        arguments.extend(["-T", caching(path), "-t", caching(converted.path())].map(OsString::from));
        arguments.extend(options(to).iter().map(OsString::from));
        arguments.extend([path.into(), converted.path().into()]);
        let mut percentage = Percentage::new(image.virtual_size, on_progress);
        let run = self.invocation(arguments, self.limits.convert, largest_output(image.virtual_size));
        let finished = run_with(run, |printed| {
            percentage.read(printed);
            ControlFlow::Continue(())
        })
        .await;
        let failed = |message| Error::ConversionFailed { from: image.format, to, message };
        match finished {
            Ok(finished) => judge(&finished, failed).map(|()| converted),
            Err(Failure::Timeout) => Err(failed(format!("not done within {:?}", self.limits.convert))),
            Err(failure) => Err(unrunnable(&failure)),
        }
    }

    /// A file for the result, with room for what it will take, beside the source.
    async fn room(&self, path: &Path, image: &Inspection, to: Format, workspace: &Workspace) -> Result<Scratch, Error> {
        let content = self.measure(path, image).await?;
        let length = if to == Format::Raw { image.virtual_size } else { content };
        if length > self.limits.max_output {
            return Err(Error::TooLarge { bytes: length, limit: self.limits.max_output });
        }
        let source = tokio::fs::metadata(path).await.map_err(Error::io("look at the image"))?.len();
        let converted = workspace.scratch()?;
        converted.reserve_beside(content, source)?;
        Ok(converted)
    }

    /// How many bytes the image's content takes, holes left out.
    async fn measure(&self, path: &Path, image: &Inspection) -> Result<u64, Error> {
        // qcow2 is the format for which `qemu-img` counts the data and not the size of the disk.
        let arguments = ["measure", "--output=json", "-O", "qcow2", "-f", image.format.driver()].map(OsString::from);
        let measured: Measured = self.describe(arguments, path).await?;
        Ok(measured.required)
    }

    /// Runs a command that describes the image in JSON.
    async fn describe<T: for<'de> Deserialize<'de>>(
        &self,
        arguments: impl IntoIterator<Item = OsString>,
        path: &Path,
    ) -> Result<T, Error> {
        let damaged = |message| Error::Damaged { message };
        let arguments = arguments.into_iter().chain([path.into()]).collect();
        match run(self.invocation(arguments, self.limits.inspect, 0), MAX_OUTPUT).await {
            Ok((finished, output)) => {
                judge(&finished, damaged)?;
                serde_json::from_slice(&output).map_err(|error| damaged(error.to_string()))
            }
            Err(Failure::Timeout) => Err(damaged(format!("not understood within {:?}", self.limits.inspect))),
            Err(failure) => Err(unrunnable(&failure)),
        }
    }

    fn invocation(&self, arguments: Vec<OsString>, limit: Duration, largest_file: u64) -> Invocation {
        let limits = [self.limits.memory >> 10, limit.as_secs().max(1), largest_file.div_ceil(512)];
        let mut shell: Vec<OsString> = ["-c", LIMITED, "qemu-img"].map(OsString::from).into();
        shell.extend(limits.map(|limit| limit.to_string().into()));
        shell.push(self.program.clone().into());
        shell.extend(arguments);
        Invocation {
            program: "/bin/sh".into(),
            arguments: shell,
            environment: vec![
                ("PATH".into(), path_variable()),
                ("LC_ALL".into(), "C".into()),
                // one heap for all threads, for the same reason as small stacks
                ("MALLOC_ARENA_MAX".into(), "1".into()),
            ],
            directory: "/".into(),
            input: Vec::new(),
            limit,
            grace: Duration::ZERO,
        }
    }
}

fn path_variable() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| OsStr::new("/usr/bin:/bin").to_owned())
}

/// How `qemu-img` reads or writes a file: past the page cache, where a large image would push out everything else and
/// count as memory of our pod, unless the file system (an old tmpfs) cannot do that.
fn caching(path: &Path) -> &'static str {
    let direct = OpenOptions::new().read(true).custom_flags(DIRECT).open(path);
    if direct.is_ok() { "none" } else { "writeback" }
}

/// What a new image gets besides its format.
fn options(to: Format) -> &'static [&'static str] {
    match to {
        // Otherwise the size is rounded to what old BIOSes could address, and the end of the disk is lost.
        Format::Vhd => &["-o", "force_size=on"],
        _ => &[],
    }
}

/// The disk, and what a format adds to it at most.
fn largest_output(virtual_size: u64) -> u64 {
    virtual_size.saturating_add(virtual_size / 64).saturating_add(64 << 20)
}

fn judge(finished: &Finished, failed: impl FnOnce(String) -> Error) -> Result<(), Error> {
    if finished.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&finished.complaint);
    let message = text.trim();
    if finished.status.code() == Some(NOT_THERE) {
        return Err(Error::ToolUnavailable { message: message.to_owned() });
    }
    if FULL.iter().any(|full| message.contains(full)) {
        return Err(Error::NoSpace { needed: None });
    }
    let end = message.char_indices().nth(MAX_MESSAGE).map_or(message.len(), |(index, _)| index);
    Err(failed(format!("{} ({})", &message[..end], finished.status)))
}

fn unrunnable(failure: &Failure) -> Error {
    Error::ToolUnavailable { message: failure.to_string() }
}

/// The answer of `qemu-img info`, as far as it is used.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Info {
    virtual_size: u64,
    backing_filename: Option<String>,
    #[serde(default)]
    encrypted: bool,
    #[serde(default)]
    format_specific: Value,
}

#[derive(Deserialize)]
struct Measured {
    required: u64,
}

impl Info {
    /// The second look, with `qemu-img`'s own eyes, at what the header was checked for already.
    fn check(&self, path: &Path) -> Result<(), Error> {
        let refuse = |message: &str| Err(Error::UnsafeImage { message: message.to_owned() });
        if self.backing_filename.is_some() {
            return refuse("it has a backing file");
        }
        if self.encrypted {
            return refuse("it is encrypted");
        }
        if self.format_specific.pointer("/data/data-file").is_some() {
            return refuse("its data is in another file");
        }
        let extents = self.format_specific.pointer("/data/extents").and_then(Value::as_array);
        let is_own = |extent: &Value| extent["filename"].as_str() == path.to_str();
        if extents.is_some_and(|extents| !extents.iter().all(is_own)) {
            return refuse("its data is in other files");
        }
        Ok(())
    }
}
