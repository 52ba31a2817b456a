//! The definitions of all kinds, for the command that writes them to files.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition,
};
use kube::CustomResourceExt;

use crate::{
    cluster::{
        Glance, Keystone, Libvirt, MariaDB, Memcached, Neutron, Nova, OVN, OpenStack, Placement, RabbitMQ,
        ServiceResource,
    },
    resources::{
        ClusterImage, ExternalNetwork, Flavor, FloatingIP, Image, KeyPair, Network, Port, Router, SecurityGroup,
        Subnet, VirtualMachine,
    },
};

/// Every kind of this operator, in the order in which documents list them.
pub fn all() -> Vec<CustomResourceDefinition> {
    let mut all = vec![
        OpenStack::crd(),
        of_service::<MariaDB>(),
        of_service::<Memcached>(),
        of_service::<Keystone>(),
        of_service::<Glance>(),
        of_service::<RabbitMQ>(),
        of_service::<Placement>(),
        of_service::<OVN>(),
        of_service::<Neutron>(),
        of_service::<Libvirt>(),
        of_service::<Nova>(),
        Image::crd(),
        ClusterImage::crd(),
        Flavor::crd(),
        ExternalNetwork::crd(),
        FloatingIP::crd(),
        KeyPair::crd(),
        Network::crd(),
        Port::crd(),
        Router::crd(),
        SecurityGroup::crd(),
        Subnet::crd(),
        VirtualMachine::crd(),
    ];
    all.iter_mut().for_each(describe);
    all
}

/// The definition of a kind that stands for a service, with the columns that they all have.
fn of_service<K: CustomResourceExt + ServiceResource>() -> CustomResourceDefinition {
    let column = |name: &str, type_: &str, json_path: &str, priority| CustomResourceColumnDefinition {
        name: name.to_owned(),
        type_: type_.to_owned(),
        json_path: json_path.to_owned(),
        priority,
        ..CustomResourceColumnDefinition::default()
    };
    let columns = [
        column("Ready", "string", ".status.conditions[?(@.type=='Ready')].status", None),
        column("Status", "string", ".status.conditions[?(@.type=='Ready')].reason", None),
        column("Release", "string", ".status.release", None),
        column("Revision", "integer", ".status.revision", None),
        column("Age", "date", ".metadata.creationTimestamp", None),
        column("Endpoint", "string", ".status.endpoint", Some(1)),
        column("Message", "string", ".status.conditions[?(@.type=='Ready')].message", Some(1)),
    ];
    let mut crd = K::crd();
    for version in &mut crd.spec.versions {
        version.additional_printer_columns = Some(columns.to_vec());
    }
    crd
}

/// Gives the kind its spec's description: `kubectl explain KIND` shows it, and the derived one says nothing.
fn describe(crd: &mut CustomResourceDefinition) {
    for version in &mut crd.spec.versions {
        let schema = version.schema.as_mut().and_then(|s| s.open_api_v3_schema.as_mut());
        let Some(schema) = schema else { continue };
        let spec = schema.properties.as_ref().and_then(|p| p.get("spec"));
        schema.description = spec.and_then(|s| s.description.clone());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Fields that have no bound of their own, and why they need none.
    const UNBOUNDED: [(&str, &str); 3] = [
        (".conf{}", "options are of any type; their number is bounded here, their size by the operator"),
        (".commonConf{}", "as before"),
        (".values", "values of a Helm chart, whose schema checks them"),
    ];

    /// Every text, list, map and free object in a schema that may be of any size.
    fn unbounded(path: &str, schema: &Value, found: &mut Vec<String>) {
        let has = |key: &str| !schema[key].is_null();
        let is_free = schema["x-kubernetes-preserve-unknown-fields"] == true;
        let is_bounded = match schema["type"].as_str() {
            Some("string") => has("maxLength") || has("enum") || schema["format"] == "date-time",
            Some("array") => has("maxItems"),
            Some("object") => !is_free && (!has("additionalProperties") || has("maxProperties")),
            Some("integer" | "number" | "boolean") => true,
            _ => false,
        };
        if !is_bounded {
            found.push(path.to_owned());
        }
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            unbounded(&format!("{path}.{name}"), field, found);
        }
        for (key, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
            if schema[key].is_object() {
                unbounded(&format!("{path}{mark}"), &schema[key], found);
            }
        }
    }

    /// The status is left out: only the operator writes it, which cuts what it says; a bound would refuse the truth.
    #[test]
    fn every_text_list_and_map_of_a_spec_is_bounded() {
        for crd in all() {
            let crd = serde_json::to_value(crd).unwrap();
            let kind = crd["spec"]["names"]["kind"].as_str().unwrap();
            let mut found = Vec::new();
            let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            unbounded("spec", &schema["properties"]["spec"], &mut found);
            found.retain(|path| !UNBOUNDED.iter().any(|(end, _)| path.ends_with(end)));
            assert_eq!(found, Vec::<String>::new(), "{kind}");
        }
    }

    #[test]
    fn the_walk_sees_what_has_no_bound() {
        let schema = serde_json::json!({"type": "object", "properties": {
            "text": {"type": "string"}, "list": {"type": "array", "maxItems": 3, "items": {"type": "string"}},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}}, "any": {},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }});
        let mut found = Vec::new();
        unbounded("spec", &schema, &mut found);
        found.sort();
        assert_eq!(found, ["spec.any", "spec.free", "spec.list[]", "spec.map", "spec.text"]);
    }
}
