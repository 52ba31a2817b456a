//! The real Helm, without a cluster.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::{Chart, helm};
use kupenstack_helm::{Capabilities, Cli, Error, Helm, ReleaseRef, Settings, Values};
use rstest::rstest;
use serde_json::{Value, json};
use tempfile::TempDir;

fn release() -> ReleaseRef {
    ReleaseRef::new("some-namespace", "one")
}

#[rstest]
#[tokio::test]
async fn tells_its_version(#[values("helm", "helm3")] label: &str) {
    let Some(helm) = helm(label, None).await else { return };
    let majors = if label == "helm3" { 3..=3 } else { 3..=4 };
    let version = helm.version().await.unwrap();
    assert!(majors.contains(&version.major()), "{}", version.as_str());
    assert!(version.as_str().starts_with('v'));
}

#[rstest]
#[tokio::test]
async fn renders_every_object_with_its_hooks(#[values("helm", "helm3")] label: &str) {
    let Some(helm) = helm(label, None).await else { return };
    let chart = Chart::new(&[]);
    let capabilities = Capabilities {
        kube_version: Some("1.31.7".to_owned()),
        api_versions: vec!["batch/v1".to_owned(), "example.com/v1/Thing".to_owned()],
    };
    let values = Values::new(json!({"greeting": "a: \"b\"\n---\n%c", "secret": "012"}));
    let rendered = helm.template(&release(), &chart.reference(), &values, &capabilities).await.unwrap();
    let kinds: Vec<_> = rendered.objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["Secret", "ConfigMap", "Job"]);
    assert_eq!(rendered.objects[0]["stringData"]["secret"], "012");
    assert_eq!(rendered.objects[1]["data"]["greeting"], "a: \"b\"\n---\n%c");
    let annotations = &rendered.objects[1]["metadata"]["annotations"];
    assert_eq!(annotations, &json!({"served": "true", "kubernetes": "v1.31.7"}));
    assert_eq!(rendered.objects[2]["metadata"]["annotations"]["helm.sh/hook"], "post-install,post-upgrade");
}

#[rstest]
#[tokio::test]
async fn renders_with_the_charts_defaults_when_there_are_no_values(#[values("helm", "helm3")] label: &str) {
    let Some(helm) = helm(label, None).await else { return };
    let chart = Chart::new(&[]);
    for nothing in [Values::default(), Values::new(json!({}))] {
        let rendered = helm.template(&release(), &chart.reference(), &nothing, &Capabilities::default()).await.unwrap();
        assert_eq!(rendered.objects[1]["data"]["greeting"], "hello");
    }
}

#[rstest]
#[tokio::test]
async fn a_broken_chart_is_a_failure_that_tells_why(#[values("helm", "helm3")] label: &str) {
    let chart = Chart::new(&[("templates/broken.yaml", "{{ fail \"no network given\" }}")]);
    let Some(helm) = helm(label, None).await else { return };
    let error = helm.template(&release(), &chart.reference(), &Values::default(), &Capabilities::default()).await;
    let error = error.unwrap_err();
    assert!(matches!(&error, Error::Failed { exit: Some(1), message, .. } if message.contains("no network given")));
    assert_eq!(error.reason(), "HelmFailed");
}

#[tokio::test]
async fn a_missing_program_is_told_at_once() {
    for program in ["/no/such/helm", "no-such-helm"] {
        let settings = Settings { program: program.into(), ..Settings::from_env() };
        assert!(matches!(Cli::new(settings).await, Err(Error::Spawn { .. })), "{program}");
    }
}

#[tokio::test]
async fn another_program_is_no_helm() {
    let settings = Settings { program: "/bin/echo".into(), ..Settings::from_env() };
    let echo = Cli::new(settings).await.unwrap();
    assert!(matches!(echo.version().await, Err(Error::Output { .. })));
}

/// A program that says it is Helm and then does what the script says.
struct Impostor {
    folder: TempDir,
}

impl Impostor {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "#!/bin/sh\ncd {}\nif [ \"$1\" = version ]; then printf v4.9.9; exit 0; fi\n{script}\n",
            folder.path().display()
        );
        fs::write(folder.path().join("helm"), text).unwrap();
        fs::set_permissions(folder.path().join("helm"), fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    async fn helm(&self, timeout: Duration) -> Cli {
        let settings = Settings { program: self.folder.path().join("helm"), timeout, ..Settings::from_env() };
        Cli::new(settings).await.unwrap()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap()
    }
}

#[tokio::test]
async fn values_are_neither_among_the_arguments_nor_in_a_file() {
    let impostor = Impostor::new("printf '%s\\n' \"$@\" > arguments; env > environment; cat > input; echo '{}'");
    let helm = impostor.helm(Duration::from_secs(10)).await;
    let values = Values::new(json!({"password": "hunter2"}));
    let chart = kupenstack_helm::ChartRef::Path(PathBuf::from("/charts/keystone"));
    helm.template(&release(), &chart, &values, &Capabilities::default()).await.unwrap();
    assert_eq!(impostor.read("input"), r#"{"password":"hunter2"}"#);
    let seen = impostor.read("arguments") + &impostor.read("environment");
    assert!(!seen.contains("hunter2"));
    let home = seen.lines().find_map(|line| line.strip_prefix("HELM_CACHE_HOME=")).unwrap();
    let home = Path::new(home).parent().unwrap().to_owned();
    assert!(home.is_dir());
    drop(helm);
    assert!(!home.exists(), "the folder of a Helm that is gone");
}

#[tokio::test]
async fn the_environment_is_only_what_helm_needs() {
    let impostor = Impostor::new("env | sed 's/=.*//' | sort > environment; echo '{}'");
    let helm = impostor.helm(Duration::from_secs(10)).await;
    helm.get_values(&release()).await.unwrap();
    let allowed = [
        "HELM_CACHE_HOME",
        "HELM_CONFIG_HOME",
        "HELM_DATA_HOME",
        "HOME",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "KUBECONFIG",
        "KUBERNETES_SERVICE_HOST",
        "KUBERNETES_SERVICE_PORT",
        "NO_PROXY",
        "OLDPWD",
        "PATH",
        "PWD",
        "SSL_CERT_FILE",
        "http_proxy",
        "https_proxy",
        "no_proxy",
    ];
    let seen = impostor.read("environment");
    let foreign: Vec<_> = seen.lines().filter(|name| !allowed.contains(name)).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
}

#[tokio::test]
async fn a_helm_that_hangs_is_ended() {
    let impostor = Impostor::new("exec sleep 100");
    let helm = impostor.helm(Duration::from_millis(300)).await;
    let since = Instant::now();
    let error = helm.rollback(&release(), 1).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { command: "rollback", .. }), "{error:?}");
    assert!(since.elapsed() < Duration::from_secs(8), "it was not asked to stop");
}

#[tokio::test]
async fn one_change_at_a_time_for_a_release_and_two_helms_in_all() {
    let impostor = Impostor::new(
        "echo start >> log; for word; do case $word in one|two|three) name=$word;; esac; done\n\
         mkdir running-$name || echo clash >> log; ls -d running-* | wc -l >> count\n\
         until [ -e both ]; do [ $(ls -d running-* | wc -l) -lt 2 ] || touch both; sleep 0.01; done\n\
         sleep 0.2; rmdir running-$name",
    );
    let helm = impostor.helm(Duration::from_secs(30)).await;
    let (one, two, three) = (ReleaseRef::new("n", "one"), ReleaseRef::new("n", "two"), ReleaseRef::new("n", "three"));
    let calls = [&one, &one, &one, &two, &three].map(|release| helm.rollback(release, 1));
    for call in futures::future::join_all(calls).await {
        call.unwrap();
    }
    let log = impostor.read("log");
    assert_eq!(log.matches("start").count(), 5);
    assert!(!log.contains("clash"), "two changes of one release at once");
    let most: usize = impostor.read("count").lines().map(|line| line.trim().parse().unwrap()).max().unwrap();
    assert_eq!(most, 2, "Helm processes at once");
}

#[tokio::test]
async fn an_answer_that_is_no_json_is_told_without_its_content() {
    let impostor = Impostor::new("echo '{\"password\": hunter2}'");
    let error = impostor.helm(Duration::from_secs(10)).await.get_values(&release()).await.unwrap_err();
    assert!(matches!(error, Error::Output { .. }));
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
}

#[rstest]
#[tokio::test]
async fn what_the_parser_reads_is_what_helm_means(#[values("helm", "helm3")] label: &str) {
    // `toJson (fromYaml …)` is Helm's own reading, printed in a form that leaves no room for another one.
    const SCALARS: &str =
        "[0555, 0o555, 0x10, 1_000, 1e3, .5, 1.0, 12:30:45, yes, no, on, off, y, n, ~, '', 2026-01-02, 100Mi]";
    let template = format!("own: {SCALARS}\nhelms: {{{{ fromYaml \"own: {SCALARS}\" | toJson }}}}\n");
    let chart = Chart::new(&[("templates/objects.yaml", &template)]);
    let Some(helm) = helm(label, None).await else { return };
    let rendered =
        helm.template(&release(), &chart.reference(), &Values::default(), &Capabilities::default()).await.unwrap();
    let own = rendered.objects[0]["own"].as_array().unwrap();
    let helms = rendered.objects[0]["helms"]["own"].as_array().unwrap();
    for (index, word) in SCALARS.trim_matches(['[', ']']).split(", ").enumerate() {
        assert!(same(&own[index], &helms[index]), "{word}: read as {}, meant as {}", own[index], helms[index]);
    }
}

/// JSON has one kind of number: `1` and `1.0` are the same.
fn same(one: &Value, other: &Value) -> bool {
    one == other || one.as_f64().is_some_and(|number| other.as_f64() == Some(number))
}
