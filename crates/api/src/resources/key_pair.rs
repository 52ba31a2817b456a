//! `KeyPair`: a public key that VMs let in.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DeletionPolicy, shared::resource_kind};
use crate::Conditions;

/// A public key that VMs are made to let in by SSH. It becomes a key pair of this object's name in Nova, of the namespace's
/// user, and can't be changed there: so it can't here.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kupenstack.io",
    version = "v1",
    kind = "KeyPair",
    plural = "keypairs",
    namespaced,
    category = "kupenstack",
    status = "KeyPairStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
    printcolumn = r#"{"name":"Type","type":"string","jsonPath":".status.type"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Fingerprint","type":"string","jsonPath":".status.fingerprint","priority":1}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].message","priority":1}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.publicKey) != has(self.privateKeySecret)", "fieldPath": ".publicKey", "message": "either publicKey has to be given or, for a key that is made, privateKeySecret"},
    {"rule": "has(self.publicKey) == has(oldSelf.publicKey)", "fieldPath": ".publicKey", "message": "publicKey can't be changed, create another KeyPair instead"},
]))]
pub struct KeyPairSpec {
    /// The public key as one line of `authorized_keys`: its type, the key, and perhaps a comment. It can't be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 16_384),
        regex(pattern = r"^(ssh-rsa|ssh-ed25519|ecdsa-sha2-nistp(256|384|521)|sk-ssh-ed25519@openssh\.com|sk-ecdsa-sha2-nistp256@openssh\.com) [A-Za-z0-9+/]+={0,2}( [^\n]*)?\n?$"),
        extend("x-kubernetes-validations" = [
            {"rule": "self == oldSelf", "message": "publicKey can't be changed, create another KeyPair instead"},
        ])
    )]
    pub public_key: Option<String>,

    /// Name of the Secret in the same namespace into which a private key is put (`ssh-privatekey`, of Ed25519) that is made
    /// for this object, beside its public key (`ssh-publickey`). It must not exist yet, and goes with the object. It can't
    /// be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        extend("x-kubernetes-validations" = [
            {"rule": "self == oldSelf", "message": "privateKeySecret can't be changed, create another KeyPair instead"},
        ])
    )]
    pub private_key_secret: Option<String>,

    /// What becomes of the key pair in Nova when this object is deleted. When absent, `Delete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
}

/// What the operator observed of a key pair.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyPairStatus {
    /// `Ready`; `Reconciling` or `Stalled` while true.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Conditions,
    /// Generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Its name in Nova, which has no other identifier for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The public key, as Nova has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
    /// What sort of key it is: `ssh-ed25519`, `ssh-rsa`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// The key's fingerprint as `ssh-keygen -l` shows it: `SHA256:…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

resource_kind!(KeyPair, KeyPairStatus {
    fn deletion_policy(&self) -> DeletionPolicy {
        DeletionPolicy::effective(self.spec.deletion_policy, false)
    }
});
