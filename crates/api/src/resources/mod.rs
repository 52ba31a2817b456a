//! `kupenstack.io/v1`: what users want from their OpenStack, as Kubernetes objects.

mod cluster_image;
mod external_network;
mod flavor;
mod floating_ip;
mod image;
mod key_pair;
mod network;
mod port;
mod readiness_probe;
mod router;
mod security_group;
mod shared;
mod subnet;
mod virtual_machine;

pub use cluster_image::{ClusterImage, ClusterImageSpec};
pub use external_network::{
    ExternalNetwork, ExternalNetworkSpec, ExternalNetworkStatus, ExternalNetworkType, ExternalSubnet,
};
pub use flavor::{Flavor, FlavorSpec, FlavorStatus};
pub use floating_ip::{FloatingIP, FloatingIPAdoption, FloatingIPSpec, FloatingIPStatus};
pub use image::{Image, ImageAdoption, ImageFilter, ImageFormat, ImageSpec, ImageStatus};
pub use key_pair::{KeyPair, KeyPairSpec, KeyPairStatus};
pub use network::{Network, NetworkSpec, NetworkStatus};
pub use port::{AllowedAddress, Port, PortAddress, PortSpec, PortStatus};
pub use readiness_probe::{HttpGetProbe, ProbeScheme, ReadinessProbe, TcpSocketProbe};
pub use router::{ConnectedSubnet, Router, RouterInterface, RouterSpec, RouterStatus};
pub use security_group::{IpFamily, SecurityGroup, SecurityGroupRule, SecurityGroupSpec, SecurityGroupStatus};
pub use shared::{Adoption, DeletionPolicy, ResourceKind};
pub use subnet::{AddressPool, HostRoute, Ipv6Mode, Subnet, SubnetSpec, SubnetStatus};
pub use virtual_machine::{
    AntiAffinity, AntiAffinityPolicy, PowerState, RestartPolicy, SecretKey, UserData, VirtualMachine,
    VirtualMachineFault, VirtualMachineFloatingIP, VirtualMachineNetwork, VirtualMachineSpec, VirtualMachineStatus,
};

/// API group of the kinds in this module.
pub const GROUP: &str = "kupenstack.io";

/// Annotation on a Namespace: id of its project.
pub const PROJECT_ID: &str = "kupenstack.io/project-id";
/// Annotation on a Namespace: name of its project.
pub const PROJECT_NAME: &str = "kupenstack.io/project-name";
/// Annotation on an object: `ignore` leaves what others change or delete in OpenStack as it is.
pub const DRIFT: &str = "kupenstack.io/drift";
/// Annotation on a Namespace: `ignore` leaves it without a project.
pub const PROJECT: &str = "kupenstack.io/project";
/// Annotation on a Namespace: `requested` puts an application credential of its project into a Secret there.
pub const APPLICATION_CREDENTIAL: &str = "kupenstack.io/application-credential";
/// Annotation on a Namespace: name of the Secret with the application credential that was requested.
pub const APPLICATION_CREDENTIAL_SECRET: &str = "kupenstack.io/application-credential-secret";
/// Name of that Secret. It is the same in every namespace, so that the operator needs rights to no other.
pub const CREDENTIAL_SECRET: &str = "kupenstack-application-credential";
