//! Servers of a test run that end with it, whatever becomes of the test.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

/// How much of a log is shown when something fails.
const TAIL: u64 = 3000;

/// Waits for the end of its input, which comes with the end of the test process, be it by a panic, a signal or the exit
/// that runs no destructors; then kills the processes it was told about and removes the folder.
const REAPER: &str = r#"
pids=
while read -r pid; do pids="$pids $pid"; done
# shellcheck disable=SC2086 # a list of numbers
[ -z "$pids" ] || kill -KILL $pids 2>/dev/null
rm -rf -- "$1"
"#;

/// Processes and the folder they work in.
pub(crate) struct Processes {
    folder: PathBuf,
    kubebox: PathBuf,
    reaper: Child,
    told: Option<ChildStdin>,
    running: Vec<(&'static str, Child)>,
}

impl Processes {
    /// A new folder, removed at the end; `kubebox` holds all programs in one file.
    pub(crate) fn new(kubebox: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("kupenstack-testkit-").tempdir()?.keep();
        let mut reaper = Command::new("/bin/sh")
            .args(["-c", REAPER, "reaper"])
            .arg(&folder)
            .current_dir("/")
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let told = reaper.stdin.take();
        Ok(Self { folder, kubebox: kubebox.to_owned(), reaper, told, running: Vec::new() })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts one of kubebox's programs, which it tells apart by the name it is called by.
    pub(crate) fn start(&mut self, name: &'static str, arguments: &[String]) -> io::Result<()> {
        let program = self.folder.join(name);
        if !program.exists() {
            symlink(&self.kubebox, &program)?;
        }
        let log = File::options().create(true).append(true).open(self.log(name))?;
        let child = Command::new(program)
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", &self.folder)
            // they live for minutes: a third of their CPU time would be spent on memory that the machine has
            .env("GOGC", "400")
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .spawn()?;
        if let Some(reaper) = &mut self.told {
            writeln!(reaper, "{}", child.id())?;
        }
        self.running.push((name, child));
        Ok(())
    }

    /// Kills a program that was started, and starts it again.
    pub(crate) fn restart(&mut self, name: &'static str, arguments: &[String]) -> io::Result<()> {
        if let Some(place) = self.running.iter().position(|(running, _)| *running == name) {
            let (_, mut child) = self.running.remove(place);
            child.kill()?;
            child.wait()?;
        }
        self.start(name, arguments)
    }

    /// The first process that has ended although nobody asked it to, and how.
    pub(crate) fn ended(&mut self) -> Option<String> {
        self.running.iter_mut().find_map(|(name, child)| {
            let status = child.try_wait().ok()??;
            Some(format!("{name} ended: {status}"))
        })
    }

    /// The ends of all logs.
    pub(crate) fn tails(&self) -> String {
        let tail = |name| tail(&self.log(name)).unwrap_or_else(|error| error.to_string());
        let tails = self.running.iter().map(|(name, _)| format!("--- {name}.log\n{}", tail(name)));
        tails.collect::<Vec<_>>().join("\n")
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.tails());
        }
        // The reaper kills: the API server would wait for open watches if it were asked politely.
        drop(self.told.take());
        let _ = self.reaper.wait();
        for (_, child) in &mut self.running {
            let _ = child.wait();
        }
    }
}

fn tail(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = fs::metadata(path)?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
