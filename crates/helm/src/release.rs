//! What is deployed and how far it got, in Helm's own words.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The label on a release's records that carries the [`ContentHash`] a revision was made from.
pub const HASH_LABEL: &str = "kupenstack.io/hash";

/// A release: Helm finds one by namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReleaseRef {
    /// The namespace of the release's objects and records.
    pub namespace: String,
    /// The name, unique in its namespace.
    pub name: String,
}

impl ReleaseRef {
    /// A release by its namespace and name.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The name of the Secret in which Helm records `revision`.
    ///
    /// Deleting that Secret is the only cure for a first install that was killed halfway.
    pub fn record_name(&self, revision: u32) -> String {
        format!("sh.helm.release.v1.{}.v{revision}", self.name)
    }
}

impl fmt::Display for ReleaseRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Where a chart comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChartRef {
    /// A chart folder or a packaged chart on this machine.
    Path(PathBuf),
    /// A chart in an HTTP chart repository.
    Repository {
        /// The repository's address.
        url: String,
        /// The chart's name in it.
        name: String,
        /// The exact version.
        version: String,
    },
    /// A chart in an OCI registry, `oci://…`, best pinned as `…@sha256:…`.
    Oci {
        /// The reference with its scheme.
        reference: String,
        /// The version, when the reference does not pin one.
        version: Option<String>,
    },
}

/// Chart values. They may hold passwords, so they are not shown by `Debug`.
#[derive(Clone, Default, PartialEq)]
pub struct Values(Value);

impl Values {
    /// Values from a JSON object; `null` stands for none.
    pub fn new(values: Value) -> Self {
        Self(values)
    }

    /// The values as JSON.
    pub fn as_json(&self) -> &Value {
        &self.0
    }

    /// The values as JSON, by value.
    pub fn into_json(self) -> Value {
        self.0
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Values(hidden)")
    }
}

/// What a chart may ask about the cluster it is rendered for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The Kubernetes version, such as `1.35.4`; none for the one Helm was built with.
    pub kube_version: Option<String>,
    /// The API versions the cluster serves, such as `batch/v1` or `monitoring.coreos.com/v1/ServiceMonitor`.
    pub api_versions: Vec<String>,
}

/// How a release is upgraded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpgradeOptions {
    /// What the revision is made from, kept as the label [`HASH_LABEL`] on its record.
    pub hash: ContentHash,
    /// How many revisions are kept, this one included.
    pub history_max: u32,
}

impl UpgradeOptions {
    /// The usual options: five revisions are kept.
    pub fn new(hash: ContentHash) -> Self {
        Self { hash, history_max: 5 }
    }
}

/// A hash over everything that makes a revision: 1 to 63 lower-case letters and digits, as a label value must be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ContentHash(String);

impl ContentHash {
    /// The hash as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ContentHash {
    type Err = InvalidContentHash;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits = (1..=63).contains(&text.len());
        if fits && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidContentHash)
        }
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The text cannot be a content hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a content hash is 1 to 63 lower-case letters and digits")]
pub struct InvalidContentHash;

/// How far Helm got with a revision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReleaseState {
    /// Its objects were applied.
    Deployed,
    /// It failed, perhaps after some of its objects had been applied.
    Failed,
    /// A first install is under way, or was killed.
    PendingInstall,
    /// An upgrade is under way, or was killed.
    PendingUpgrade,
    /// A rollback is under way, or was killed.
    PendingRollback,
    /// A later revision took its place.
    Superseded,
    /// Its objects are being removed.
    Uninstalling,
    /// Its objects were removed and the history kept.
    Uninstalled,
    /// Helm cannot tell, or uses a word this version does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

impl ReleaseState {
    /// Whether an operation is under way, or was killed before it could say how it ended.
    pub fn is_pending(self) -> bool {
        matches!(self, Self::PendingInstall | Self::PendingUpgrade | Self::PendingRollback)
    }
}

/// One line of a release's history.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Revision {
    /// Counts up from 1.
    pub revision: u32,
    /// How far it got.
    #[serde(rename = "status")]
    pub state: ReleaseState,
    /// The chart as `name-version`.
    pub chart: String,
    /// When it was last written, as Helm prints it.
    pub updated: String,
    /// Helm's own account, such as `Upgrade complete` or the error.
    pub description: String,
}

/// The newest revision of a release.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Status {
    /// Its number.
    pub revision: u32,
    /// How far it got.
    pub state: ReleaseState,
    /// What it was made from; none when it was not made by [`crate::Helm::upgrade_install`].
    #[serde(deserialize_with = "hash_or_none")]
    pub hash: Option<ContentHash>,
}

/// Helm prints an empty text for a label that is not there.
fn hash_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ContentHash>, D::Error> {
    String::deserialize(deserializer).map(|text| text.parse().ok())
}

/// What a chart renders to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rendered {
    /// The Kubernetes objects in Helm's order, hooks (annotation `helm.sh/hook`) included.
    pub objects: Vec<Value>,
}
