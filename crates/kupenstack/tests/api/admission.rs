//! Wrong input is refused at once, by a plain API server, with the field and the remedy.

use kube::{
    Api, ResourceExt,
    api::{DynamicObject, Patch, PatchParams, PostParams, ValidationDirective},
};
use serde_json::{Value, json};

use crate::stage::{objects, shared};

const CLUSTER: &str = "cluster.kupenstack.io";
const RESOURCES: &str = "kupenstack.io";

fn object(group: &str, kind: &str, name: &str, spec: &Value) -> DynamicObject {
    let object = json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": name}, "spec": spec});
    serde_json::from_value(object).unwrap()
}

fn image(spec: &Value) -> DynamicObject {
    object(RESOURCES, "Image", "image", spec)
}

/// The API server's words when it refuses the object.
async fn refusal(api: &Api<DynamicObject>, object: &DynamicObject) -> String {
    let parameters = PostParams { dry_run: true, ..PostParams::default() };
    match api.create(&parameters, object).await {
        Err(kube::Error::Api(status)) => status.message,
        other => panic!("not refused: {other:?}"),
    }
}

async fn refused_edit(api: &Api<DynamicObject>, name: &str, spec: Value) -> String {
    match api.patch(name, &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await {
        Err(kube::Error::Api(status)) => status.message,
        other => panic!("not refused: {other:?}"),
    }
}

fn says(message: &str, words: &[&str]) {
    for word in words {
        assert!(message.contains(word), "{word:?} is not in {message:?}");
    }
}

#[tokio::test]
async fn there_is_one_openstack_and_it_stays_where_it_is() {
    let clouds = objects(shared().await.plane.client().await, CLUSTER, "OpenStack", None);
    let spec = json!({"release": "2026.2"});
    says(&refusal(&clouds, &object(CLUSTER, "OpenStack", "second", &spec)).await, &["the name must be 'default'"]);

    let cloud = object(CLUSTER, "OpenStack", "default", &spec);
    let cloud = clouds.patch("default", &PatchParams::apply("test"), &Patch::Apply(cloud)).await.unwrap();
    assert_eq!(cloud.data["spec"]["namespace"], "openstack");
    says(&refused_edit(&clouds, "default", json!({"namespace": "other"})).await, &["spec.namespace", "can't move"]);
    says(&refused_edit(&clouds, "default", json!({"region": "other"})).await, &["spec.region", "can't be changed"]);
    let edited = json!({"spec": {"services": {"keystone": {"replicas": {"api": 2}}}}});
    clouds.patch("default", &PatchParams::default(), &Patch::Merge(edited)).await.expect("an allowed edit");
}

#[tokio::test]
async fn a_service_object_says_what_is_wrong_with_it() {
    let stage = shared().await;
    let namespace = stage.plane.create_namespace("services").await;
    let keystones = objects(stage.plane.client().await, CLUSTER, "Keystone", Some(&namespace));
    let keystone = |spec: &Value| object(CLUSTER, "Keystone", "keystone", spec);

    let negative = keystone(&json!({"release": "2026.2", "replicas": {"api": -1}}));
    says(&refusal(&keystones, &negative).await, &["spec.replicas.api", "greater than or equal to 0"]);
    says(&refusal(&keystones, &keystone(&json!({"release": "yoga"}))).await, &["spec.release"]);
    let other = object(CLUSTER, "Keystone", "mine", &json!({"release": "2026.2"}));
    says(&refusal(&keystones, &other).await, &["the name must be 'keystone'"]);
}

#[tokio::test]
async fn a_service_has_the_files_and_options_that_it_has_wherever_they_are_set() {
    let stage = shared().await;
    let namespace = stage.plane.create_namespace("files").await;
    let clouds = objects(stage.plane.client().await, CLUSTER, "OpenStack", None);
    let logging = json!({"files": {"logging": {"inline": "x"}}});
    for (kind, own, words) in [
        (
            "Keystone",
            json!({"files": {"paste": {"inline": "x"}}}),
            "files.paste: Keystone has no such file; those it has are",
        ),
        ("MariaDB", logging.clone(), "files.logging: MariaDB has no such file"),
        ("Memcached", logging, "files.logging: Memcached has no such file"),
        (
            "Memcached",
            json!({"conf": {"DEFAULT": {"a": 1}}}),
            "conf: Memcached takes no other options than those of the section",
        ),
    ] {
        let name = kind.to_lowercase();
        let mut spec = own.clone();
        spec["release"] = json!("2026.2");
        let services = objects(stage.plane.client().await, CLUSTER, kind, Some(&namespace));
        says(&refusal(&services, &object(CLUSTER, kind, &name, &spec)).await, &["spec: Invalid", words]);
        let cloud =
            object(CLUSTER, "OpenStack", "other", &json!({"release": "2026.2", "services": {name.clone(): own}}));
        says(&refusal(&clouds, &cloud).await, &[&format!("spec.services.{name}: Invalid"), words]);
    }
}

#[tokio::test]
async fn nothing_is_longer_than_it_can_be_and_a_selector_selects() {
    let stage = shared().await;
    let namespace = stage.plane.create_namespace("bounds").await;
    let glances = objects(stage.plane.client().await, CLUSTER, "Glance", Some(&namespace));
    let long = "x".repeat(600);
    for (field, value, words) in [
        ("images", json!({"api": long}), "may not be more than 512"),
        ("images", json!({long.clone(): "a"}), "the name of a task has at most 128 characters"),
        ("nodeSelector", json!({long.clone(): "a"}), "the name of a label has at most 317 characters"),
        ("conf", json!({long.clone(): {}}), "the name of a section has at most 255 characters"),
        ("volume", json!({"size": "1234567890123Gi"}), "may not be more than 12"),
    ] {
        let spec = json!({"release": "2026.2", field: value});
        says(&refusal(&glances, &object(CLUSTER, "Glance", "glance", &spec)).await, &[&format!("spec.{field}"), words]);
    }
    let clouds = objects(stage.plane.client().await, CLUSTER, "OpenStack", None);
    for (requirement, words) in [
        (
            json!({"key": "a", "operator": "Near", "values": ["b"]}),
            "supported values: \"In\", \"NotIn\", \"Exists\", \"DoesNotExist\"",
        ),
        (json!({"key": "a", "operator": "In"}), "operators In and NotIn need at least one"),
        (json!({"key": "a", "operator": "Exists", "values": ["b"]}), "Exists and DoesNotExist take none"),
    ] {
        let spec = json!({"release": "2026.2", "projects": {"selector": {"matchExpressions": [requirement]}}});
        let message = refusal(&clouds, &object(CLUSTER, "OpenStack", "default", &spec)).await;
        says(&message, &["spec.projects.selector.matchExpressions[0]", words]);
    }
}

#[tokio::test]
async fn nodes_of_pods_and_numbers_of_them_make_sense_wherever_they_are_set() {
    let stage = shared().await;
    let namespace = stage.plane.create_namespace("placement").await;
    let novas = objects(stage.plane.client().await, CLUSTER, "Nova", Some(&namespace));
    let clouds = objects(stage.plane.client().await, CLUSTER, "OpenStack", None);
    let cloud = |spec| object(CLUSTER, "OpenStack", "default", &spec);
    let refused = [
        (
            json!({"tolerations": [{"key": "vms", "operator": "Exists", "value": "x"}]}),
            "tolerations[0]",
            "Exists takes none",
        ),
        (
            json!({"computeTolerations": [{"value": "x"}]}),
            "computeTolerations[0]",
            "without one the operator has to be Exists",
        ),
        (
            json!({"tolerations": [{"key": "a", "effect": "Never"}]}),
            "tolerations[0].effect",
            "supported values: \"NoSchedule\"",
        ),
        (
            json!({"tolerations": [{"key": "a", "tolerationSeconds": 3}]}),
            "tolerations[0]",
            "only for the effect NoExecute",
        ),
        (json!({"replicas": {"conductor": 0}}), "replicas", "conductor: without one no VM is made"),
        (
            json!({"replicas": {"scheduler": 0, "api": 1}}),
            "replicas",
            "scheduler: without one no VM starts; keep one at least",
        ),
    ];
    for (own, field, words) in refused {
        let mut spec = own.clone();
        spec["release"] = json!("2026.2");
        says(&refusal(&novas, &object(CLUSTER, "Nova", "nova", &spec)).await, &[&format!("spec.{field}"), words]);
        let whole = json!({"release": "2026.2", "services": {"nova": own.clone()}});
        says(&refusal(&clouds, &cloud(whole)).await, &[&format!("spec.services.nova.{field}"), words]);
        if own.get("replicas").is_none() {
            says(&refusal(&clouds, &cloud(spec)).await, &[&format!("spec.{field}"), words]);
        }
    }
    let any = json!([{"operator": "Exists"}, {"key": "a"}, {"key": "a", "value": "b", "effect": "NoExecute", "tolerationSeconds": 0}]);
    let spec = json!({"release": "2026.2", "tolerations": any, "computeTolerations": any,
        "replicas": {"api": 0, "conductor": 0, "scheduler": 0}});
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    novas.create(&dry, &object(CLUSTER, "Nova", "nova", &spec)).await.expect("what makes sense");
}

#[tokio::test]
async fn exposure_says_what_is_wrong_with_it() {
    let clouds = objects(shared().await.plane.client().await, CLUSTER, "OpenStack", None);
    let cloud = |expose: &Value| {
        object(CLUSTER, "OpenStack", "default", &json!({"release": "2026.2", "networking": {"expose": expose}}))
    };
    for (expose, words) in [
        (json!({"type": "nodePort", "url": "192.0.2.10:{port}"}), "url: it is http:// or https://"),
        (
            json!({"type": "nodePort", "url": "http://{name}.example:{port}"}),
            "{service} and {port} are the only names in braces",
        ),
        (json!({"type": "nodePort", "url": "http://192.0.2.10:{port}/v3"}), "url: it is http:// or https://"),
        (json!({"type": "nodePort", "url": "http://cloud.example"}), "with type nodePort {port} is enough"),
        (
            json!({"type": "loadBalancer", "url": "http://cloud.example:{port}"}),
            "each service has an address of its own",
        ),
        (
            json!({"type": "loadBalancer", "url": "http://{service}.example", "nodePorts": {"nova": 30000}}),
            "nodePorts: only with type nodePort",
        ),
        (
            json!({"type": "nodePort", "url": "http://{service}.example", "nodePorts": {"cinder": 30000}}),
            "what can be exposed is keystone, glance",
        ),
        (
            json!({"type": "ingress", "url": "http://{service}.example"}),
            "supported values: \"nodePort\", \"loadBalancer\"",
        ),
    ] {
        says(&refusal(&clouds, &cloud(&expose)).await, &["spec.networking.expose", words]);
    }
    let namespace = shared().await.plane.create_namespace("exposed").await;
    let keystones = objects(shared().await.plane.client().await, CLUSTER, "Keystone", Some(&namespace));
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    for url in ["http://192.0.2.10:{port}", "https://{service}.cloud.example", "http://{service}-cloud.example:8080"] {
        let spec =
            json!({"release": "2026.2", "expose": {"type": "nodePort", "url": url, "nodePorts": {"keystone": 31000}}});
        keystones.create(&dry, &object(CLUSTER, "Keystone", "keystone", &spec)).await.expect(url);
    }
}

#[tokio::test]
async fn an_image_says_what_is_wrong_with_it() {
    let stage = shared().await;
    let namespace = stage.plane.create_namespace("images").await;
    let images = objects(stage.plane.client().await, RESOURCES, "Image", Some(&namespace));

    let unknown = refusal(&images, &image(&json!({"src": "http://a.example/i", "format": "floppy"}))).await;
    says(&unknown, &["spec.format", "floppy", "raw", "qcow2", "vmdk", "vdi", "vhd", "vhdx", "iso"]);
    says(&refusal(&images, &image(&json!({"format": "raw"}))).await, &["spec.src"]);
    says(&refusal(&images, &image(&json!({"src": "ftp://a.example/i", "format": "raw"}))).await, &["spec.src"]);
    let short = image(&json!({"src": "http://a.example/i", "format": "raw", "checksum": "sha256:12"}));
    says(&refusal(&images, &short).await, &["spec.checksum"]);

    for name in ["stores_all", "os_glance_x", "visibility"] {
        let property = image(&json!({"src": "http://a.example/i", "format": "raw", "properties": {name: "x"}}));
        says(&refusal(&images, &property).await, &["spec.properties", "can't be set as a property"]);
    }

    let good = image(&json!({"src": "http://a.example/i", "format": "raw"}));
    images.create(&PostParams::default(), &good).await.expect("the paper's first manifest");
    let edit = refused_edit(&images, "image", json!({"src": "http://b.example/i"})).await;
    says(&edit, &["spec.src", "create another Image"]);
    says(&refused_edit(&images, "image", json!({"format": "qcow2"})).await, &["spec.format", "create another Image"]);
}

#[tokio::test]
async fn an_unknown_field_is_refused_or_dropped_but_never_kept() {
    let stage = shared().await;
    let namespace = stage.plane.create_namespace("unknown").await;
    let images = objects(stage.plane.client().await, RESOURCES, "Image", Some(&namespace));
    let mut misspelt = image(&json!({"src": "http://a.example/i", "format": "raw", "chekcsum": "x"}));

    let strict = PatchParams {
        field_validation: Some(ValidationDirective::Strict),
        dry_run: true,
        ..PatchParams::apply("test")
    };
    let refusal = images.patch("image", &strict, &Patch::Apply(&misspelt)).await.unwrap_err().to_string();
    says(&refusal, &["spec.chekcsum"]);
    misspelt.metadata.name = Some("dropped".to_owned());
    let made = images.create(&PostParams::default(), &misspelt).await.unwrap();
    assert!(made.data["spec"].get("chekcsum").is_none(), "{}", made.name_any());
}
