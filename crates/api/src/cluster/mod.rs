//! `cluster.kupenstack.io/v1`: OpenStack itself as Kubernetes objects.

mod configuration;
mod glance;
mod keystone;
mod mariadb;
mod memcached;
mod openstack;
mod placement;
mod rabbitmq;
mod service;

pub use configuration::{CommonConf, ConfSource, EffectiveOption, FileSource, Files, ObjectKey, ObjectKeys};
pub use glance::{Glance, GlanceReplicas, GlanceSpec, GlanceTemplate};
pub use keystone::{Fernet, Keystone, KeystoneReplicas, KeystoneSpec, KeystoneTemplate};
pub use mariadb::{MariaDB, MariaDBSpec, MariaDBTemplate};
pub use memcached::{Memcached, MemcachedReplicas, MemcachedSpec, MemcachedTemplate};
pub use openstack::{
    ImageSource, OpenStack, OpenStackSpec, OpenStackStatus, Projects, ServiceSummary, Services, Storage,
};
pub use placement::{Placement, PlacementReplicas, PlacementSpec, PlacementTemplate};
pub use rabbitmq::{RabbitMQ, RabbitMQSpec, RabbitMQTemplate};
pub use service::{
    CommonSpec, Conf, DeletionPolicy, FailedChange, ServiceResource, ServiceStatus, Settings, Step, StepState,
    VolumeClaim,
};

/// API group of the kinds in this module.
pub const GROUP: &str = "cluster.kupenstack.io";
