//! Runs of foreign programs that cannot get out of hand: bounded in time and output, alone in a process group that is
//! killed when nobody waits for the run any more.
//!
//! This crate must not know which programs there are, nor what their output means.

use std::ffi::OsString;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

/// How much of the end of the error output is kept.
const MAX_COMPLAINT: usize = 16 << 10;
/// How much is read at once.
const CHUNK: usize = 16 << 10;
/// How long a killed process may take to be gone. It takes a millisecond or two, unless it hangs in the kernel.
const DEATH: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };

/// A program to run and its limits.
#[derive(Debug)]
pub struct Invocation {
    /// A path, or a name to be found in the `PATH` of [`Self::environment`].
    pub program: PathBuf,
    /// Its arguments. Anybody on the machine can read them: no secrets.
    pub arguments: Vec<OsString>,
    /// The whole environment; nothing is inherited.
    pub environment: Vec<(OsString, OsString)>,
    /// The folder it runs in.
    pub directory: PathBuf,
    /// What it reads from its standard input.
    pub input: Vec<u8>,
    /// How long it may run.
    pub limit: Duration,
    /// How long it may take to end by itself when its time is over, before it is killed.
    pub grace: Duration,
}

/// How a run ended.
#[derive(Debug)]
pub struct Finished {
    /// The exit code or signal.
    pub status: ExitStatus,
    /// The end of the error output, 16 KiB at most.
    pub complaint: Vec<u8>,
}

/// A run that did not end by itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The program could not be started, or a pipe to it broke.
    #[error("cannot run the program")]
    Io(#[from] io::Error),
    /// It ran out of time and was ended.
    #[error("the program did not end in time")]
    Timeout,
    /// It printed more than it may and was killed.
    #[error("the program printed too much")]
    TooMuchOutput,
}

/// Runs a program and returns what it printed, `max_output` bytes at most.
pub async fn run(invocation: Invocation, max_output: usize) -> Result<(Finished, Vec<u8>), Failure> {
    let mut output = Vec::new();
    let finished = run_with(invocation, |chunk| {
        if output.len() + chunk.len() > max_output {
            return ControlFlow::Break(());
        }
        output.extend_from_slice(chunk);
        ControlFlow::Continue(())
    })
    .await?;
    Ok((finished, output))
}

/// Runs a program and hands over what it prints as it comes; a `Break` ends the run as [`Failure::TooMuchOutput`].
///
/// Dropping the future kills the program and all it started; the program itself is gone when that returns, so that who
/// gives up a run can hand over to another.
pub async fn run_with(
    invocation: Invocation,
    on_output: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<Finished, Failure> {
    let (limit, grace) = (invocation.limit, invocation.grace);
    let mut child = spawn(&invocation)?;
    let mut group = Group::led_by(&child);
    if let Ok(result) = timeout(limit, converse(&mut child, &invocation.input, on_output)).await {
        if result.is_ok() {
            group.disarm();
        }
        return result;
    }
    group.signal(Signal::TERM);
    // Whether it ends by itself now or is killed a moment later: its time was over.
    let _ = timeout(grace, child.wait()).await;
    Err(Failure::Timeout)
}

fn spawn(invocation: &Invocation) -> io::Result<Child> {
    Command::new(&invocation.program)
        .args(&invocation.arguments)
        .env_clear()
        .envs(invocation.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&invocation.directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

/// Feeds the input and reads both outputs at the same time, so that no full pipe stops the program.
async fn converse(
    child: &mut Child,
    input: &[u8],
    on_output: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<Finished, Failure> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let ((), (), complaint) = tokio::try_join!(feed(stdin, input), read(stdout, on_output), read_tail(stderr))?;
    let status = child.wait().await?;
    Ok(Finished { status, complaint })
}

async fn feed(stdin: Option<ChildStdin>, input: &[u8]) -> Result<(), Failure> {
    let Some(mut stdin) = stdin else { return Ok(()) };
    match stdin.write_all(input).await {
        // A program that ends before it has read everything tells why by its exit code.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}

async fn read(
    pipe: Option<impl AsyncRead + Unpin>,
    mut on_output: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<(), Failure> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    let mut chunk = vec![0; CHUNK];
    loop {
        let length = pipe.read(&mut chunk).await?;
        if length == 0 {
            return Ok(());
        }
        if on_output(&chunk[..length]).is_break() {
            return Err(Failure::TooMuchOutput);
        }
    }
}

async fn read_tail(pipe: Option<impl AsyncRead + Unpin>) -> Result<Vec<u8>, Failure> {
    let mut tail = Vec::new();
    read(pipe, |chunk| {
        tail.extend_from_slice(chunk);
        tail.drain(..tail.len().saturating_sub(MAX_COMPLAINT));
        ControlFlow::Continue(())
    })
    .await?;
    Ok(tail)
}

/// The processes of one run; killed when dropped, unless the run ended by itself.
///
/// Nobody else can get the group's number meanwhile: the leader is not reaped before the run ends.
struct Group(Option<Pid>);

impl Group {
    fn led_by(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // The only error there can be is that nobody is there any more, which is what we want.
            let _ = kill_process_group(group, signal);
        }
    }

    fn disarm(&mut self) {
        self.0 = None;
    }

    /// Waits until the killed leader has ended, and leaves it to the runtime to reap.
    fn outlive(&self) {
        let Some(leader) = self.0 else { return };
        // One that was reaped before is not there any more.
        let Ok(leader) = pidfd_open(leader, PidfdFlags::empty()) else { return };
        let mut ended = [PollFd::new(&leader, PollFlags::IN)];
        let _ = retry_on_intr(|| poll(&mut ended, Some(&DEATH)));
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        self.outlive();
    }
}

#[cfg(test)]
mod tests;
