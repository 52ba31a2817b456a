//! A cluster with a simulated cloud, and as many settled images as are wanted.

use std::{collections::BTreeMap, time::Duration};

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use kupenstack_api::{
    FINALIZER,
    cluster::OpenStack,
    resources::{Image, PROJECT_ID},
};
use kupenstack_core::ownership::ClusterId;
use kupenstack_testkit::{
    ControlPlane,
    sim::{self, Sim, SimOptions},
};
use serde_json::json;
use tokio::{
    io::AsyncWriteExt,
    net::TcpListener,
    time::{sleep, timeout},
};

use crate::operator::Operator;

pub(crate) const CLOUD: &str = "cloud";
pub(crate) const OPERATOR: &str = "operator";
const CLUSTER: &str = "6f2b6a2e-1f0a-4a55-9c58-0d4f3ad0f7a1";
/// How long the cloud takes for an answer.
pub(crate) const LATENCY: Duration = Duration::from_millis(20);
/// How many objects are made at a time.
pub(crate) const AT_ONCE: usize = 32;
/// More than anything takes whose time is not the figure in question, on a busy machine too.
const LONGEST: Duration = Duration::from_mins(10);
/// Label of the images that were declared while nothing answered.
const NEW: &str = "bench/new";

/// What is measured, and so has to be there.
pub(crate) struct Scene {
    /// The operator's controllers.
    pub(crate) controllers: &'static str,
    /// Kinds of the services that are ready.
    pub(crate) services: &'static [&'static str],
    /// How long a server is built.
    pub(crate) build_time: Duration,
    /// What the operator writes to, as the API server calls it.
    pub(crate) written: &'static [&'static str],
}

const IMAGES: Scene = Scene {
    controllers: "projects,image,clusterimage",
    services: &["Keystone", "Glance"],
    build_time: Duration::ZERO,
    written: &["images", "clusterimages", "namespaces", "secrets", "events"],
};

pub(crate) struct Stage {
    pub(crate) plane: ControlPlane,
    pub(crate) sim: Sim,
    pub(crate) client: Client,
    pub(crate) namespaces: usize,
    scene: Scene,
}

impl Stage {
    /// A cluster with a cloud that is ready, and namespaces that have no projects yet.
    pub(crate) async fn set(namespaces: usize) -> Self {
        Self::with(namespaces, IMAGES).await
    }

    /// The same for another scene.
    pub(crate) async fn with(namespaces: usize, scene: Scene) -> Self {
        let plane = ControlPlane::start().await;
        let crds: Vec<_> = kupenstack_api::crds::all().iter().map(|crd| serde_json::to_string(crd).unwrap()).collect();
        plane.apply_yaml(&crds.join("\n---\n")).await;
        let options = SimOptions {
            latency: LATENCY,
            build_time: scene.build_time,
            history: Duration::ZERO,
            journal: 1_000_000,
            ..SimOptions::default()
        };
        let (sim, client) = (Sim::start(options), plane.client().await);
        let stage = Self { plane, sim, client, namespaces, scene };
        let names = [CLOUD.to_owned(), OPERATOR.to_owned()].into_iter().chain((0..namespaces).map(namespace));
        let api: Api<Namespace> = Api::all(stage.client.clone());
        for name in names {
            let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
            api.create(&PostParams::default(), &namespace).await.unwrap();
        }
        stage.declare_cloud().await;
        stage
    }

    async fn declare_cloud(&self) {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), CLOUD);
        let text = self.sim.clouds_yaml().replace("\"sim\"", "\"admin\"");
        let secret = json!({"metadata": {"name": "openstack-admin"}, "stringData": {"clouds.yaml": text}});
        secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
        let clouds: Api<OpenStack> = Api::all(self.client.clone());
        let cloud = json!({
            "apiVersion": "cluster.kupenstack.io/v1", "kind": "OpenStack", "metadata": {"name": "default"},
            "spec": {"namespace": CLOUD, "release": "2026.2"},
        });
        clouds.create(&PostParams::default(), &serde_json::from_value(cloud).unwrap()).await.unwrap();
        let ready = |kind| json!({"kind": kind, "ready": true, "reason": "Ready", "message": ""});
        let services: Vec<_> = self.scene.services.iter().map(ready).collect();
        let status = json!({"status": {"clusterId": CLUSTER, "services": services}});
        clouds.patch_status("default", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    }

    /// Starts the operator.
    pub(crate) fn operator(&self, observe_seconds: u64) -> Operator {
        let every = format!("--observe-seconds={observe_seconds}");
        let controllers = format!("--controllers={}", self.scene.controllers);
        let arguments = [&controllers, "--image-sources-allow=127.0.0.0/8", "--without-lease", &every];
        Operator::run("bench", self.plane.kubeconfig_path(), &arguments)
    }

    /// Waits until every namespace has its project.
    pub(crate) async fn projects(&self) {
        let api: Api<Namespace> = Api::all(self.client.clone());
        let done = async || {
            let all = api.list(&ListParams::default()).await.unwrap();
            let done = all.iter().filter(|namespace| namespace.annotations().contains_key(PROJECT_ID)).count();
            // those of the test and `default`
            done > self.namespaces
        };
        until("projects of all namespaces", Duration::from_millis(200), done).await;
    }

    /// Makes settled images: the objects, their status, and what is in the cloud.
    pub(crate) async fn fill(&self, from: usize, to: usize) {
        let api: Api<Namespace> = Api::all(self.client.clone());
        let mut projects = Vec::new();
        for number in 0..self.namespaces {
            projects.push(api.get(&namespace(number)).await.unwrap().annotations()[PROJECT_ID].clone());
        }
        let projects = &projects;
        let made = stream::iter(from..to).map(|number| self.settled(number, &projects[number % projects.len()]));
        made.buffer_unordered(AT_ONCE).for_each(|()| async {}).await;
    }

    async fn settled(&self, number: usize, project: &str) {
        let api: Api<Image> = Api::namespaced(self.client.clone(), &namespace(number % self.namespaces));
        let name = format!("image-{number}");
        let object = json!({
            "apiVersion": "kupenstack.io/v1", "kind": "Image", "metadata": {"name": name, "finalizers": [FINALIZER]},
            "spec": {"src": format!("http://images.example/{number}.img"), "format": "raw"},
        });
        let object = api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
        let cluster: ClusterId = CLUSTER.parse().unwrap();
        let uid = object.uid().unwrap();
        let id = cluster.resource_id(&uid);
        let digest = "0123456789abcdef".repeat(8);
        let now = self.sim.clock().now();
        let mut image = sim::Image::new(id.clone(), project, now);
        image.name = Some(name.clone());
        (image.status, image.size, image.sha512) = ("active", Some(4096), Some(digest.clone()));
        "private".clone_into(&mut image.visibility);
        (image.disk_format, image.container_format) = (Some("raw".to_owned()), Some("bare".to_owned()));
        let mark = cluster.mark(&uid);
        for (key, value) in
            [("kupenstack_mark", mark.as_str()), ("kupenstack_size", "4096"), ("kupenstack_source_format", "raw")]
        {
            image.properties.insert(key.to_owned(), value.to_owned());
        }
        self.sim.cloud().glance.put(now, image);
        let ready = json!({
            "type": "Ready", "status": "True", "reason": "Ready", "message": "active in Glance",
            "observedGeneration": 1, "lastTransitionTime": "2026-11-28T00:00:00Z",
        });
        let status = json!({"status": {
            "conditions": [ready], "observedGeneration": 1, "id": id, "size": 4096, "virtualSize": 4096,
            "digest": format!("sha512:{digest}"), "sourceFormat": "raw",
        }});
        api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    }

    /// Declares images that have still to be made.
    pub(crate) async fn declare(&self, number: usize, src: &str) {
        let made = stream::iter(0..number).map(|number| async move {
            let api: Api<Image> = Api::namespaced(self.client.clone(), &namespace(number % self.namespaces));
            let object = json!({
                "apiVersion": "kupenstack.io/v1", "kind": "Image",
                "metadata": {"name": format!("new-{number}"), "labels": {NEW: ""}},
                "spec": {"src": src, "format": "raw"},
            });
            api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
        });
        made.buffer_unordered(AT_ONCE).for_each(|()| async {}).await;
    }

    /// How many of those are as declared.
    pub(crate) async fn ready(&self) -> usize {
        // whatever the API server has at hand, and nothing but the new ones: it has more to do than to be looked at
        let new = ListParams::default().labels(NEW).match_any();
        let all = Api::<Image>::all(self.client.clone()).list(&new).await.unwrap();
        let conditions =
            |image: &Image| image.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
        all.iter().filter(|image| conditions(image).iter().any(|c| c.type_ == "Ready" && c.status == "True")).count()
    }

    /// How often anything was written to what the operator writes to, by anybody.
    pub(crate) async fn writes(&self) -> u64 {
        self.written().await.values().sum()
    }

    /// The same by verb and resource, such as `APPLY ports/status`.
    pub(crate) async fn written(&self) -> BTreeMap<String, u64> {
        let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
        let metrics = self.client.request_text(request).await.unwrap();
        let mut written = BTreeMap::new();
        for line in metrics.lines().filter(|line| line.starts_with("apiserver_request_total{")) {
            let label = |name: &str| line.split_once(&format!("{name}=\"")).map_or("", |(_, rest)| until_quote(rest));
            let (verb, resource, part) = (label("verb"), label(",resource"), label(",subresource"));
            if ["GET", "LIST", "WATCH"].contains(&verb) || !self.scene.written.contains(&resource) {
                continue;
            }
            let what = if part.is_empty() { format!("{verb} {resource}") } else { format!("{verb} {resource}/{part}") };
            let count = line.rsplit_once(' ').and_then(|(_, count)| count.parse::<u64>().ok()).unwrap();
            *written.entry(what).or_default() += count;
        }
        written
    }

    /// How many requests each service of the cloud was asked.
    pub(crate) fn requests(&self) -> BTreeMap<&'static str, usize> {
        let cloud = self.sim.cloud();
        cloud.journal.entries().fold(BTreeMap::new(), |mut all, entry| {
            *all.entry(entry.service).or_default() += 1;
            all
        })
    }
}

fn until_quote(text: &str) -> &str {
    text.split('"').next().unwrap_or_default()
}

/// Waits for something that is looked at again and again.
pub(crate) async fn until(what: &str, every: Duration, mut holds: impl AsyncFnMut() -> bool) {
    let held = async {
        while !holds().await {
            sleep(every).await;
        }
    };
    assert!(timeout(LONGEST, held).await.is_ok(), "no {what} within {LONGEST:?}");
}

/// Waits for so many passes of a controller.
pub(crate) async fn passed(operator: &Operator, controller: &str, passes: usize) {
    let what = format!("{passes} passes of {controller}");
    until(&what, Duration::from_millis(50), async || operator.passes(controller).await >= passes).await;
}

/// Name of a namespace.
pub(crate) fn namespace(number: usize) -> String {
    format!("bench-{number}")
}

/// Serves a small disk image at every path, and returns its address.
pub(crate) async fn source() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/disk.img", listener.local_addr().unwrap());
    let content: Vec<u8> = (0..4096).map(|index| u8::try_from(index % 251).unwrap()).collect();
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let content = content.clone();
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let _ = tokio::io::AsyncReadExt::read(&mut connection, &mut request).await;
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", content.len());
                let _ = connection.write_all(head.as_bytes()).await;
                let _ = connection.write_all(&content).await;
                let _ = connection.shutdown().await;
            });
        }
    });
    url
}
