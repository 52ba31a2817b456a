use std::env;
use std::ffi::OsString;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kupenstack_process::{Failure, Finished, Invocation};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tempfile::TempDir;
use tokio::sync::{OnceCell, Semaphore};
use tracing::debug;

use crate::locks::Locks;
use crate::{
    Answer, Capabilities, ChartRef, Error, Helm, ReleaseRef, ReleaseState, Rendered, Revision, Status, UpgradeOptions,
    Values, arguments, parse_manifests,
};

/// Variables Helm gets from our environment: how to reach the cluster, and chart sources behind a proxy.
const PASSED_ON: [&str; 12] = [
    "PATH",
    "HOME",
    "KUBECONFIG",
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
];
/// The largest answer that is accepted. A release record may not pass 1 MiB, but a rendered chart may.
const MAX_OUTPUT: usize = 64 << 20;
/// Helm marks its release as failed when it is asked to stop; this is its time to do so.
const GRACE: Duration = Duration::from_secs(10);
/// How much of a complaint an error carries.
const MAX_MESSAGE: usize = 2048;
/// Both majors end their error with these words, and say it in no other way (the exit code is always 1).
const NOT_FOUND: &str = "release: not found";
/// As [`NOT_FOUND`].
const PENDING: &str = "another operation (install/upgrade/rollback) is in progress";

/// How Helm is run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The Helm program, a path or a name to be found in `PATH`.
    pub program: PathBuf,
    /// The cluster; none for what the environment says (`KUBECONFIG`, or the pod's own account).
    pub kubeconfig: Option<PathBuf>,
    /// How many Helm processes may run at once; each takes 50 to 100 MB.
    pub concurrency: usize,
    /// How long one Helm process may take.
    pub timeout: Duration,
}

impl Settings {
    /// The program that `HELM_BIN` names, else `helm` in `PATH`; two at once, five minutes each.
    pub fn from_env() -> Self {
        let program = env::var_os("HELM_BIN").map_or_else(|| PathBuf::from("helm"), PathBuf::from);
        Self { program, kubeconfig: None, concurrency: 2, timeout: Duration::from_mins(5) }
    }
}

/// A Helm version, such as `v4.1.4`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    major: u32,
    text: String,
}

impl Version {
    /// The first number.
    pub fn major(&self) -> u32 {
        self.major
    }

    /// As Helm prints it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let major = text.strip_prefix('v')?.split('.').next()?.parse().ok()?;
        Some(Self { major, text: text.to_owned() })
    }
}

/// The real Helm. One value serves the whole process: the limits hold per value.
pub struct Cli {
    settings: Settings,
    environment: Vec<(OsString, OsString)>,
    home: TempDir,
    version: OnceCell<Version>,
    permits: Semaphore,
    locks: Locks,
}

impl Cli {
    /// Finds the program, so that a missing one is told at once and not at the first upgrade. It is not run: as long as
    /// nothing is to be done no process is started.
    pub async fn new(settings: Settings) -> Result<Self, Error> {
        let spawn = |source| Error::Spawn { program: settings.program.display().to_string(), source };
        find(&settings.program).await.map_err(spawn)?;
        let home = tempfile::Builder::new().prefix("kupenstack-helm-").tempdir().map_err(spawn)?;
        Ok(Self {
            environment: environment(&settings, home.path()),
            home,
            version: OnceCell::new(),
            permits: Semaphore::new(settings.concurrency),
            locks: Locks::default(),
            settings,
        })
    }

    /// The version of the program; it is asked once.
    pub async fn version(&self) -> Result<&Version, Error> {
        self.version
            .get_or_try_init(|| async {
                let output = self.run("version", arguments::version(), Vec::new()).await?;
                let text = String::from_utf8_lossy(&output);
                Version::parse(&text)
                    .filter(|version| version.major >= 3)
                    .ok_or_else(|| Error::Output { command: "version", message: format!("`{}`", bounded(&text)) })
            })
            .await
    }

    /// Runs Helm about a release and reads the JSON it prints.
    async fn ask<T: DeserializeOwned>(
        &self,
        command: &'static str,
        release: &ReleaseRef,
        arguments: Vec<OsString>,
    ) -> Result<T, Error> {
        let output = self.run(command, arguments, Vec::new()).await.map_err(|error| about(error, release))?;
        read_json(command, &output)
    }

    async fn run(&self, command: &'static str, arguments: Vec<OsString>, input: Vec<u8>) -> Result<Vec<u8>, Error> {
        // The semaphore is never closed; an error here would mean that, and then there is nothing to wait for.
        let _permit = self.permits.acquire().await.ok();
        debug!(command, "running helm");
        let invocation = Invocation {
            program: self.settings.program.clone(),
            arguments,
            environment: self.environment.clone(),
            directory: self.home.path().to_owned(),
            input,
            limit: self.settings.timeout,
            grace: GRACE,
        };
        match kupenstack_process::run(invocation, MAX_OUTPUT).await {
            Ok((finished, output)) => judge(command, &finished).map(|()| output),
            Err(Failure::Io(source)) => {
                Err(Error::Spawn { program: self.settings.program.display().to_string(), source })
            }
            Err(Failure::Timeout) => Err(Error::Timeout { command, limit: self.settings.timeout }),
            Err(failure) => Err(Error::Output { command, message: failure.to_string() }),
        }
    }

    async fn change(
        &self,
        command: &'static str,
        release: &ReleaseRef,
        arguments: Vec<OsString>,
        input: Vec<u8>,
    ) -> Result<Vec<u8>, Error> {
        // First the release, then a place: whoever waits for a release must not take a place from others.
        let _only_one = self.locks.lock(release).await;
        self.run(command, arguments, input).await.map_err(|error| about(error, release))
    }
}

impl Helm for Cli {
    fn template<'a>(
        &'a self,
        release: &'a ReleaseRef,
        chart: &'a ChartRef,
        values: &'a Values,
        capabilities: &'a Capabilities,
    ) -> Answer<'a, Rendered> {
        Box::pin(async move {
            let arguments = arguments::template(release, chart, capabilities);
            let output = self.run("template", arguments, as_input(values)).await?;
            let unusable = |message| Error::Output { command: "template", message };
            let text = String::from_utf8(output).map_err(|_| unusable("not UTF-8".to_owned()))?;
            let objects = parse_manifests(&text).map_err(|error| unusable(error.to_string()))?;
            Ok(Rendered { objects })
        })
    }

    fn upgrade_install<'a>(
        &'a self,
        release: &'a ReleaseRef,
        chart: &'a ChartRef,
        values: &'a Values,
        options: &'a UpgradeOptions,
    ) -> Answer<'a, Status> {
        Box::pin(async move {
            let arguments = arguments::upgrade_install(release, chart, options, self.version().await?);
            let output = self.change("upgrade", release, arguments, as_input(values)).await?;
            let made: Made = read_json("upgrade", &output)?;
            Ok(Status { revision: made.version, state: made.info.status, hash: Some(options.hash.clone()) })
        })
    }

    fn history<'a>(&'a self, release: &'a ReleaseRef) -> Answer<'a, Vec<Revision>> {
        Box::pin(async move {
            match self.ask("history", release, arguments::history(release)).await {
                Err(Error::ReleaseNotFound { .. }) => Ok(Vec::new()),
                result => result,
            }
        })
    }

    fn status<'a>(&'a self, release: &'a ReleaseRef) -> Answer<'a, Status> {
        Box::pin(async move { self.ask("get all", release, arguments::status(release)).await })
    }

    fn get_values<'a>(&'a self, release: &'a ReleaseRef) -> Answer<'a, Values> {
        Box::pin(async move { Ok(Values::new(self.ask("get values", release, arguments::values(release)).await?)) })
    }

    fn rollback<'a>(&'a self, release: &'a ReleaseRef, revision: u32) -> Answer<'a, ()> {
        Box::pin(async move {
            let arguments = arguments::rollback(release, revision, self.version().await?);
            self.change("rollback", release, arguments, Vec::new()).await.map(drop)
        })
    }

    fn uninstall<'a>(&'a self, release: &'a ReleaseRef) -> Answer<'a, ()> {
        Box::pin(
            async move { self.change("uninstall", release, arguments::uninstall(release), Vec::new()).await.map(drop) },
        )
    }
}

/// The answer of `helm upgrade -o json`, as far as it is used.
#[derive(Deserialize)]
struct Made {
    version: u32,
    info: Info,
}

#[derive(Deserialize)]
struct Info {
    status: ReleaseState,
}

/// Looks for the program as a shell would. Whether it may be run shows when it is.
async fn find(program: &Path) -> io::Result<()> {
    if program.components().count() > 1 {
        return tokio::fs::metadata(program).await.map(drop);
    }
    for folder in env::split_paths(&env::var_os("PATH").unwrap_or_default()) {
        if tokio::fs::metadata(folder.join(program)).await.is_ok() {
            return Ok(());
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

fn environment(settings: &Settings, home: &Path) -> Vec<(OsString, OsString)> {
    let mut environment: Vec<_> =
        PASSED_ON.iter().filter_map(|name| Some((OsString::from(name), env::var_os(name)?))).collect();
    if let Some(kubeconfig) = &settings.kubeconfig {
        environment.retain(|(name, _)| name != "KUBECONFIG");
        environment.push(("KUBECONFIG".into(), kubeconfig.into()));
    }
    // Nobody's plugins, repositories or caches: the same call gives the same answer on every machine.
    for (name, folder) in [("HELM_CACHE_HOME", "cache"), ("HELM_CONFIG_HOME", "config"), ("HELM_DATA_HOME", "data")] {
        environment.push((name.into(), home.join(folder).into()));
    }
    environment
}

/// JSON is YAML, but for characters that YAML takes for line breaks or does not allow. Those can only stand inside of a
/// text, where both have them escaped.
fn as_input(values: &Values) -> Vec<u8> {
    let json = values.as_json().to_string();
    let mut input = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                // writing to a String can't fail
                let _ = write!(input, "\\u{:04x}", u32::from(character));
            }
            _ => input.push(character),
        }
    }
    input.into_bytes()
}

fn read_json<T: DeserializeOwned>(command: &'static str, output: &[u8]) -> Result<T, Error> {
    // The error names a place, never the text: values may be passwords.
    serde_json::from_slice(output).map_err(|error| Error::Output { command, message: error.to_string() })
}

fn judge(command: &'static str, finished: &Finished) -> Result<(), Error> {
    if finished.status.success() {
        return Ok(());
    }
    let message = complaint(&String::from_utf8_lossy(&finished.complaint));
    Err(Error::Failed { command, exit: finished.status.code(), message })
}

/// Tells the two failures apart that call for another step than trying again.
fn about(error: Error, release: &ReleaseRef) -> Error {
    match error {
        Error::Failed { message, .. } if message.ends_with(NOT_FOUND) => {
            Error::ReleaseNotFound { release: release.to_string() }
        }
        Error::Failed { message, .. } if message.ends_with(PENDING) => {
            Error::PendingOperation { release: release.to_string() }
        }
        other => other,
    }
}

/// The error itself, without the warnings before it.
fn complaint(text: &str) -> String {
    let start = text.rfind("\nError: ").map_or(0, |newline| newline + 1);
    let message = &text[start..];
    bounded(message.strip_prefix("Error: ").unwrap_or(message).trim()).to_owned()
}

/// The end of a text that is too long.
fn bounded(text: &str) -> &str {
    let start = text.len().saturating_sub(MAX_MESSAGE);
    &text[text.ceil_char_boundary(start)..]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{MAX_MESSAGE, Version, about, as_input, bounded, complaint};
    use crate::{Error, ReleaseRef, Values};

    #[test]
    fn what_yaml_would_read_in_another_way_is_escaped() {
        let values = json!({"a \u{2028}b": "\u{85}\u{feff}\u{7f}\\ü\u{1f980}\n"});
        let input = as_input(&Values::new(values.clone()));
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&input).unwrap(), values);
        let text = String::from_utf8(input).unwrap();
        assert_eq!(text, "{\"a \\u2028b\":\"\\u0085\\ufeff\\u007f\\\\ü\u{1f980}\\n\"}");
    }

    fn judged(message: &str) -> Error {
        let failed = Error::Failed { command: "upgrade", exit: Some(1), message: complaint(message) };
        about(failed, &ReleaseRef::new("n", "r"))
    }

    #[test]
    fn the_complaint_is_the_error_without_the_warnings() {
        let text = "WARNING: file is readable\nlevel=WARN msg=\"x\"\nError: UPGRADE FAILED: no\nmore of it\n";
        assert_eq!(complaint(text), "UPGRADE FAILED: no\nmore of it");
        assert_eq!(complaint("killed"), "killed");
        assert_eq!(complaint(""), "");
    }

    #[test]
    fn a_long_text_keeps_its_end() {
        let long = format!("{}ä{}", "x".repeat(5000), "y".repeat(MAX_MESSAGE - 1));
        assert_eq!(bounded(&long), "y".repeat(MAX_MESSAGE - 1), "cut between characters");
        assert_eq!(bounded("short"), "short");
    }

    #[test]
    fn failures_that_call_for_another_step_are_told_apart() {
        assert!(matches!(judged("Error: release: not found"), Error::ReleaseNotFound { .. }));
        let pending = "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress";
        assert!(matches!(judged(pending), Error::PendingOperation { .. }));
        assert!(matches!(judged("Error: secrets \"x\" not found"), Error::Failed { .. }));
    }

    #[test]
    fn reads_versions() {
        assert_eq!(Version::parse("v4.1.4\n").unwrap().major(), 4);
        assert_eq!(Version::parse("v3.20.2+g1").unwrap().as_str(), "v3.20.2+g1");
        assert!(Version::parse("4.1").is_none());
    }
}
