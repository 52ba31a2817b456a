//! Values for a service's chart: what every chart shares, the service's own, then what the user wrote.

use kupenstack_core::merge;
use secrecy::ExposeSecret;
use serde_json::{Map, Value, json};

use crate::{
    catalogue::Release,
    config::Resolved,
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
    if let Some((key, value)) = common.settings.node_selector.iter().next() {
        let selector = json!({"node_selector_key": key, "node_selector_value": value});
        values["labels"] = json!({service.component(): selector.clone(), "job": selector});
    }
    if let Some(volume) = &request.volume {
        values["volume"] = without_nulls(json!({"class_name": volume.class_name, "size": volume.size}));
    }
    values
}

/// Where services are and who they are there. Only credentials that exist are set, so that a chart which needs
/// one that is missing says so.
fn endpoints(region: &str, secrets: &Secrets) -> Value {
    let password = |kind, key| secrets.get(kind, key).map(|s| s.expose_secret().to_owned());
    let root = password(Kind::MariaDB, ROOT_PASSWORD);
    let admin = password(Kind::Keystone, ADMIN_PASSWORD);
    let cache = password(Kind::Memcached, CACHE_KEY);
    let mut endpoints = json!({
        "oslo_db": {"auth": {"admin": {"password": root}}},
        "identity": {"auth": {"admin": {"password": admin, "region_name": region}}},
        "oslo_cache": {"auth": {"memcache_secret_key": cache}},
    });
    for kind in [Kind::Keystone, Kind::Glance] {
        if let Some(password) = password(kind, DB_PASSWORD) {
            endpoints["oslo_db"]["auth"][kind.object()] = json!({"password": password});
        }
        if let Some(password) = password(kind, SERVICE_PASSWORD) {
            endpoints["identity"]["auth"][kind.object()] = json!({"password": password, "region_name": region});
        }
    }
    json!({"endpoints": without_nulls(endpoints)})
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
/// Key of a service's password at Keystone.
pub(crate) const SERVICE_PASSWORD: &str = "service-password";
