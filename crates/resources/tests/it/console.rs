//! The console log of a VM, as a user reads it: through the API server, which passes the request on.

use std::{net::SocketAddr, sync::Arc};

use k8s_openapi::{api::core::v1::Secret, kube_aggregator::pkg::apis::apiregistration::v1::APIService};
use kube::{
    Api, Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use kupenstack_admission::{Issuer, Lifetimes, Settings, TextApi, Webhook};
use kupenstack_api::resources::VirtualMachine;
use kupenstack_resources::Consoles;
use kupenstack_runtime::{Context, metrics::Metrics};
use kupenstack_testkit::sim::Rule;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{
    common::{
        cluster::OPERATOR,
        look::{eventually, id, until, within},
    },
    virtual_machine::{create, meddle, surroundings, vanish},
    world::{Tenant, World},
};

const GROUP: &str = "subresources.kupenstack.io";
const API_SERVICE: &str = "v1.subresources.kupenstack.io";
const SECRET: &str = "kupenstack-webhook";
const SERVICE: &str = "consoles";

/// What serves consoles, and has the API server pass requests on.
struct Door {
    address: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Door {
    async fn open(world: &World) -> Self {
        let secret = format!("{{apiVersion: v1, kind: Secret, metadata: {{name: {SECRET}, namespace: {OPERATOR}}}}}");
        world.plane.apply_yaml(&secret).await;
        let stop = CancellationToken::new();
        let context = Context::new(world.client().await, Arc::<Metrics>::default(), stop.clone());
        let settings = Settings {
            listen: ([127, 0, 0, 1], 0).into(),
            names: vec!["127.0.0.1".to_owned(), format!("{SERVICE}.{OPERATOR}.svc")],
            namespace: OPERATOR.to_owned(),
            object: SECRET.to_owned(),
            api_service: Some(API_SERVICE.to_owned()),
            issuer: Issuer::Own(Lifetimes::default()),
        };
        let texts = TextApi {
            group: GROUP.to_owned(),
            resource: "virtualmachines".to_owned(),
            kind: "VirtualMachine".to_owned(),
            subresource: "log".to_owned(),
            source: Arc::new(Consoles::new(context.client.clone())),
        };
        let webhook = Webhook::bind(settings).await.unwrap().with_texts(texts);
        let address = webhook.address().unwrap();
        let task = tokio::spawn(async move { webhook.run(Vec::new(), context).await.unwrap() });
        world.plane.apply_yaml(&service(address)).await;
        Self { address, stop, task }
    }

    /// Asks it without the API server, with headers that the API server would write.
    async fn ask(&self, world: &World, path: &str, identity: Option<&str>) -> (u16, String) {
        let secrets: Api<Secret> = Api::namespaced(world.client().await, OPERATOR);
        let authority = secrets.get(SECRET).await.unwrap().data.unwrap().remove("ca.crt").unwrap();
        let mut client =
            reqwest::Client::builder().tls_certs_only([reqwest::Certificate::from_pem(&authority.0).unwrap()]);
        if let Some(name) = identity {
            let folder = world.plane.kubeconfig_path().parent().unwrap();
            let pem = ["crt", "key"].map(|part| std::fs::read(folder.join(format!("{name}.{part}"))).unwrap()).concat();
            client = client.identity(reqwest::Identity::from_pem(&pem).unwrap());
        }
        let url = format!("https://{}{path}", self.address);
        let request = client.build().unwrap().get(url);
        let request = request.header("X-Remote-User", "admin").header("X-Remote-Group", "system:masters");
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    async fn close(self) {
        self.stop.cancel();
        within(self.task, "the end of the server").await.unwrap();
    }
}

/// There are no pods for a Service to lead to, so it has the address for a name.
fn service(address: SocketAddr) -> String {
    format!(
        "
apiVersion: v1
kind: Service
metadata: {{name: {SERVICE}, namespace: {OPERATOR}}}
spec: {{type: ExternalName, externalName: {ip}}}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {{name: {API_SERVICE}}}
spec:
  group: {GROUP}
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 15
  service: {{name: {SERVICE}, namespace: {OPERATOR}, port: {port}}}
",
        ip = address.ip(),
        port = address.port()
    )
}

/// Lets a user read consoles in a namespace.
async fn let_read(world: &World, namespace: &str, user: &str) {
    let yaml = format!(
        "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: consoles, namespace: {namespace}}}
rules: [{{apiGroups: [{GROUP}], resources: [virtualmachines/log], verbs: [get]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: consoles, namespace: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: consoles}}
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {user}}}]
"
    );
    world.plane.apply_yaml(&yaml).await;
}

fn path(namespace: &str, name: &str) -> String {
    format!("/apis/{GROUP}/v1/namespaces/{namespace}/virtualmachines/{name}/log")
}

/// A client that asks once: kube's own asks again when a service is unavailable, which kubectl does not.
async fn user(world: &World, name: &str) -> Client {
    let kubeconfig = Kubeconfig::read_from(world.plane.kubeconfig_path()).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    config.default_retry = false;
    config.auth_info.impersonate = Some(name.to_owned());
    config.auth_info.impersonate_groups = Some(vec!["system:authenticated".to_owned()]);
    Client::try_from(config).unwrap()
}

/// The log, or code, reason and message of a refusal.
async fn get(client: &Client, path: &str) -> Result<String, (u16, String, String)> {
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    client.request_text(request).await.map_err(|error| match error {
        kube::Error::Api(status) => (status.code, status.reason, status.message),
        other => panic!("{path}: {other}"),
    })
}

/// A VM with 2000 lines on its console.
async fn talkative(tenant: &Tenant<'_>) -> String {
    surroundings(tenant).await;
    create(tenant, "web", json!({})).await;
    let server = id(&tenant.ready::<VirtualMachine>("web").await);
    let lines = (1..=2000).fold(String::new(), |text, number| text + &format!("line {number}\n"));
    meddle(tenant.world, &server, |server| server.console = lines);
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_read_a_console_reads_it_and_nobody_else() {
    let world = World::start().await;
    world.declare_cloud().await;
    let operator = world.operator();
    let tenant = world.namespace_named("shop", &[]).await;
    talkative(&tenant).await;
    let door = Door::open(&world).await;
    let_read(&world, "shop", "alice").await;
    let alice = user(&world, "alice").await;
    let mallory = user(&world, "mallory").await;

    let web = path("shop", "web");
    eventually("a log", async || get(&alice, &web).await.is_ok()).await;
    let log = get(&alice, &web).await.unwrap();
    assert!(log.starts_with("line 1501\n") && log.ends_with("line 2000\n"), "the last 500 lines: {log:.40}");
    assert_eq!(get(&alice, &format!("{web}?tailLines=2")).await.unwrap(), "line 1999\nline 2000\n");
    let refused = get(&alice, &format!("{web}?tailLines=all")).await.unwrap_err();
    assert_eq!((refused.0, refused.1.as_str()), (400, "BadRequest"));
    // who may not is not told what there is
    for (client, path) in [(&mallory, &web), (&mallory, &path("shop", "none")), (&alice, &path("other", "web"))] {
        let refused = get(client, path).await.unwrap_err();
        assert_eq!((refused.0, refused.1.as_str()), (403, "Forbidden"), "{path}: {refused:?}");
    }
    let refused = get(&alice, &path("shop", "none")).await.unwrap_err();
    let message = r#"virtualmachines.subresources.kupenstack.io "none" not found"#;
    assert_eq!(refused, (404, "NotFound".to_owned(), message.to_owned()));

    // past the API server: a user is who the API server says, and nobody else can say so
    for identity in [None, Some("apiserver")] {
        let (code, answer) = door.ask(&world, &web, identity).await;
        assert!(code == 401 && !answer.contains("line 2000"), "{identity:?}: {code} {answer}");
    }
    let (code, _) = door.ask(&world, &format!("/apis/{GROUP}/v1"), None).await;
    assert_eq!(code, 401);
    let (code, answer) = door.ask(&world, &format!("{web}?tailLines=1"), Some("front-proxy")).await;
    assert_eq!((code, answer.as_str()), (200, "line 2000\n"), "the administrator, whom RBAC lets");
    discovered(&world).await;
    door.close().await;
    operator.stop().await;
}

/// What clients find out about the cluster is all there, and this too.
async fn discovered(world: &World) {
    let client = world.client().await;
    let groups = client.list_api_groups().await.unwrap();
    assert!(groups.groups.iter().any(|group| group.name == GROUP));
    let resources = client.list_api_group_resources(&format!("{GROUP}/v1")).await.unwrap();
    assert_eq!(resources.resources[0].name, "virtualmachines/log");
    let available = |service: &APIService| {
        let conditions = service.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|condition| condition.type_ == "Available" && condition.status == "True")
    };
    until(Api::all(client), API_SERVICE, available).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_console_that_cannot_be_read_now_says_why() {
    let world = World::start().await;
    world.declare_cloud().await;
    let operator = world.operator();
    let tenant = world.namespace_named("shop", &[]).await;
    let door = Door::open(&world).await;
    let_read(&world, "shop", "alice").await;
    let alice = user(&world, "alice").await;
    let web = path("shop", "web");
    eventually("it is served", async || get(&alice, &web).await.is_err_and(|refused| refused.0 == 404)).await;
    create(&tenant, "web", json!({})).await;
    tenant.says::<VirtualMachine>("web", "DependencyNotReady").await;
    let (code, reason, message) = get(&alice, &web).await.unwrap_err();
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    assert!(message.starts_with("the VM has no server yet: Image linux does not exist"), "{message}");
    tenant.api::<VirtualMachine>().delete("web", &kube::api::DeleteParams::default()).await.unwrap();
    crate::common::look::gone(tenant.api::<VirtualMachine>(), "web").await;

    let server = talkative(&tenant).await;
    assert!(get(&alice, &web).await.is_ok());
    world.sim.cloud().faults.add(Rule::down("compute"));
    let (code, reason, message) = get(&alice, &web).await.unwrap_err();
    assert_eq!((code, reason.as_str()), (503, "ServiceUnavailable"), "{message}");
    world.set_down(false);
    world.set_services(&[("Keystone", true), ("Glance", true), ("Nova", false), ("Neutron", true)]).await;
    let (code, _, message) = get(&alice, &web).await.unwrap_err();
    assert_eq!((code, message.as_str()), (503, "Nova is not ready: 1/2 pods"));
    operator.stop().await;
    world.set_services(&[("Keystone", true), ("Glance", true), ("Nova", true), ("Neutron", true)]).await;
    vanish(&world, &server);
    let (code, reason, message) = get(&alice, &web).await.unwrap_err();
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    assert!(message.starts_with("the VM's server is gone"), "{message}");
    door.close().await;
}
