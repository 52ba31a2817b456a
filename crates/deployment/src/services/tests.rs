//! What the operator gives a chart is what the chart takes: every service through its real chart.

use kupenstack_api::cluster::ServiceResource;
use kupenstack_helm::{Capabilities, ChartRef, Cli, Helm, ReleaseRef, Settings, Values};
use secrecy::SecretString;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::{
    catalogue::Release,
    config::{Sources, resolve},
    controller::request,
    credentials::Generated,
    exposure,
    service::{Request, Scene, Secrets},
    values,
};

/// Not the one that the charts' own values name.
const RELEASE: &str = "2026.1";

fn read<K>(object: Value) -> Request
where
    K: ServiceResource + kube::Resource<DynamicType = ()> + DeserializeOwned,
{
    request(&serde_json::from_value::<K>(object).unwrap())
}

/// What a pass reads of an object with this spec.
fn parsed(kind: Kind, mut spec: Value) -> Request {
    spec["release"] = json!(RELEASE);
    typed!(kind, read(json!({"metadata": {"name": kind.object(), "namespace": "openstack"}, "spec": spec})))
}

/// What the chart renders for an object with this spec. There are the credentials of the service and of what it depends
/// on, as in a pass.
async fn rendered(kind: Kind, spec: Value) -> Vec<Value> {
    let service = of(kind);
    let request = parsed(kind, spec);
    let release = Release::find(RELEASE).unwrap();
    let mut secrets = Secrets::default();
    for kind in service.dependencies().iter().chain(&[kind]) {
        for generated in of(*kind).credentials() {
            if let Generated::Password(key) = generated {
                secrets.insert(*kind, key, SecretString::from(format!("{}-{key}", kind.object())));
            }
        }
    }
    let configuration = resolve(service, &request, release, &Sources::default()).unwrap();
    let values = Values::new(values::compute(service, &request, release, &secrets, &configuration));
    let helm = Cli::new(Settings::from_env()).await.expect("helm: set HELM_BIN, or run ./dev/test");
    let charts = kupenstack_testkit::repository().join("charts/openstack");
    let (chart, name) = (ChartRef::Path(charts.join(kind.object())), ReleaseRef::new("openstack", kind.object()));
    helm.template(&name, &chart, &values, &Capabilities::default()).await.unwrap().objects
}

fn named<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    objects.iter().find(|o| o["kind"] == kind && o["metadata"]["name"] == name).unwrap()
}

/// The value of an environment variable of the object's container.
fn variable<'a>(object: &'a Value, name: &str) -> &'a str {
    let variables = object["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap();
    variables.iter().find(|v| v["name"] == name).and_then(|v| v["value"].as_str()).unwrap()
}

/// A file of the service's configuration, as the one of these Secrets has it whose name begins like this.
fn file(objects: &[Value], secret: &str, name: &str) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let is_it =
        |o: &&Value| o["kind"] == "Secret" && o["metadata"]["name"].as_str().is_some_and(|n| n.starts_with(secret));
    let data = objects.iter().filter(is_it).find_map(|o| o["data"][name].as_str()).unwrap();
    String::from_utf8(STANDARD.decode(data).unwrap()).unwrap()
}

#[tokio::test]
async fn every_task_of_every_service_has_an_image_of_the_release_and_the_passwords_that_it_needs() {
    for kind in Kind::ALL {
        let objects = rendered(kind, json!({})).await;
        let images: Vec<_> = objects
            .iter()
            .flat_map(|o| ["initContainers", "containers"].map(|list| &o["spec"]["template"]["spec"][list]))
            .flat_map(|list| list.as_array().into_iter().flatten())
            .map(|container| container["image"].as_str().unwrap())
            .collect();
        assert!(!images.is_empty(), "{}", kind.name());
        let strange = images.iter().filter(|image| !image.ends_with(RELEASE) && !image.ends_with("/infra:dev"));
        assert_eq!(strange.collect::<Vec<_>>(), Vec::<&&str>::new(), "{}", kind.name());
    }
}

#[tokio::test]
async fn nodes_with_vms_and_other_nodes_are_chosen_apart() {
    let spec = json!({"computeNodes": {"role": "vms"}, "nodeSelector": {"role": "control"}});
    for kind in Kind::ALL.into_iter().filter(|kind| of(*kind).is_on_compute_nodes()) {
        let objects = rendered(kind, spec.clone()).await;
        let mut daemons = 0;
        for object in &objects {
            let selector = &object["spec"]["template"]["spec"]["nodeSelector"]["role"];
            match object["kind"].as_str().unwrap() {
                "DaemonSet" => {
                    daemons += 1;
                    assert_eq!(selector, "vms", "{}", object["metadata"]["name"]);
                }
                "Deployment" | "StatefulSet" | "Job" => {
                    assert_eq!(selector, "control", "{}", object["metadata"]["name"]);
                }
                _ => {}
            }
        }
        assert_ne!(daemons, 0, "{}", kind.name());
    }
}

#[tokio::test]
async fn the_catalogue_tells_users_the_urls_that_the_status_shows_and_something_leads_there() {
    let expose = json!({"type": "nodePort", "url": "http://192.0.2.10:{port}", "nodePorts": {"glance": 31000}});
    let registered = |objects: &[Value], job: &str| {
        serde_json::from_str::<Value>(variable(named(objects, "Job", job), "SERVICE_ENDPOINTS")).unwrap()
    };
    for kind in [Kind::Glance, Kind::Placement, Kind::Neutron, Kind::Nova] {
        let (name, spec) = (kind.object(), json!({"expose": expose}));
        let objects = rendered(kind, spec.clone()).await;
        let urls = registered(&objects, &format!("{name}-ks-register"));
        let shown = exposure::urls(of(kind), &parsed(kind, spec));
        assert_eq!(urls["public"], shown[name], "{name}");
        let inside = registered(&rendered(kind, json!({})).await, &format!("{name}-ks-register"));
        assert_eq!((&urls["internal"], &inside["public"]), (&inside["internal"], &inside["internal"]), "{name}");
        // where to get a token
        let conf = if kind == Kind::Glance { "glance-api.conf".to_owned() } else { format!("{name}.conf") };
        let line = "www_authenticate_uri = http://192.0.2.10:30500/v3\n";
        assert!(file(&objects, &format!("{name}-etc"), &conf).contains(line), "{name}");
    }
    let objects = rendered(Kind::Nova, json!({"expose": expose})).await;
    for secret in ["nova-etc", "nova-compute"] {
        let line = "novncproxy_base_url = http://192.0.2.10:30608/vnc_lite.html\n";
        assert!(file(&objects, secret, "nova.conf").contains(line), "{secret}");
    }
    assert_eq!(
        exposure::urls(of(Kind::Nova), &parsed(Kind::Nova, json!({"expose": expose})))["console"],
        "http://192.0.2.10:30608/vnc_lite.html"
    );
    let ports = |name: &str| named(&objects, "Service", name)["spec"]["ports"][0]["nodePort"].clone();
    assert_eq!(
        (ports("nova-api"), ports("nova-novncproxy"), ports("nova-metadata")),
        (json!(30774), json!(30608), Value::Null)
    );
    let objects = rendered(Kind::Keystone, json!({"expose": expose})).await;
    assert_eq!(
        variable(named(&objects, "Job", "keystone-bootstrap"), "OS_BOOTSTRAP_PUBLIC_URL"),
        "http://192.0.2.10:30500/v3"
    );

    let expose = json!({"type": "loadBalancer", "url": "https://{service}.cloud.example"});
    let objects = rendered(Kind::Glance, json!({"expose": expose})).await;
    assert_eq!(named(&objects, "Service", "glance")["spec"]["type"], "LoadBalancer");
    assert_eq!(registered(&objects, "glance-ks-register")["public"], "https://glance.cloud.example:443");
}

/// The taints that an object's pods bear with.
fn borne(object: &Value) -> Value {
    object["spec"]["template"]["spec"]["tolerations"].clone()
}

#[tokio::test]
async fn taints_are_respected_unless_they_are_tolerated_by_one_group_of_pods_or_the_other() {
    let control =
        json!([{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}]);
    let vms = json!([{"key": "vms", "value": "only", "effect": "NoExecute", "tolerationSeconds": 30}]);
    let cases = [
        (json!({}), Value::Null, Value::Null),
        (json!({"tolerations": control}), control.clone(), Value::Null),
        (json!({"computeTolerations": vms}), Value::Null, vms.clone()),
        (json!({"tolerations": control, "computeTolerations": vms}), control.clone(), vms.clone()),
    ];
    for kind in Kind::ALL {
        for (spec, of_control_plane, of_nodes) in &cases {
            for object in rendered(kind, spec.clone()).await {
                let (what, name) = (object["kind"].as_str().unwrap(), &object["metadata"]["name"]);
                match what {
                    "DaemonSet" => assert_eq!(borne(&object), *of_nodes, "{name}"),
                    "Deployment" | "StatefulSet" | "Job" => assert_eq!(borne(&object), *of_control_plane, "{name}"),
                    _ => {}
                }
            }
        }
    }
    // gateways are nodes with VMs
    let spec = json!({"gatewayNodes": {"gateway": "yes"}, "computeTolerations": vms});
    assert_eq!(borne(named(&rendered(Kind::Ovn, spec).await, "DaemonSet", "ovn-controller-gw")), vms);
}

#[tokio::test]
async fn networks_outside_are_named_alike_by_ovn_and_neutron() {
    let spec = json!({"datapath": "userspace", "tunnelInterface": "eth1", "gatewayNodes": {"gateway": "yes"},
        "bridgeMappings": {"public": "br-ex", "lab": "br-lab"}, "externalInterfaces": {"br-ex": "eth2"}});
    let objects = rendered(Kind::Ovn, spec).await;
    let gateway = named(&objects, "DaemonSet", "ovn-controller-gw");
    assert_eq!(variable(gateway, "BRIDGE_MAPPINGS"), "lab:br-lab,public:br-ex");
    let switch = named(&objects, "DaemonSet", "ovn-openvswitch-vswitchd");
    let found = ["DATAPATH", "TUNNEL_CARD", "BRIDGE_CARDS"].map(|name| variable(switch, name).trim());
    assert_eq!(found, ["netdev", "eth1", "br-ex=eth2"]);
    let none = rendered(Kind::Ovn, json!({"bridgeMappings": {}})).await;
    assert_eq!(variable(named(&none, "DaemonSet", "ovn-controller"), "BRIDGE_MAPPINGS"), "");

    let objects = rendered(Kind::Neutron, json!({"flatNetworks": ["public", "lab"]})).await;
    assert!(file(&objects, "neutron-etc", "ml2_conf.ini").contains("flat_networks = public,lab\n"));
}

#[tokio::test]
async fn hypervisors_and_the_rest_of_nova_agree() {
    let spec = json!({"virtType": "qemu", "driver": "fake", "conf": {"DEFAULT": {"cpu_allocation_ratio": 3.5}}});
    let objects = rendered(Kind::Nova, spec).await;
    for secret in ["nova-etc", "nova-compute"] {
        let text = file(&objects, secret, "nova.conf");
        for line in
            ["virt_type = qemu", "compute_driver = fake.FakeDriverWithoutFakeNodes", "cpu_allocation_ratio = 3.5"]
        {
            assert!(text.lines().any(|l| l == line), "{secret}: {line}");
        }
        assert!(text.contains("rabbit://nova:rabbitmq-nova-password@"), "{secret}");
        assert!(text.contains("metadata_proxy_shared_secret = \"neutron-metadata-proxy-secret\""), "{secret}");
    }
    // what a user says wins over the fields
    let spec = json!({"virtType": "qemu", "conf": {"libvirt": {"virt_type": "kvm"}}});
    assert!(file(&rendered(Kind::Nova, spec).await, "nova-compute", "nova.conf").contains("virt_type = kvm\n"));
}

/// Nova's own filters, and the one that `nodeSelector` of VMs relies on.
#[tokio::test]
async fn vms_are_put_on_the_nodes_that_they_ask_for() {
    let objects = rendered(Kind::Nova, json!({})).await;
    let filters = "enabled_filters = ComputeFilter,ComputeCapabilitiesFilter,ImagePropertiesFilter,\
                   ServerGroupAntiAffinityFilter,ServerGroupAffinityFilter,AggregateInstanceExtraSpecsFilter\n";
    assert!(file(&objects, "nova-etc", "nova.conf").contains(filters));
    // it is the scheduler's business
    assert!(!file(&objects, "nova-compute", "nova.conf").contains("enabled_filters"));
}

#[tokio::test]
async fn each_file_of_libvirts_is_a_section() {
    let spec = json!({"conf": {"libvirt": {"listen_tcp": 1}, "qemu": {"max_files": 4096, "namespaces": ["mount"]}}});
    let objects = rendered(Kind::Libvirt, spec).await;
    assert!(file(&objects, "libvirt-etc", "libvirtd.conf").contains("listen_tcp = 1\n"));
    let qemu = file(&objects, "libvirt-etc", "qemu.conf");
    assert!(qemu.contains("max_files = 4096\n") && qemu.contains("namespaces = [\"mount\"]\n"), "{qemu}");
}

#[tokio::test]
async fn lp_2150668_nova_is_given_up_without_a_look_only_when_that_is_said() {
    let secrets = Secrets::default();
    for (spec, asks) in [(json!({}), true), (json!({"abandonServers": true}), false)] {
        let mut spec = spec;
        spec["release"] = json!(RELEASE);
        let request = read::<kupenstack_api::cluster::Nova>(json!({"metadata": {"name": "nova"}, "spec": spec}));
        let scene = Scene { request: &request, secrets: &secrets, nodes: 1 };
        // without Keystone's password nobody can be asked
        let answer = of(Kind::Nova).prove_unused(scene).await;
        assert_eq!(answer.is_err(), asks);
        if let Err(why) = answer {
            assert!(why.to_string().contains("spec.abandonServers"), "{why}");
        }
    }
}
