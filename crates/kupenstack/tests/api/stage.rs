//! A real API server with the operator's chart installed on it, as an administrator would. No operator runs.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind},
};
use kupenstack_api::crds;
use kupenstack_testkit::{ControlPlane, Options};
use tokio::{
    sync::OnceCell,
    time::{sleep, timeout},
};

pub(crate) const OPERATOR: &str = "kupenstack-system";
/// The machine may be busy with other tests.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);
pub(crate) const CLOUD: &str = "openstack";

/// The stage that all tests of this binary share.
pub(crate) async fn shared() -> &'static Stage {
    static SHARED: OnceCell<Stage> = OnceCell::const_new();
    SHARED.get_or_init(Stage::set).await
}

pub(crate) struct Stage {
    pub(crate) plane: ControlPlane,
}

impl Stage {
    async fn set() -> Self {
        // the controller manager fills the roles `view` and `edit`, and checks the types of admission policies
        let stage =
            Self { plane: ControlPlane::start_with(Options { controller_manager: true, ..Options::default() }).await };
        let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/kupenstack");
        stage.run(
            &helm(),
            ["install", "kupenstack", &chart.display().to_string(), "-n", OPERATOR, "--create-namespace"],
        );
        // it also renews what kubectl believes the server to serve
        let served = || stage.kubectl(["api-resources", "--categories=kupenstack", "-o=name"]).lines().count();
        eventually("our kinds are served", || async { served() == crds::all().len() }).await;
        stage
    }

    /// A client with the rights of one of the operator's accounts.
    pub(crate) async fn account(&self, name: &str) -> Client {
        let groups = ["system:serviceaccounts", "system:serviceaccounts:kupenstack-system", "system:authenticated"];
        self.plane.client_as(&account(name), &groups).await
    }

    /// Output of kubectl, as a person sees it.
    pub(crate) fn kubectl<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> String {
        let kubebox = PathBuf::from(std::env::var_os("KUPENSTACK_KUBEBOX").expect("checked by the control plane"));
        self.run(kubebox.with_file_name("kubectl").as_os_str(), arguments)
    }

    fn run<'a>(&self, program: &OsStr, arguments: impl IntoIterator<Item = &'a str>) -> String {
        let output = Command::new(program)
            .args(arguments)
            .env("KUBECONFIG", self.plane.kubeconfig_path())
            // what an earlier server at this address served
            .env("KUBECACHEDIR", self.plane.kubeconfig_path().with_file_name("cache"))
            .output()
            .unwrap_or_else(|e| panic!("run {}: {e}", program.display()));
        assert!(output.status.success(), "{}: {}", program.display(), String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }
}

/// Waits for what the API server does a moment later and offers no watch for.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    let held = async {
        while !holds().await {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(PATIENCE, held).await.unwrap_or_else(|_| panic!("not after {PATIENCE:?}: {what}"));
}

/// The user name of one of the operator's accounts.
pub(crate) fn account(name: &str) -> String {
    format!("system:serviceaccount:{OPERATOR}:kupenstack-{name}")
}

fn helm() -> std::ffi::OsString {
    std::env::var_os("HELM_BIN").unwrap_or_else(|| "helm".into())
}

/// Objects of one of our kinds, without their Rust type: what the API server makes of any text is the question.
pub(crate) fn objects(client: Client, group: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(group, "v1", kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, &format!("{}s", kind.kind.to_lowercase()));
    match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    }
}
