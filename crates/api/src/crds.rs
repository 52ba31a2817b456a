//! The definitions of all kinds, for the command that writes them to files.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use crate::{
    cluster::{Glance, Keystone, MariaDB, Memcached, OpenStack, Placement, RabbitMQ},
    resources::{ClusterImage, Image},
};

/// Every kind of this operator, in the order in which documents list them.
pub fn all() -> Vec<CustomResourceDefinition> {
    let mut all = vec![
        OpenStack::crd(),
        MariaDB::crd(),
        Memcached::crd(),
        Keystone::crd(),
        Glance::crd(),
        RabbitMQ::crd(),
        Placement::crd(),
        Image::crd(),
        ClusterImage::crd(),
    ];
    all.iter_mut().for_each(describe);
    all
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
