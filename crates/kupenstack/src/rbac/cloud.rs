//! What the controllers of the dark arrow need: OpenStack itself as objects.

use super::{Controller, Right, Scope};

const OURS: &str = "cluster.kupenstack.io";

pub(super) const CONTROLLERS: &[Controller] = &[
    Controller { name: "openstack", rights: &[EVENTS, CLUSTER_ID, CLOUD, SERVICES] },
    Controller { name: "mariadb", rights: &[EVENTS, ROLLOUT, DATABASE] },
    Controller { name: "memcached", rights: &[EVENTS, ROLLOUT, CACHE] },
    Controller { name: "keystone", rights: &[EVENTS, ROLLOUT, IDENTITY] },
    Controller { name: "glance", rights: &[EVENTS, ROLLOUT, IMAGE] },
    Controller { name: "rabbitmq", rights: &[EVENTS, ROLLOUT, BROKER] },
    Controller { name: "placement", rights: &[EVENTS, ROLLOUT, RESOURCES] },
    Controller { name: "ovn", rights: &[EVENTS, ROLLOUT, VIRTUAL_NETWORKS] },
    Controller { name: "neutron", rights: &[EVENTS, ROLLOUT, NETWORK] },
    Controller { name: "libvirt", rights: &[EVENTS, ROLLOUT, HYPERVISOR] },
    Controller { name: "nova", rights: &[EVENTS, ROLLOUT, COMPUTE] },
];

const PATCH: &[&str] = &["patch"];
const UPDATE: &[&str] = &["update"];

const CLOUD: &[Right] = &[
    Right {
        scope: Scope::Cluster,
        group: OURS,
        resources: &["openstacks"],
        names: &[],
        verbs: &["get", "list", "watch", "patch"],
        why: "the cloud as declared; its finalizer",
    },
    Right {
        scope: Scope::Cluster,
        group: OURS,
        resources: &["openstacks/status"],
        names: &[],
        verbs: PATCH,
        why: "the cloud as observed",
    },
    Right {
        scope: Scope::Cluster,
        group: OURS,
        resources: &["openstacks/finalizers"],
        names: &[],
        verbs: UPDATE,
        why: "owner references of the service objects",
    },
];

const CLUSTER_ID: &[Right] = &[Right {
    scope: Scope::Cluster,
    group: "",
    resources: &["namespaces"],
    names: &["kube-system"],
    verbs: &["get"],
    why: "its UID identifies the cluster in ownership marks",
}];

const SERVICES: &[Right] = &[Right {
    scope: Scope::CloudNamespace,
    group: OURS,
    resources: &[
        "mariadbs",
        "memcacheds",
        "keystones",
        "glances",
        "rabbitmqs",
        "placements",
        "ovns",
        "neutrons",
        "libvirts",
        "novas",
    ],
    names: &[],
    verbs: &["get", "list", "watch", "create", "patch", "delete"],
    why: "one object per service of the cloud",
}];

/// Rights on a service kind, for its own controller.
macro_rules! service {
    ($plural:literal) => {
        &[
            Right {
                scope: Scope::CloudNamespace,
                group: OURS,
                resources: &[$plural],
                names: &[],
                verbs: &["get", "list", "watch", "patch"],
                why: "the service as declared; its finalizer",
            },
            Right {
                scope: Scope::CloudNamespace,
                group: OURS,
                resources: &[concat!($plural, "/status")],
                names: &[],
                verbs: PATCH,
                why: "the service as observed",
            },
            Right {
                scope: Scope::CloudNamespace,
                group: OURS,
                resources: &[concat!($plural, "/finalizers")],
                names: &[],
                verbs: UPDATE,
                why: "owner references of what is made for the service",
            },
        ]
    };
}

const DATABASE: &[Right] = service!("mariadbs");
const CACHE: &[Right] = service!("memcacheds");
const IDENTITY: &[Right] = service!("keystones");
const IMAGE: &[Right] = service!("glances");
const BROKER: &[Right] = service!("rabbitmqs");
const RESOURCES: &[Right] = service!("placements");
const VIRTUAL_NETWORKS: &[Right] = service!("ovns");
const NETWORK: &[Right] = service!("neutrons");
const HYPERVISOR: &[Right] = service!("libvirts");
const COMPUTE: &[Right] = service!("novas");

const EVENTS: &[Right] = &[
    Right {
        scope: Scope::CloudNamespace,
        group: "events.k8s.io",
        resources: &["events"],
        names: &[],
        verbs: &["create", "patch"],
        why: "events about services",
    },
    Right {
        scope: Scope::DefaultNamespace,
        group: "events.k8s.io",
        resources: &["events"],
        names: &[],
        verbs: &["create", "patch"],
        why: "events about the cloud, which has no namespace",
    },
];

const STORE: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];

/// A rollout: Helm releases, jobs of our own, and looking at what runs.
const ROLLOUT: &[Right] = &[
    Right {
        scope: Scope::CloudNamespace,
        group: "",
        resources: &["secrets", "configmaps"],
        names: &[],
        verbs: &["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"],
        why: "configuration and credentials, watched by label; Helm's records, which it finds by label; copies for jobs, removed together",
    },
    Right {
        scope: Scope::CloudNamespace,
        group: "",
        resources: &["services", "serviceaccounts", "persistentvolumeclaims"],
        names: &[],
        verbs: STORE,
        why: "objects of charts, put back when somebody changes them",
    },
    Right {
        scope: Scope::CloudNamespace,
        group: "policy",
        resources: &["poddisruptionbudgets"],
        names: &[],
        verbs: STORE,
        why: "disruption budgets of charts",
    },
    Right {
        scope: Scope::CloudNamespace,
        group: "apps",
        resources: &["deployments", "statefulsets", "daemonsets"],
        names: &[],
        verbs: STORE,
        why: "workloads of charts, and whether they are up",
    },
    Right {
        scope: Scope::CloudNamespace,
        group: "apps",
        resources: &["replicasets", "controllerrevisions"],
        names: &[],
        verbs: &["get", "list"],
        why: "which configuration former revisions mount; the rest is removed",
    },
    Right {
        scope: Scope::CloudNamespace,
        group: "batch",
        resources: &["jobs"],
        names: &[],
        verbs: STORE,
        why: "jobs of charts, run in our order",
    },
    Right {
        scope: Scope::CloudNamespace,
        group: "",
        resources: &["pods"],
        names: &[],
        verbs: &["get", "list", "watch", "delete"],
        why: "why a job or workload does not come up; a failing pod that keeps its successor from being made goes, one of an earlier version when it is asked for",
    },
    Right {
        scope: Scope::CloudNamespace,
        group: "",
        resources: &["pods/log"],
        names: &[],
        verbs: &["get"],
        why: "the last lines of a failed job",
    },
    Right {
        scope: Scope::CloudNamespace,
        group: "",
        resources: &["events"],
        names: &[],
        verbs: &["list"],
        why: "what Kubernetes says about a pod that does not get on",
    },
    Right {
        scope: Scope::CloudNamespace,
        group: "rbac.authorization.k8s.io",
        resources: &["roles"],
        names: &[],
        verbs: &["get", "list", "watch", "create", "update", "patch", "delete", "escalate", "bind"],
        why: "roles of charts; without `escalate` and `bind` Kubernetes lets nobody grant what they do not hold",
    },
    Right {
        scope: Scope::CloudNamespace,
        group: "rbac.authorization.k8s.io",
        resources: &["rolebindings"],
        names: &[],
        verbs: STORE,
        why: "role bindings of charts",
    },
];
