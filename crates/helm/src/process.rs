//! One run of a program: bounded in time and output, and nothing of it left behind.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

/// The largest answer that is accepted. A release record may not pass 1 MiB, but a rendered chart may.
const MAX_OUTPUT: usize = 64 << 20;
/// How much of the end of the error output is kept.
const MAX_COMPLAINT: usize = 16 << 10;
/// Helm marks its release as failed when it is asked to stop; this is its time to do so.
const GRACE: Duration = Duration::from_secs(10);

/// What to run.
pub(crate) struct Invocation<'a> {
    pub(crate) program: &'a Path,
    pub(crate) arguments: Vec<OsString>,
    /// The whole environment.
    pub(crate) environment: &'a [(OsString, OsString)],
    pub(crate) directory: &'a Path,
    /// What the program reads from its standard input.
    pub(crate) input: Vec<u8>,
    pub(crate) limit: Duration,
}

/// How it ended.
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) output: Vec<u8>,
    /// The end of the error output.
    pub(crate) complaint: Vec<u8>,
}

#[derive(Debug)]
pub(crate) enum Failure {
    Io(io::Error),
    Timeout,
    TooMuchOutput,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Runs to the end, or to the time limit. Dropping the future kills the program and all it started.
pub(crate) async fn run(invocation: Invocation<'_>) -> Result<Finished, Failure> {
    let limit = invocation.limit;
    let mut child = Command::new(invocation.program)
        .args(invocation.arguments)
        .env_clear()
        .envs(invocation.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(invocation.directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let mut group = Group::led_by(&child);
    if let Ok(result) = timeout(limit, converse(&mut child, &invocation.input)).await {
        if result.is_ok() {
            group.disarm();
        }
        return result;
    }
    group.signal(Signal::TERM);
    // Whether it ends now or must be killed, it is too late.
    let _ = timeout(GRACE, child.wait()).await;
    Err(Failure::Timeout)
}

/// Feeds the input and reads the outputs at the same time, so that no full pipe stops the program.
async fn converse(child: &mut Child, input: &[u8]) -> Result<Finished, Failure> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let ((), output, complaint) =
        tokio::try_join!(feed(stdin, input), read_bounded(stdout), async { Ok(read_tail(stderr).await?) })?;
    let status = child.wait().await?;
    Ok(Finished { status, output, complaint })
}

async fn feed(stdin: Option<ChildStdin>, input: &[u8]) -> Result<(), Failure> {
    let Some(mut stdin) = stdin else { return Ok(()) };
    match stdin.write_all(input).await {
        // A program that fails before it reads tells why by its exit code.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}

async fn read_bounded(pipe: Option<impl AsyncRead + Unpin>) -> Result<Vec<u8>, Failure> {
    let mut output = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(MAX_OUTPUT as u64 + 1).read_to_end(&mut output).await?;
    }
    if output.len() > MAX_OUTPUT {
        return Err(Failure::TooMuchOutput);
    }
    Ok(output)
}

async fn read_tail(pipe: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut tail = Vec::new();
    let Some(mut pipe) = pipe else { return Ok(tail) };
    let mut chunk = vec![0; 4096];
    loop {
        let read = pipe.read(&mut chunk).await?;
        if read == 0 {
            return Ok(tail);
        }
        tail.extend_from_slice(&chunk[..read]);
        tail.drain(..tail.len().saturating_sub(MAX_COMPLAINT));
    }
}

/// The processes of one run; killed when dropped, unless the run ended by itself.
///
/// The group's number cannot be taken by others meanwhile: its leader is not reaped before the run ends.
struct Group(Option<Pid>);

impl Group {
    fn led_by(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // The only error left is that nobody is there any more, which is what we want.
            let _ = kill_process_group(group, signal);
        }
    }

    fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
