//! `cluster.kupenstack.io/v1`: OpenStack itself as Kubernetes objects.

mod configuration;
mod exposure;
mod glance;
mod keystone;
mod libvirt;
mod mariadb;
mod memcached;
mod neutron;
mod nodes;
mod nova;
mod openstack;
mod ovn;
mod placement;
mod rabbitmq;
mod service;

pub use configuration::{CommonConf, ConfSource, EffectiveOption, FileSource, Files, ObjectKey, ObjectKeys};
pub use exposure::{EXPOSED, Expose, ExposeType, Networking};
pub use glance::{Glance, GlanceReplicas, GlanceSpec, GlanceTemplate};
pub use keystone::{Fernet, Keystone, KeystoneReplicas, KeystoneSpec, KeystoneTemplate};
pub use libvirt::{Libvirt, LibvirtSpec, LibvirtTemplate};
pub use mariadb::{MariaDB, MariaDBSpec, MariaDBTemplate};
pub use memcached::{Memcached, MemcachedReplicas, MemcachedSpec, MemcachedTemplate};
pub use neutron::{Neutron, NeutronNetworks, NeutronReplicas, NeutronSpec, NeutronTemplate};
pub use nodes::{ComputeNodes, NodeSelector, Nodes, TaintEffect, Toleration, TolerationOperator};
pub use nova::{ComputeDriver, Nova, NovaHypervisors, NovaReplicas, NovaSpec, NovaTemplate, VirtType};
pub use openstack::{
    ImageSource, OpenStack, OpenStackSpec, OpenStackStatus, Projects, ServiceSummary, Services, Storage,
};
pub use ovn::{Datapath, OVN, OVNNetworking, OVNSpec, OVNTemplate};
pub use placement::{Placement, PlacementReplicas, PlacementSpec, PlacementTemplate};
pub use rabbitmq::{RabbitMQ, RabbitMQSpec, RabbitMQTemplate};
pub use service::{
    CommonSpec, Conf, DeletionPolicy, FailedChange, Own, ServiceResource, ServiceStatus, Settings, Step, StepState,
    VolumeClaim, no_section,
};

/// API group of the kinds in this module.
pub const GROUP: &str = "cluster.kupenstack.io";
