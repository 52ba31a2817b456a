//! What the cloud's spec comes to for each of its services.

use super::*;

fn cloud(spec: Value) -> OpenStack {
    let whole = merge::layers([json!({"release": "2026.2"}), spec]);
    OpenStack::new("default", serde_json::from_value(whole).unwrap())
}

#[test]
fn options_for_all_services_reach_those_that_oslo_config_reads() {
    let conf = json!({"DEFAULT": {"debug": true}});
    let from = json!([{"configMapRef": {"name": "all"}}]);
    let cloud = cloud(json!({"common": {"conf": conf, "confFrom": from}}));
    for kind in [Kind::Keystone, Kind::Glance, Kind::Placement, Kind::Neutron, Kind::Nova] {
        let spec = declared(kind, &cloud);
        assert_eq!((&spec["commonConf"], &spec["commonConfFrom"]), (&conf, &from));
    }
    for kind in [Kind::MariaDB, Kind::Memcached, Kind::RabbitMQ, Kind::Ovn, Kind::Libvirt] {
        assert_eq!(declared(kind, &cloud), json!({"release": "2026.2", "region": "default"}));
    }
}

#[test]
fn snap_openstack_2159042_what_one_service_sets_changes_no_other() {
    let common = json!({"common": {"conf": {"DEFAULT": {"debug": true}}}});
    let before = cloud(common.clone());
    let glance = json!({"services": {"glance": {"conf": {"DEFAULT": {"debug": false}}, "replicas": {"api": 0}}}});
    let after = cloud(merge::layers([common, glance]));
    for kind in Kind::ALL {
        let same = declared(kind, &before) == declared(kind, &after);
        assert_eq!(same, kind != Kind::Glance, "{}", kind.name());
    }
}

#[test]
fn taints_are_borne_with_by_what_the_cloud_says_unless_the_service_says_it_itself() {
    let (any, gpu, vms) = (
        json!([{"operator": "Exists"}]),
        json!([{"key": "gpu", "value": "yes"}]),
        json!([{"key": "vms", "operator": "Exists"}]),
    );
    let all = json!({"tolerations": any, "computeTolerations": vms});
    let cloud = cloud(merge::layers([
        all,
        json!({"services": {
        "glance": {"tolerations": gpu}, "nova": {"computeTolerations": gpu}}}),
    ]));
    for kind in Kind::ALL {
        let spec = declared(kind, &cloud);
        assert_eq!(
            spec["tolerations"],
            if kind == Kind::Glance { gpu.clone() } else { any.clone() },
            "{}",
            kind.name()
        );
        let there = services::of(kind).is_on_compute_nodes();
        let expected = if kind == Kind::Nova { gpu.clone() } else { vms.clone() };
        assert_eq!(spec["computeTolerations"], if there { expected } else { Value::Null }, "{}", kind.name());
    }
}

#[test]
fn only_what_users_ask_is_exposed() {
    let expose = json!({"type": "nodePort", "url": "http://192.0.2.10:{port}"});
    let cloud = cloud(json!({"networking": {"expose": expose}}));
    for kind in Kind::ALL {
        let asked = [Kind::Keystone, Kind::Glance, Kind::Placement, Kind::Neutron, Kind::Nova].contains(&kind);
        assert_eq!(
            declared(kind, &cloud)["expose"],
            if asked { expose.clone() } else { Value::Null },
            "{}",
            kind.name()
        );
    }
}

#[test]
fn vms_are_not_part_of_a_cloud_unless_asked_for() {
    let wanted = |cloud: &OpenStack| {
        Kind::ALL.map(|k| enabled(k, cloud).then(|| k.object())).into_iter().flatten().collect::<Vec<_>>()
    };
    assert_eq!(wanted(&cloud(json!({}))), ["mariadb", "memcached", "keystone", "glance"]);
    let asked = cloud(json!({"services": {"rabbitmq": {"enabled": true}, "glance": {"enabled": false}}}));
    assert_eq!(wanted(&asked), ["mariadb", "memcached", "keystone", "rabbitmq"]);
}

/// The admission rules are text in the API's types, the dependencies are data here.
#[test]
fn admission_refuses_to_switch_off_exactly_what_others_need() {
    let crds = json!(kupenstack_api::crds::all());
    let crd = crds.as_array().unwrap().iter().find(|c| c["spec"]["names"]["kind"] == "OpenStack").unwrap();
    let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let rules = spec["properties"]["services"]["x-kubernetes-validations"].as_array().unwrap();
    let mut expected = Vec::new();
    for (needed, dependent) in Kind::ALL.iter().flat_map(|k| Kind::ALL.map(|d| (*k, d))) {
        if services::depends_on(dependent, needed) {
            let field =
                |kind: Kind| format!("self.?{}.?enabled.orValue({})", kind.object(), services::of(kind).by_default());
            expected.push(format!("{} || !{}", field(needed), field(dependent)));
        }
    }
    let mut found: Vec<_> = rules.iter().map(|r| r["rule"].as_str().unwrap().to_owned()).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}
