//! The definitions of all kinds, for the command that writes them to files.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use crate::{
    cluster::{Glance, Keystone, MariaDB, Memcached, OpenStack},
    resources::Image,
};

/// Every kind of this operator, in the order in which documents list them.
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![OpenStack::crd(), MariaDB::crd(), Memcached::crd(), Keystone::crd(), Glance::crd(), Image::crd()]
}
