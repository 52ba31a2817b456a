//! `Router`: what connects subnets with each other and with what is outside.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Adoption, DeletionPolicy, HostRoute, shared::resource_kind};
use crate::Conditions;

/// What connects subnets of a namespace with each other, and with a network outside. It becomes a router in Neutron, in the
/// namespace's project.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kupenstack.io",
    version = "v1",
    kind = "Router",
    plural = "routers",
    namespaced,
    category = "kupenstack",
    status = "RouterStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
    printcolumn = r#"{"name":"External Network","type":"string","jsonPath":".spec.externalNetwork"}"#,
    printcolumn = r#"{"name":"External IP","type":"string","jsonPath":".status.externalAddresses[0]"}"#,
    printcolumn = r#"{"name":"State","type":"string","jsonPath":".status.state"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"ID","type":"string","jsonPath":".status.id","priority":1}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].message","priority":1}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.adopt) == has(oldSelf.adopt)", "fieldPath": ".adopt", "message": "an adopted router can't become a made one, or the other way round: create another Router instead"},
]))]
pub struct RouterSpec {
    /// A text for people. In Neutron's `description` the operator's mark stands behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 160))]
    pub description: Option<String>,

    /// Name of the `ExternalNetwork` that the router leads to (Neutron's `external_gateway_info`), of which it gets an
    /// address. When absent, it leads to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub external_network: Option<String>,

    /// What it is connected to. Its address there is the gateway's of the subnet. When absent, nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["subnet"])
    )]
    pub interfaces: Option<Vec<RouterInterface>>,

    /// Routes of its own, beside those to what it is connected to. Their next hops have to be on its subnets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 30),
        extend("x-kubernetes-validations" = [
            {"rule": "self.all(route, !isCIDR(route.destination) || !isIP(route.nextHop) || cidr(route.destination).ip().family() == ip(route.nextHop).family())", "message": "a route's nextHop is of another family than its destination"},
        ])
    )]
    pub routes: Option<Vec<HostRoute>>,

    /// Whether the router forwards anything (Neutron's `admin_state_up`). When absent, it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin_state_up: Option<bool>,

    /// A router of the project that is in Neutron already, to be taken over instead of making one. It is changed only where
    /// this object says something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt: Option<Adoption>,

    /// What becomes of the router in Neutron when this object is deleted. When absent, `Delete` if it was made and `Retain`
    /// if it was adopted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
}

/// What a router is connected to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RouterInterface {
    /// Name of a `Subnet` in the same namespace.
    #[schemars(length(min = 1, max = 253))]
    pub subnet: String,
}

/// What the operator observed of a router.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RouterStatus {
    /// `Ready`; `Reconciling` or `Stalled` while true.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Conditions,
    /// Generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Identifier in Neutron.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The router's addresses on the network outside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub external_addresses: Vec<String>,
    /// How it is in Neutron: `ACTIVE`, `ALLOCATING`, `ERROR`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// What it is connected to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<ConnectedSubnet>,
}

/// A subnet that a router is connected to.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConnectedSubnet {
    /// The subnet's identifier in Neutron.
    pub subnet_id: String,
    /// The router's address there.
    pub ip: String,
}

resource_kind!(Router, RouterStatus {
    fn deletion_policy(&self) -> DeletionPolicy {
        DeletionPolicy::effective(self.spec.deletion_policy, self.adopts())
    }
    fn adopts(&self) -> bool {
        self.spec.adopt.is_some()
    }
});
