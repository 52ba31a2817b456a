//! A real API server with the operator's chart installed on it, as an administrator would. No operator runs.

use std::{
    ffi::{OsStr, OsString},
    net::SocketAddr,
    path::PathBuf,
    process::{Command, Output},
};

use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind},
};
use kupenstack_api::crds;
use kupenstack_testkit::{ControlPlane, Options, eventually, repository};
use tokio::sync::OnceCell;

use crate::operator::free_address;

pub(crate) const OPERATOR: &str = "kupenstack-system";
pub(crate) const CLOUD: &str = "openstack";

/// The stage that all tests of this binary share.
pub(crate) async fn shared() -> &'static Stage {
    static SHARED: OnceCell<Stage> = OnceCell::const_new();
    SHARED.get_or_init(Stage::set).await
}

pub(crate) struct Stage {
    pub(crate) plane: ControlPlane,
    /// Where the API server looks for the webhook; nobody serves it unless a test does.
    pub(crate) webhook: SocketAddr,
}

impl Stage {
    /// A stage for one test alone. Console logs are off: as long as nobody serves them, clients are told so.
    pub(crate) async fn set() -> Self {
        Self::set_with("consoleLog.enabled=false").await
    }

    /// The same with another value of the chart.
    pub(crate) async fn set_with(value: &str) -> Self {
        // the controller manager fills the roles `view` and `edit`, and checks the types of admission policies
        let plane = ControlPlane::start_with(Options { controller_manager: true, ..Options::default() }).await;
        let stage = Self { plane, webhook: free_address() };
        let chart = repository().join("charts/kupenstack");
        stage.run(
            &helm(),
            [
                "install",
                "kupenstack",
                &chart.display().to_string(),
                "-n",
                OPERATOR,
                "--create-namespace",
                "--set",
                value,
            ],
        );
        stage.find_webhook();
        // it also renews what kubectl believes the server to serve, and fails while anything is not
        let served = || stage.output(&kubectl(), ["api-resources", "--categories=kupenstack", "-o=name"]).stdout;
        let lines = || served().split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).count();
        eventually("our kinds are served", || async { lines() == crds::all().len() }).await;
        stage
    }

    /// There are no pods for the webhook's Service to lead to, so the API server is told an address.
    fn find_webhook(&self) {
        let patch = format!(
            r#"[{{"op": "remove", "path": "/webhooks/0/clientConfig/service"}},
                {{"op": "add", "path": "/webhooks/0/clientConfig/url", "value": "https://{}/validate"}}]"#,
            self.webhook
        );
        let object = "validatingwebhookconfigurations/kupenstack-webhook";
        self.kubectl(["patch", object, "--type=json", "--patch", &patch]);
    }

    /// A client with the rights of one of the operator's accounts.
    pub(crate) async fn account(&self, name: &str) -> Client {
        let groups = ["system:serviceaccounts", "system:serviceaccounts:kupenstack-system", "system:authenticated"];
        self.plane.client_as(&account(name), &groups).await
    }

    /// Output of kubectl, as a person sees it.
    pub(crate) fn kubectl<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> String {
        self.run(&kubectl(), arguments)
    }

    /// Output of kubectl on both channels, whether it succeeds or not.
    pub(crate) fn kubectl_says<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> String {
        let output = self.output(&kubectl(), arguments);
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat()
    }

    fn run<'a>(&self, program: &OsStr, arguments: impl IntoIterator<Item = &'a str>) -> String {
        let output = self.output(program, arguments);
        assert!(output.status.success(), "{}: {}", program.display(), String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    fn output<'a>(&self, program: &OsStr, arguments: impl IntoIterator<Item = &'a str>) -> Output {
        Command::new(program)
            .args(arguments)
            .env("KUBECONFIG", self.plane.kubeconfig_path())
            // what an earlier server at this address served
            .env("KUBECACHEDIR", self.plane.kubeconfig_path().with_file_name("cache"))
            .output()
            .unwrap_or_else(|e| panic!("run {}: {e}", program.display()))
    }
}

fn kubectl() -> OsString {
    let kubebox = PathBuf::from(std::env::var_os("KUPENSTACK_KUBEBOX").expect("checked by the control plane"));
    kubebox.with_file_name("kubectl").into_os_string()
}

/// The user name of one of the operator's accounts.
pub(crate) fn account(name: &str) -> String {
    format!("system:serviceaccount:{OPERATOR}:kupenstack-{name}")
}

fn helm() -> OsString {
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
