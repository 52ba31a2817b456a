//! Values for a service's chart: what every chart shares, the service's own, then what the user wrote.

use kupenstack_api::cluster::Nodes;
use kupenstack_core::merge;
use secrecy::ExposeSecret;
use serde_json::{Map, Value, json};

use crate::{
    catalogue::Release,
    config::Resolved,
    exposure,
    service::{Kind, Request, Secrets, Service},
};

/// Everything that goes to the chart, in `OpenStack`-Helm's values contract.
pub(crate) fn compute(
    service: &dyn Service,
    request: &Request,
    release: &Release,
    secrets: &Secrets,
    configuration: &Resolved,
) -> Value {
    let common = &request.common;
    let settings = &common.settings;
    merge::layers([
        shared(service, request, release),
        endpoints(&common.region, secrets),
        exposure::values(service, request),
        without_nulls(service.values(request, secrets)),
        configuration.values.clone(),
        json!({"images": {"tags": settings.images}}),
        json!(settings.values.clone().unwrap_or_default()),
    ])
}

fn shared(service: &dyn Service, request: &Request, release: &Release) -> Value {
    let common = &request.common;
    let tags: Map<String, Value> = service
        .images()
        .iter()
        .map(|(tag, part)| ((*tag).to_owned(), release.image(common.image_registry.as_deref(), *part).into()))
        .collect();
    let mut values = json!({
        "images": {"tags": tags, "pull_policy": "IfNotPresent"},
        "pod": {"replicas": request.replicas},
    });
    let settings = &common.settings;
    let of_service = Nodes { selector: settings.node_selector.clone(), tolerations: settings.tolerations.clone() };
    let control_plane = service.components().iter().chain(&["job"]).map(|component| (component, &of_service));
    for (component, nodes) in control_plane.chain(&request.nodes) {
        if let Some((key, value)) = nodes.selector.iter().next() {
            values["labels"][component] = json!({"node_selector_key": key, "node_selector_value": value});
        }
        if !nodes.tolerations.is_empty() {
            values["pod"]["tolerations"][component] = json!({"enabled": true, "tolerations": nodes.tolerations});
        }
    }
    if let Some(volume) = &request.volume {
        values["volume"] = without_nulls(json!({"class_name": volume.class_name, "size": volume.size}));
    }
    values
}

/// Where each credential is in the charts' values: to write it there, and to find it in a release made by hand.
const CREDENTIALS: [(Kind, &str, &[&str]); 17] = [
    (Kind::MariaDB, ROOT_PASSWORD, &["endpoints", "oslo_db", "auth", "admin", "password"]),
    (Kind::Memcached, CACHE_KEY, &["endpoints", "oslo_cache", "auth", "memcache_secret_key"]),
    (Kind::Keystone, ADMIN_PASSWORD, &["endpoints", "identity", "auth", "admin", "password"]),
    (Kind::Keystone, DB_PASSWORD, &["endpoints", "oslo_db", "auth", "keystone", "password"]),
    (Kind::Glance, DB_PASSWORD, &["endpoints", "oslo_db", "auth", "glance", "password"]),
    (Kind::Glance, SERVICE_PASSWORD, &["endpoints", "identity", "auth", "glance", "password"]),
    (Kind::RabbitMQ, ERLANG_COOKIE, &["endpoints", "oslo_messaging", "auth", "erlang_cookie"]),
    (Kind::RabbitMQ, BROKER_NEUTRON, &["endpoints", "oslo_messaging", "auth", "neutron", "password"]),
    (Kind::RabbitMQ, BROKER_NOVA, &["endpoints", "oslo_messaging", "auth", "nova", "password"]),
    (Kind::Placement, DB_PASSWORD, &["endpoints", "oslo_db", "auth", "placement", "password"]),
    (Kind::Placement, SERVICE_PASSWORD, &["endpoints", "identity", "auth", "placement", "password"]),
    (Kind::Neutron, DB_PASSWORD, &["endpoints", "oslo_db", "auth", "neutron", "password"]),
    (Kind::Neutron, SERVICE_PASSWORD, &["endpoints", "identity", "auth", "neutron", "password"]),
    (Kind::Neutron, METADATA_SECRET, &["endpoints", "compute_metadata", "auth", "proxy", "password"]),
    (Kind::Nova, DB_PASSWORD, &["endpoints", "oslo_db", "auth", "nova", "password"]),
    (Kind::Nova, SERVICE_PASSWORD, &["endpoints", "identity", "auth", "nova", "password"]),
    (Kind::Nova, SSH_SECRET, &["endpoints", "compute_ssh", "auth", "nova", "password"]),
];

/// Path of a service's credential in the values.
pub(crate) fn path_of(kind: Kind, key: &str) -> Option<&'static [&'static str]> {
    CREDENTIALS.iter().find(|(k, name, _)| *k == kind && *name == key).map(|(_, _, path)| *path)
}

/// Whether a credential is at this path, whichever service's.
pub(crate) fn is_credential(path: &[&str]) -> bool {
    CREDENTIALS.iter().any(|(_, _, known)| *known == path)
}

/// Where services are and who they are there. Only credentials that exist are set, so that a chart which needs
/// one that is missing says so.
fn endpoints(region: &str, secrets: &Secrets) -> Value {
    let mut users = vec!["admin"];
    let mut layers = Vec::new();
    for (kind, key, path) in CREDENTIALS {
        let Some(secret) = secrets.get(kind, key) else { continue };
        let password = Value::from(secret.expose_secret());
        layers.push(path.iter().rev().fold(password, |value, name| json!({*name: value})));
        if key == SERVICE_PASSWORD {
            users.push(kind.object());
        }
    }
    // each user of Keystone looks for the others in this region
    let identities: Map<String, Value> =
        users.into_iter().map(|user| (user.to_owned(), json!({"region_name": region}))).collect();
    layers.push(json!({"endpoints": {"identity": {"auth": identities}}}));
    merge::layers(layers)
}

/// A null would remove the chart's own default.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            map.into_iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k, without_nulls(v))).collect()
        }
        other => other,
    }
}

/// Key of the database's root password.
pub(crate) const ROOT_PASSWORD: &str = "root-password";
/// Key of the cloud administrator's password.
pub(crate) const ADMIN_PASSWORD: &str = "admin-password";
/// Key of the secret that cached tokens are encrypted with.
pub(crate) const CACHE_KEY: &str = "memcache-secret-key";
/// Key of a service's password at the database.
pub(crate) const DB_PASSWORD: &str = "db-password";
/// Key of what the broker's own tools prove themselves with.
pub(crate) const ERLANG_COOKIE: &str = "erlang-cookie";
/// Key of Neutron's password at the broker.
pub(crate) const BROKER_NEUTRON: &str = "neutron-password";
/// Key of Nova's password at the broker.
pub(crate) const BROKER_NOVA: &str = "nova-password";
/// Key of what Neutron proves itself with when it asks Nova in the name of a VM.
pub(crate) const METADATA_SECRET: &str = "metadata-proxy-secret";
/// Key of a service's password at Keystone.
pub(crate) const SERVICE_PASSWORD: &str = "service-password";
/// Key of what the keys follow from by which hypervisors bring disks to each other.
pub(crate) const SSH_SECRET: &str = "ssh-secret";
