//! The command lines, as pure functions.

use std::ffi::OsString;
use std::path::absolute;

use crate::{Capabilities, ChartRef, HASH_LABEL, ReleaseRef, UpgradeOptions, Version};

pub(crate) fn version() -> Vec<OsString> {
    words(["version", "--template", "{{.Version}}"])
}

pub(crate) fn template(release: &ReleaseRef, chart: &ChartRef, capabilities: &Capabilities) -> Vec<OsString> {
    let mut arguments = words(["template", "--values", "-"]);
    arguments.extend(namespace(release));
    if let Some(version) = &capabilities.kube_version {
        arguments.push(format!("--kube-version={version}").into());
    }
    arguments.extend(capabilities.api_versions.iter().map(|version| format!("--api-versions={version}").into()));
    arguments.extend(named_chart(release, chart));
    arguments
}

pub(crate) fn upgrade_install(
    release: &ReleaseRef,
    chart: &ChartRef,
    options: &UpgradeOptions,
    version: &Version,
) -> Vec<OsString> {
    let mut arguments = words(["upgrade", "--install", "--no-hooks", "--values", "-", "--output", "json"]);
    arguments.extend(namespace(release));
    arguments.push(format!("--history-max={}", options.history_max).into());
    arguments.push(format!("--labels={HASH_LABEL}={}", options.hash).into());
    arguments.extend(overrule_other_writers(version));
    arguments.extend(named_chart(release, chart));
    arguments
}

pub(crate) fn history(release: &ReleaseRef) -> Vec<OsString> {
    about(&["history", "--output", "json"], release)
}

pub(crate) fn metadata(release: &ReleaseRef) -> Vec<OsString> {
    about(&["get", "metadata", "--output", "json"], release)
}

pub(crate) fn values(release: &ReleaseRef) -> Vec<OsString> {
    about(&["get", "values", "--output", "json"], release)
}

pub(crate) fn rollback(release: &ReleaseRef, revision: u32, version: &Version) -> Vec<OsString> {
    let mut arguments = words(["rollback", "--no-hooks", "--history-max=0"]);
    arguments.extend(overrule_other_writers(version));
    arguments.extend(about(&[], release));
    arguments.push(revision.to_string().into());
    arguments
}

pub(crate) fn uninstall(release: &ReleaseRef) -> Vec<OsString> {
    about(&["uninstall", "--no-hooks", "--ignore-not-found"], release)
}

/// Helm 4 applies on the server, where somebody's hand edit of one of our fields is a conflict that fails the whole
/// upgrade. The chart is the truth: overrule it, as Helm 3 always did. Releases made by Helm 3 move over.
fn overrule_other_writers(version: &Version) -> Vec<OsString> {
    if version.major() >= 4 { words(["--server-side=true", "--force-conflicts"]) } else { Vec::new() }
}

fn about(command: &[&str], release: &ReleaseRef) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = command.iter().map(OsString::from).collect();
    arguments.extend(namespace(release));
    arguments.extend(words(["--", &release.name]));
    arguments
}

fn namespace(release: &ReleaseRef) -> [OsString; 1] {
    [format!("--namespace={}", release.namespace).into()]
}

/// The chart's flags and, last, the two positional arguments.
fn named_chart(release: &ReleaseRef, chart: &ChartRef) -> Vec<OsString> {
    let (mut arguments, chart) = match chart {
        // Helm runs in a folder of its own, where a relative path would mean nothing.
        ChartRef::Path(path) => (Vec::new(), absolute(path).unwrap_or_else(|_| path.clone()).into_os_string()),
        ChartRef::Repository { url, name, version } => {
            (vec![format!("--repo={url}").into(), format!("--version={version}").into()], name.into())
        }
        ChartRef::Oci { reference, version } => {
            (version.iter().map(|version| format!("--version={version}").into()).collect(), reference.into())
        }
    };
    arguments.extend(words(["--", &release.name]));
    arguments.push(chart);
    arguments
}

fn words<const N: usize>(words: [&str; N]) -> Vec<OsString> {
    words.into_iter().map(OsString::from).collect()
}
