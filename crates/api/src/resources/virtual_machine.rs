//! `VirtualMachine`: a server in Nova that is made, kept and healed.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Adoption, DeletionPolicy, ResourceKind};
use crate::{Conditions, HasConditions};

/// A virtual machine: booted from an image, as large as a flavor says, at ports of its own or of yours. It becomes a server in
/// Nova, in the namespace's project. What was made for it goes with it.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kupenstack.io",
    version = "v1",
    kind = "VirtualMachine",
    plural = "virtualmachines",
    shortname = "vm",
    shortname = "vms",
    namespaced,
    category = "kupenstack",
    status = "VirtualMachineStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"IP","type":"string","jsonPath":".status.addresses[0]"}"#,
    printcolumn = r#"{"name":"Node","type":"string","jsonPath":".status.node"}"#,
    printcolumn = r#"{"name":"Restarts","type":"integer","jsonPath":".status.restarts"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Flavor","type":"string","jsonPath":".spec.flavor","priority":1}"#,
    printcolumn = r#"{"name":"State","type":"string","jsonPath":".status.state","priority":1}"#,
    printcolumn = r#"{"name":"ID","type":"string","jsonPath":".status.id","priority":1}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].message","priority":1}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.adopt) == has(oldSelf.adopt)", "fieldPath": ".adopt", "message": "an adopted server can't become a made one, or the other way round: create another VirtualMachine instead"},
    {"rule": "has(self.adopt) || has(self.image) != has(self.clusterImage)", "fieldPath": ".image", "message": "exactly one of image and clusterImage has to be given, unless a server is adopted"},
    {"rule": "has(self.adopt) || has(self.flavor)", "fieldPath": ".flavor", "message": "flavor has to be given, unless a server is adopted: that has one already"},
    {"rule": "has(self.adopt) || has(self.networks)", "fieldPath": ".networks", "message": "networks have to be given, unless a server is adopted: that is connected already"},
    {"rule": "!has(self.adopt) || !(has(self.image) || has(self.clusterImage) || has(self.keyPair) || has(self.userData) || has(self.antiAffinity))", "fieldPath": ".adopt", "message": "image, clusterImage, keyPair, userData and antiAffinity count when a server is made: an adopted one has them already, leave them out"},
    {"rule": "has(self.flavor) || !has(self.nodeSelector)", "fieldPath": ".nodeSelector", "message": "a nodeSelector needs a flavor: what is asked of nodes stands in one that is derived from it"},
    {"rule": "has(self.networks) || !has(self.floatingIP)", "fieldPath": ".floatingIP", "message": "a floatingIP needs networks: it stands for the port on the first one"},
    {"rule": "has(self.networks) || !has(self.securityGroups)", "fieldPath": ".securityGroups", "message": "securityGroups guard the ports that are made for networks: name those, or give the groups to the server's Port"},
    {"rule": "has(self.flavor) || !has(oldSelf.flavor)", "fieldPath": ".flavor", "message": "flavor can be changed but not taken back: name the one that you want"},
    {"rule": "has(self.securityGroups) || !has(oldSelf.securityGroups)", "fieldPath": ".securityGroups", "message": "securityGroups can be changed but not taken back: name the groups that you want"},
    {"rule": "has(self.networks) || !has(oldSelf.networks)", "fieldPath": ".networks", "message": "networks can be changed but not taken back: name those that you want"},
    {"rule": "has(self.image) == has(oldSelf.image)", "fieldPath": ".image", "message": "the image can't be changed, create another VirtualMachine instead"},
    {"rule": "has(self.keyPair) == has(oldSelf.keyPair)", "fieldPath": ".keyPair", "message": "keyPair is read when the VM is first booted: create another VirtualMachine instead"},
    {"rule": "has(self.userData) == has(oldSelf.userData)", "fieldPath": ".userData", "message": "userData is read when the VM is first booted: create another VirtualMachine instead"},
    {"rule": "has(self.antiAffinity) == has(oldSelf.antiAffinity)", "fieldPath": ".antiAffinity", "message": "antiAffinity counts when the VM is made: create another VirtualMachine instead"},
]))]
pub struct VirtualMachineSpec {
    /// A text for people. In Nova's `description` the operator's mark stands behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 160))]
    pub description: Option<String>,

    /// Name of the `Image` in the same namespace that it boots from. It can't be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        extend("x-kubernetes-validations" = [
            {"rule": "self == oldSelf", "message": "the image can't be changed, create another VirtualMachine instead"},
        ])
    )]
    pub image: Option<String>,

    /// Name of the `ClusterImage` that it boots from. It can't be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        extend("x-kubernetes-validations" = [
            {"rule": "self == oldSelf", "message": "the image can't be changed, create another VirtualMachine instead"},
        ])
    )]
    pub cluster_image: Option<String>,

    /// Name of the `Flavor` that says how large it is. Another name resizes it, which stops it for a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub flavor: Option<String>,

    /// Name of the `KeyPair` in the same namespace that it lets in, which whatever stands for cloud-init in the image does at the
    /// first boot. It can't be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        extend("x-kubernetes-validations" = [
            {"rule": "self == oldSelf", "message": "keyPair is read when the VM is first booted: create another VirtualMachine instead"},
        ])
    )]
    pub key_pair: Option<String>,

    /// What it is connected to, in this order when it is made. What is added or removed later is connected or disconnected
    /// while it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 8),
        extend("x-kubernetes-validations" = [
            {"rule": "self.filter(n, has(n.network)).all(n, self.exists_one(other, has(other.network) && other.network == n.network))", "message": "a network can be named once: for a second port on it name a Port"},
            {"rule": "self.filter(n, has(n.port)).all(n, self.exists_one(other, has(other.port) && other.port == n.port))", "message": "a port can be named once"},
        ])
    )]
    pub networks: Vec<VirtualMachineNetwork>,

    /// Names of the `SecurityGroup`s in the same namespace that guard the ports which are made for it. When absent, the
    /// project's group `default` does. A `Port` that you name has groups of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 253)))]
    pub security_groups: Option<Vec<String>>,

    /// An address outside of the cloud that stands for its first port. When absent, it has none.
    #[serde(rename = "floatingIP", default, skip_serializing_if = "Option::is_none")]
    pub floating_ip: Option<VirtualMachineFloatingIP>,

    /// What cloud-init, or whatever the image has in its place, is given at the first boot. It can't be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [
        {"rule": "has(self.inline) != has(self.secretKeyRef)", "message": "exactly one of inline and secretKeyRef has to be given"},
        {"rule": "self == oldSelf", "message": "userData is read when the VM is first booted: create another VirtualMachine instead"},
    ]))]
    pub user_data: Option<UserData>,

    /// What the VM can read of itself from the metadata service, beside what Nova tells (Nova's `metadata`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend(
        "maxProperties" = 64,
        "additionalProperties" = {"type": "string", "maxLength": 255},
        "x-kubernetes-validations" = [{
            "rule": "self.all(key, key.size() <= 255 && key.matches('^[A-Za-z0-9_.: -]+$'))",
            "message": "a key has at most 255 letters, digits, spaces and _ - . :"
        }]
    ))]
    pub metadata: BTreeMap<String, String>,

    /// VMs of the same namespace that it shares no node with (Nova's server groups). When absent, it shares its node with any.
    /// It can't be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [
        {"rule": "self == oldSelf", "message": "antiAffinity counts when the VM is made: create another VirtualMachine instead"},
    ]))]
    pub anti_affinity: Option<AntiAffinity>,

    /// What it is to do. When absent, `Running`; an adopted server may then do what it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_state: Option<PowerState>,

    /// Labels that the node has which it runs on, in Kubernetes. As long as no node has them, it waits; when a node's labels change
    /// later, it stays. Other labels have it resized, which moves it and stops it for a while. When absent, any node will do
    /// (Nova has a host aggregate for each label, and asks for them by extra specs of a flavor that is derived from `flavor`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend(
        "maxProperties" = 16,
        "additionalProperties" = {"type": "string", "maxLength": 63, "pattern": "^(([A-Za-z0-9][A-Za-z0-9_.-]*)?[A-Za-z0-9])?$"},
        "x-kubernetes-validations" = [{
            "rule": "self.all(key, key.size() <= 317 && key.matches('^([a-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$'))",
            "message": "a key is that of a label: a prefix and a slash or none, then at most 63 letters, digits and - _ . between letters or digits"
        }]
    ))]
    pub node_selector: BTreeMap<String, String>,

    /// What becomes of it when it fails, stops by itself or vanishes. When absent, `Always`, but for an adopted server without
    /// `powerState`, which is left as it is. No adopted one is made anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_policy: Option<RestartPolicy>,

    /// What has to be answered, at its floating IP, before the VM is ready. When absent, a VM that runs is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readiness_probe: Option<super::ReadinessProbe>,

    /// A server of the project that is in Nova already, to be taken over instead of making one. It is changed only where
    /// this object says something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt: Option<Adoption>,

    /// What becomes of the server in Nova when this object is deleted. When absent, `Delete` if it was made and `Retain`
    /// if it was adopted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
}

/// A network that a VM is connected to, or the port at which it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.network) != has(self.port)", "message": "exactly one of network and port has to be given"},
    {"rule": "has(self.network) || !has(self.addresses)", "fieldPath": ".addresses", "message": "a Port that you name has addresses of its own"},
]))]
pub struct VirtualMachineNetwork {
    /// Name of a `Network` in the same namespace. A `Port` is made on it, of the name `<VM>.<network>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub network: Option<String>,
    /// Name of a `Port` in the same namespace. It stays when the VM goes, and only one VM can be at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub port: Option<String>,
    /// Addresses of the port that is made. When absent, any that are free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16))]
    pub addresses: Option<Vec<super::PortAddress>>,
}

/// An address outside of the cloud that is made for a VM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineFloatingIP {
    /// Name of the `ExternalNetwork` that it is of. A `FloatingIP` is made, of the name `<VM>.<external network>`, and goes
    /// with the VM. For an address that stays, declare a `FloatingIP` that names the VM's port.
    #[schemars(length(min = 1, max = 253))]
    pub external_network: String,
}

/// Which VMs are kept apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AntiAffinity {
    /// A name that you choose: VMs of the namespace that name the same group, and the same policy, are kept apart.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$"))]
    pub group: String,
    /// How much depends on it. When absent, `Required`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<AntiAffinityPolicy>,
}

/// How much depends on VMs being apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AntiAffinityPolicy {
    /// A VM that no node is left for does not run (Nova's `anti-affinity`).
    #[default]
    Required,
    /// VMs share a node if there is no other with room (`soft-anti-affinity`).
    Preferred,
}

/// Where user data comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserData {
    /// The text itself: everybody who can read the object reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 49_149))]
    pub inline: Option<String>,
    /// A key of a Secret in the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<SecretKey>,
}

/// A key of a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretKey {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key in its `data`.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// What a VM is to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PowerState {
    /// It runs.
    #[default]
    Running,
    /// It is shut down; its disk and its addresses stay.
    Stopped,
    /// What is in its memory is on the host's disk.
    Suspended,
}

/// What becomes of a VM that does not do what it is to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RestartPolicy {
    /// It is started again, also when it was shut down from within, and made anew when its server never came up or is gone, or its
    /// node is out of service.
    #[default]
    Always,
    /// As `Always`, but a VM that was shut down stays so.
    OnFailure,
    /// It is left as it is.
    Never,
}

/// What the operator observed of a VM.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineStatus {
    /// `Ready`; `Reconciling` or `Stalled` while true; `UpToDate` while it is not, because the node's labels have changed.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Conditions,
    /// Generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What it does, in a word: `Pending`, `Building`, `Running`, `Starting`, `Stopping`, `Stopped`, `Suspending`, `Suspended`,
    /// `Resizing`, `Migrating`, `Restarting`, `CrashLoopBackOff`, `Failed` or `Terminating`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Identifier of the server in Nova.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its addresses, in the order of its networks; floating IPs first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// The node that it runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The server's `status`, in Nova's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// How often it was started again or made anew because it had failed, stopped by itself or vanished.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: u32,
    /// When it last failed, stopped by itself or vanished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_at: Option<Time>,
    /// Identifier of the server that failed or stopped, as long as the VM has not come up since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_id: Option<String>,
    /// When it was, or is going to be, started again or made anew after that, or resized when there was no room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Time>,
    /// What Nova says went wrong, as long as the VM has not come up since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<VirtualMachineFault>,
}

/// What Nova says went wrong with a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VirtualMachineFault {
    /// As in HTTP: 500 for most.
    pub code: i64,
    /// In Nova's words.
    pub message: String,
    /// When, as Nova says.
    pub since: String,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's interface
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl AntiAffinity {
    /// How much depends on it.
    pub fn policy(&self) -> AntiAffinityPolicy {
        self.policy.unwrap_or_default()
    }
}

impl VirtualMachine {
    /// What it is to do. None if that is not for us to say.
    pub fn power_state(&self) -> Option<PowerState> {
        self.spec.power_state.or((!self.adopts()).then(PowerState::default))
    }

    /// What becomes of it when it does not.
    pub fn restart_policy(&self) -> RestartPolicy {
        match self.power_state() {
            Some(_) => self.spec.restart_policy.unwrap_or_default(),
            None => RestartPolicy::Never,
        }
    }
}

impl HasConditions for VirtualMachine {
    fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }
}

impl ResourceKind for VirtualMachine {
    type Status = VirtualMachineStatus;

    const KIND: &'static str = "VirtualMachine";

    fn status(&self) -> Option<&VirtualMachineStatus> {
        self.status.as_ref()
    }
    fn id(status: &VirtualMachineStatus) -> Option<&str> {
        status.id.as_deref()
    }
    fn deletion_policy(&self) -> DeletionPolicy {
        DeletionPolicy::effective(self.spec.deletion_policy, self.adopts())
    }
    fn adopts(&self) -> bool {
        self.spec.adopt.is_some()
    }
    fn set_common(
        status: &mut VirtualMachineStatus,
        id: Option<String>,
        conditions: Conditions,
        generation: Option<i64>,
    ) {
        status.phase = phase(&conditions).map(str::to_owned);
        status.id = id;
        status.conditions = conditions;
        status.observed_generation = generation;
    }
}

/// The word for what a VM does, of which the condition `Ready` tells more.
fn phase(conditions: &[Condition]) -> Option<&str> {
    const OWN: &[&str] = &[
        "Building",
        "Running",
        "Starting",
        "Stopping",
        "Stopped",
        "Suspending",
        "Suspended",
        "Resizing",
        "Migrating",
        "Restarting",
        "CrashLoopBackOff",
        "Failed",
    ];
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready")?;
    Some(match ready.reason.as_str() {
        "Deleting" | "InUse" => "Terminating",
        "ResizeFailed" => "Resizing",
        "Vanishing" => "Restarting",
        "NotAnswering" => "Running",
        own if OWN.contains(&own) => own,
        _ => "Pending",
    })
}
