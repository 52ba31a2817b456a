//! The command lines, as pure functions.

use std::ffi::OsString;
use std::path::absolute;

use crate::{Capabilities, ChartRef, ContentHash, HASH_LABEL, ReleaseRef, UpgradeOptions, Version};

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
    arguments.push(format!("--description={}", description(&options.hash)).into());
    arguments.extend(overrule_other_writers(version));
    arguments.extend(named_chart(release, chart));
    arguments
}

/// What `helm history` shows of a revision that we made. Labels are no proof of it: an upgrade by hand inherits them.
pub fn description(hash: &ContentHash) -> String {
    format!("applied by KupenStack, content {hash}")
}

pub(crate) fn history(release: &ReleaseRef) -> Vec<OsString> {
    about(&["history", "--output", "json"], release)
}

/// `helm get metadata` does not show labels before Helm 4, `helm status` shows every secret. A template shows what is
/// asked for, in both.
pub(crate) fn status(release: &ReleaseRef) -> Vec<OsString> {
    let template = format!(
        r#"{{{{with .Release}}}}{{"revision":{{{{.Version}}}},"state":"{{{{.Info.Status}}}}","hash":"{{{{index .Labels "{HASH_LABEL}"}}}}"}}{{{{end}}}}"#
    );
    about(&["get", "all", "--template", &template], release)
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

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::{named_chart, rollback, upgrade_install};
    use crate::{ChartRef, ReleaseRef, UpgradeOptions, Version};

    fn text(arguments: &[OsString]) -> String {
        arguments.iter().map(|argument| argument.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    fn upgrade(version: &str) -> String {
        let options = UpgradeOptions::new("abc".parse().unwrap());
        let chart = ChartRef::Path("/charts/keystone".into());
        let version = Version::parse(version).unwrap();
        text(&upgrade_install(&ReleaseRef::new("openstack", "keystone"), &chart, &options, &version))
    }

    #[test]
    fn upgrades_without_hooks_and_never_wait() {
        assert_eq!(
            upgrade("v3.20.2"),
            "upgrade --install --no-hooks --values - --output json --namespace=openstack --history-max=5 \
             --labels=kupenstack.io/hash=abc --description=applied by KupenStack, content abc -- keystone /charts/keystone"
        );
    }

    #[test]
    fn only_helm_4_is_told_to_overrule_others() {
        let release = ReleaseRef::new("openstack", "keystone");
        for (version, told) in [("v3.20.2", false), ("v4.1.4", true)] {
            assert_eq!(upgrade(version).contains("--server-side=true --force-conflicts"), told);
            let back = text(&rollback(&release, 3, &Version::parse(version).unwrap()));
            assert_eq!(back.contains("--server-side=true --force-conflicts"), told);
            assert!(back.ends_with("--namespace=openstack -- keystone 3") && back.contains("--no-hooks"));
        }
    }

    #[test]
    fn charts_from_elsewhere_are_pinned() {
        let release = ReleaseRef::new("n", "r");
        let repository = ChartRef::Repository { url: "https://c".into(), name: "nova".into(), version: "1.2.3".into() };
        assert_eq!(text(&named_chart(&release, &repository)), "--repo=https://c --version=1.2.3 -- r nova");
        let oci = |version: Option<&str>| ChartRef::Oci {
            reference: "oci://h/nova".into(),
            version: version.map(Into::into),
        };
        assert_eq!(text(&named_chart(&release, &oci(Some("1.2.3")))), "--version=1.2.3 -- r oci://h/nova");
        assert_eq!(text(&named_chart(&release, &oci(None))), "-- r oci://h/nova");
    }
}
