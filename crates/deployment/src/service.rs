//! What a service tells the engine about itself.

use std::collections::BTreeMap;

use futures::{
    FutureExt,
    future::{BoxFuture, ready},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Client;
use kupenstack_api::cluster::{CommonSpec, Conf, Nodes, OpenStackSpec, Own, ServiceStatus, VolumeClaim};
use kupenstack_openstack::CloudConfig;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use crate::{Error, catalogue::Part, credentials::Generated, exposure::Door, probe::NotProven, values::DB_PASSWORD};

/// Index of a service in the order in which services start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    MariaDB,
    Memcached,
    Keystone,
    Glance,
    RabbitMQ,
    Placement,
    Ovn,
    Neutron,
    Libvirt,
    Nova,
}

impl Kind {
    pub(crate) const ALL: [Self; 10] = [
        Self::MariaDB,
        Self::Memcached,
        Self::Keystone,
        Self::Glance,
        Self::RabbitMQ,
        Self::Placement,
        Self::Ovn,
        Self::Neutron,
        Self::Libvirt,
        Self::Nova,
    ];

    /// The kind's name in the API.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::MariaDB => "MariaDB",
            Self::Memcached => "Memcached",
            Self::Keystone => "Keystone",
            Self::Glance => "Glance",
            Self::RabbitMQ => "RabbitMQ",
            Self::Placement => "Placement",
            Self::Ovn => "OVN",
            Self::Neutron => "Neutron",
            Self::Libvirt => "Libvirt",
            Self::Nova => "Nova",
        }
    }

    /// Name of the one object of the kind, of its chart and of its Helm release.
    pub(crate) fn object(self) -> &'static str {
        match self {
            Self::MariaDB => "mariadb",
            Self::Memcached => "memcached",
            Self::Keystone => "keystone",
            Self::Glance => "glance",
            Self::RabbitMQ => "rabbitmq",
            Self::Placement => "placement",
            Self::Ovn => "ovn",
            Self::Neutron => "neutron",
            Self::Libvirt => "libvirt",
            Self::Nova => "nova",
        }
    }
}

/// How a service takes its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// A file that oslo.config reads, as all services of OpenStack do.
    Oslo,
    /// Another file with sections.
    Sections,
    /// Something without sections: arguments of a command, files of a kind of their own. In a spec each of them makes up
    /// a section, which has its name in the chart's `conf`.
    Flat(&'static [&'static str]),
}

/// A file that can be given whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum File {
    Policy,
    Paste,
    Logging,
}

impl File {
    /// Its name in a spec and in the chart's `conf`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Paste => "paste",
            Self::Logging => "logging",
        }
    }

    /// What it consists of.
    pub(crate) fn entries(self) -> &'static str {
        match self {
            Self::Policy => "rules",
            Self::Paste | Self::Logging => "sections",
        }
    }
}

/// A service of the cloud: what its chart needs and how it is proven to work. The engine does the rest.
pub(crate) trait Service: Send + Sync + 'static {
    /// Which service this is.
    fn kind(&self) -> Kind;

    /// Whether a cloud has the service unless its spec says otherwise.
    fn by_default(&self) -> bool {
        true
    }

    /// Services that must be ready before this one starts.
    fn dependencies(&self) -> &'static [Kind];

    /// Credentials that are generated for this service, once.
    fn credentials(&self) -> &'static [Generated];

    /// The chart's `images.tags` and the image each runs from.
    fn images(&self) -> &'static [(&'static str, Part)];

    /// Names of the components whose pods go wherever the spec's `nodeSelector` says, as in the chart's `labels`. The pods
    /// of the first one answer requests: the service is stopped when `pod.replicas` has none of them.
    fn components(&self) -> &'static [&'static str];

    /// Values that only this service's chart has. `secrets` holds the generated credentials of all services so far.
    fn values(&self, _request: &Request, _secrets: &Secrets) -> Value {
        json!({})
    }

    /// How the service takes its options.
    fn format(&self) -> Format;

    /// Files that can be given whole.
    fn files(&self) -> &'static [File] {
        &[]
    }

    /// Options that the operator sets for this service; everything that a user says wins over them.
    fn options(&self, _request: &Request) -> Conf {
        Conf::new()
    }

    /// The service's object as the cloud's spec wants it: only fields that the cloud's spec sets.
    fn declared_by(&self, cloud: &OpenStackSpec) -> Value;

    /// Whether the service keeps data on a volume.
    fn has_volume(&self) -> bool {
        false
    }

    /// The service on whose volume this one keeps all it has; `None` for one with a volume of its own, or with nothing.
    fn data_is_in(&self) -> Option<Kind> {
        let in_database = self.credentials().iter().any(|g| matches!(g, Generated::Password(DB_PASSWORD)));
        (in_database && !self.has_volume()).then_some(Kind::MariaDB)
    }

    /// Whether pods of the service run on the nodes that carry VMs, which the spec's `computeNodes` says.
    fn is_on_compute_nodes(&self) -> bool {
        false
    }

    /// The `DaemonSet` whose pods' `/scripts/clean-node.sh` takes from a node what outlives them.
    fn cleans_nodes_like(&self) -> Option<&'static str> {
        None
    }

    /// URL inside the cluster, or on each node.
    fn endpoint(&self, namespace: &str) -> String;

    /// Ways into the service for users, once the cloud is exposed.
    fn doors(&self) -> &'static [Door] {
        &[]
    }

    /// Access to the cloud that this service hands out once its release is there.
    fn admin_access(&self, _request: &Request, _secrets: &Secrets) -> Option<CloudConfig> {
        None
    }

    /// Why the spec can't be, under the values that it leads to: names the field and what would do.
    fn refusal(&self, _request: &Request, _values: &Value) -> Option<String> {
        None
    }

    /// What is to be done from time to time while the service's pods run. What was done, as an event's reason and note.
    fn upkeep<'a>(
        &'a self,
        _client: &'a Client,
        _request: &'a Request,
        _values: &'a Value,
    ) -> BoxFuture<'a, Result<Option<(&'static str, String)>, Error>> {
        ready(Ok(None)).boxed()
    }

    /// Proves by a real request that the service works.
    fn prove<'a>(&'a self, scene: Scene<'a>) -> BoxFuture<'a, Result<(), NotProven>>;

    /// Proves by a real request that users have nothing there which would be lost with the service.
    fn prove_unused<'a>(&'a self, _scene: Scene<'a>) -> BoxFuture<'a, Result<(), NotProven>> {
        ready(Ok(())).boxed()
    }
}

/// What a proof may look at.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) request: &'a Request,
    pub(crate) secrets: &'a Secrets,
    /// On how many nodes the service's daemons run.
    pub(crate) nodes: u32,
}

/// Generated credentials by `<service>/<key>`.
#[derive(Default)]
pub(crate) struct Secrets(BTreeMap<String, SecretString>);

impl Secrets {
    pub(crate) fn insert(&mut self, kind: Kind, key: &str, value: SecretString) {
        self.0.insert(format!("{}/{key}", kind.object()), value);
    }

    pub(crate) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Has another secret masked.
    pub(crate) fn hide(&mut self, name: &str, value: SecretString) {
        self.0.insert(name.to_owned(), value);
    }

    /// `text` with every credential in it blackened: logs of failed pods may quote one.
    pub(crate) fn mask(&self, text: &str) -> String {
        let mut secrets: Vec<_> = self.0.values().map(ExposeSecret::expose_secret).filter(|s| !s.is_empty()).collect();
        // one may be the beginning of another, whose end must not be left
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.into_iter().fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
    }

    /// A credential of a service; `None` when that service has none yet.
    pub(crate) fn get(&self, kind: Kind, key: &str) -> Option<&SecretString> {
        self.0.get(&format!("{}/{key}", kind.object()))
    }
}

/// A service object, read once for a pass. The engine works on this, so that it is compiled once for all kinds.
pub(crate) struct Request {
    pub(crate) namespace: String,
    pub(crate) generation: Option<i64>,
    pub(crate) deleting: bool,
    pub(crate) owner: OwnerReference,
    pub(crate) common: CommonSpec,
    pub(crate) replicas: BTreeMap<&'static str, i32>,
    pub(crate) nodes: BTreeMap<&'static str, Nodes>,
    pub(crate) own: Own,
    pub(crate) volume: Option<VolumeClaim>,
    pub(crate) status: ServiceStatus,
    /// Value of the annotation [`crate::RETRY`].
    pub(crate) retry: Option<String>,
    /// Value of the annotation [`crate::REPLACE`].
    pub(crate) replace: Option<String>,
}
