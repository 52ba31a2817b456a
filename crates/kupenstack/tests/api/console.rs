//! Console logs of VMs as the chart sets them up, served by a program with the rights of its account and no more.

use kube::api::PostParams;
use kupenstack_testkit::eventually;
use serde_json::json;

use crate::{
    operator::{Operator, free_address},
    process::{acting_as, refusals},
    rights::check,
    stage::{OPERATOR, Stage, account, objects},
};

const API_SERVICE: &str = "apiservices/v1.subresources.kupenstack.io";
const SERVICE: &str = "kupenstack-subresources";

/// An operator that can be asked by API servers, and where.
fn serving(stage: &Stage, name: &str, controllers: &str, certificate: &str) -> (Operator, u16) {
    let address = free_address();
    let arguments = ["--controllers", controllers, "--webhook-certificate", certificate, "--console-log"];
    let names = format!("--webhook-name={SERVICE}.{OPERATOR}.svc,127.0.0.1");
    let listen = format!("--webhook-listen={address}");
    let arguments = [&arguments[..], &[names.as_str(), listen.as_str()]].concat();
    (Operator::run(name, &acting_as(stage, name), &arguments), address.port())
}

/// There are no pods for the Service to lead to, so it has an address for a name.
fn lead_to(stage: &Stage, port: u16) {
    let patch = json!({"spec": {"type": "ExternalName", "externalName": "127.0.0.1", "clusterIP": null,
        "clusterIPs": null, "selector": null}});
    stage.kubectl(["patch", "service", SERVICE, "-n", OPERATOR, "--type=merge", "--patch", &patch.to_string()]);
    let patch = json!({"spec": {"service": {"port": port}}});
    stage.kubectl(["patch", API_SERVICE, "--type=merge", "--patch", &patch.to_string()]);
}

#[tokio::test]
async fn who_may_edit_reads_consoles_with_kubectl_and_who_may_view_does_not() {
    let stage = &Stage::set_with("consoleLog.enabled=true").await;
    let namespace = stage.plane.create_namespace("consoles").await;
    let vms = objects(stage.plane.client().await, "kupenstack.io", "VirtualMachine", Some(&namespace));
    let vm = json!({"apiVersion": "kupenstack.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web"},
        "spec": {"image": "linux", "flavor": "small", "networks": [{"network": "net"}]}});
    vms.create(&PostParams::default(), &serde_json::from_value(vm).unwrap()).await.expect("a VM");
    for role in ["view", "edit"] {
        let binding = format!("--clusterrole={role}");
        stage.kubectl(["create", "rolebinding", role, &binding, &format!("--user={role}er"), "-n", &namespace]);
    }
    let (keeper, _) = serving(stage, "cloud", "memcached", "keep");
    let (reader, port) = serving(stage, "resources", "projects", "read");
    lead_to(stage, port);
    let path = format!("/apis/subresources.kupenstack.io/v1/namespaces/{namespace}/virtualmachines/web/log");
    let says = |user: &str| stage.kubectl_says(["get", "--raw", &path, &format!("--as={user}")]);

    eventually("it is served", || async { says("editer").contains("the VM has no server yet") }).await;
    assert!(says("viewer").contains("forbidden"), "{}", says("viewer"));
    assert!(says("nobody").contains("forbidden"), "{}", says("nobody"));
    eventually("clients find all that is served", || async {
        let output = stage.kubectl_says(["api-resources", "-o=name"]);
        output.contains("virtualmachines.kupenstack.io") && !output.contains("rror")
    })
    .await;

    let read = format!("get subresources.kupenstack.io/virtualmachines:log {namespace} web");
    check(stage, "editer", &[&read], &[]).await;
    check(stage, "viewer", &[], &[&read]).await;
    let announce = "patch apiregistration.k8s.io/apiservices - v1.subresources.kupenstack.io";
    let review = "create authorization.k8s.io/subjectaccessreviews - -";
    let proxy = "get configmaps kube-system extension-apiserver-authentication";
    let others = [
        "patch apiregistration.k8s.io/apiservices - v1.apps",
        "create apiregistration.k8s.io/apiservices - -",
        "get configmaps kube-system other",
    ];
    check(stage, &account("cloud"), &[announce], &[&others[..], &[review, proxy, &read]].concat()).await;
    check(stage, &account("resources"), &[review, proxy], &[&others[..], &[announce, &read]].concat()).await;
    for operator in [reader, keeper] {
        let log = operator.stop().await;
        assert_eq!(refusals(&log), Vec::<&str>::new());
    }
}
