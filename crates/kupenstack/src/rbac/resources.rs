//! What the controllers of the dotted arrow need: OpenStack's resources as objects.

use super::{Controller, Right, Scope};

const OURS: &str = "kupenstack.io";

pub(super) const CONTROLLERS: &[Controller] = &[
    Controller { name: "projects", rights: &[CLOUD, NAMESPACES, EVENTS_IN_DEFAULT, PROJECTS, OCCUPANTS, HANDOUTS] },
    Controller { name: "quotas", rights: &[CLOUD, NAMESPACES, EVENTS, QUOTAS] },
    Controller { name: "aggregates", rights: &[CLOUD, NAMESPACES, NODES] },
    Controller { name: "fencing", rights: &[CLOUD, NAMESPACES, NODES] },
    Controller { name: "image", rights: &[CLOUD, NAMESPACES, EVENTS, IMAGES] },
    Controller { name: "clusterimage", rights: &[CLOUD, NAMESPACES, EVENTS_IN_DEFAULT, CLUSTER_IMAGES] },
    Controller { name: "flavor", rights: &[CLOUD, NAMESPACES, EVENTS_IN_DEFAULT, FLAVORS] },
    Controller { name: "externalnetwork", rights: &[CLOUD, NAMESPACES, EVENTS_IN_DEFAULT, EXTERNAL_NETWORKS] },
    Controller { name: "keypair", rights: &[CLOUD, NAMESPACES, EVENTS, KEY_PAIRS] },
    Controller { name: "network", rights: &[CLOUD, NAMESPACES, EVENTS, NETWORKS] },
    Controller { name: "securitygroup", rights: &[CLOUD, NAMESPACES, EVENTS, SECURITY_GROUPS] },
    Controller { name: "subnet", rights: &[CLOUD, NAMESPACES, EVENTS, SUBNETS] },
    Controller { name: "port", rights: &[CLOUD, NAMESPACES, EVENTS, PORTS] },
    Controller { name: "router", rights: &[CLOUD, NAMESPACES, EVENTS, ROUTERS] },
    Controller { name: "floatingip", rights: &[CLOUD, NAMESPACES, EVENTS, FLOATING_IPS] },
    Controller {
        name: "virtualmachine",
        rights: &[CLOUD, NAMESPACES, EVENTS, VIRTUAL_MACHINES, PARTS_OF_VIRTUAL_MACHINES],
    },
];

const READ: &[&str] = &["get", "list", "watch"];
const PATCH: &[&str] = &["patch"];

const CLOUD: &[Right] = &[
    Right {
        scope: Scope::Cluster,
        group: "cluster.kupenstack.io",
        resources: &["openstacks"],
        names: &[],
        verbs: READ,
        why: "where the cloud is, whether it is ready, which namespaces it takes",
    },
    Right {
        scope: Scope::CloudNamespace,
        group: "",
        resources: &["secrets"],
        names: &[],
        verbs: &["get"],
        why: "credentials of the cloud and of each project's user, by name",
    },
];

const NAMESPACES: &[Right] = &[Right {
    scope: Scope::Cluster,
    group: "",
    resources: &["namespaces"],
    names: &[],
    verbs: READ,
    why: "which namespaces there are, and their projects",
}];

const PROJECTS: &[Right] = &[
    Right {
        scope: Scope::Cluster,
        group: "",
        resources: &["namespaces"],
        names: &[],
        verbs: PATCH,
        why: "our annotations and finalizer; a ValidatingAdmissionPolicy refuses everything else",
    },
    Right {
        scope: Scope::CloudNamespace,
        group: "",
        resources: &["secrets"],
        names: &[],
        verbs: &["create", "patch", "delete"],
        why: "credentials of each project's user",
    },
];

/// Only read: their status is Kubernetes' own.
const QUOTAS: &[Right] = &[Right {
    scope: Scope::Cluster,
    group: "",
    resources: &["resourcequotas"],
    names: &[],
    verbs: READ,
    why: "what a namespace's project may have",
}];

/// Which VMs and flavors there are, the controllers of these tell.
const NODES: &[Right] = &[Right {
    scope: Scope::Cluster,
    group: "",
    resources: &["nodes"],
    names: &[],
    verbs: &["list", "watch"],
    why: "the labels of nodes, which VMs ask for, and whether a node is out of service",
}];

const EVENTS_IN_DEFAULT: &[Right] = &[Right {
    scope: Scope::DefaultNamespace,
    group: "events.k8s.io",
    resources: &["events"],
    names: &[],
    verbs: &["create", "patch"],
    why: "events about what is in no namespace",
}];

/// One name, and no other Secret of the namespaces. Without that, `patch` would be as good as `get`: it answers with
/// the object.
const HANDOUTS: &[Right] = &[Right {
    scope: Scope::Cluster,
    group: "",
    resources: &["secrets"],
    names: &[kupenstack_api::resources::CREDENTIAL_SECRET],
    verbs: &["get", "list", "watch", "create", "patch", "delete"],
    why: "the application credential that a namespace asks for; a ValidatingAdmissionPolicy holds it to type Opaque",
}];

/// A namespace waits at its end for what is in its project.
const OCCUPANTS: &[Right] = &[Right {
    scope: Scope::Cluster,
    group: OURS,
    resources: &[
        "floatingips",
        "images",
        "keypairs",
        "networks",
        "ports",
        "routers",
        "securitygroups",
        "subnets",
        "virtualmachines",
    ],
    names: &[],
    verbs: READ,
    why: "what is still in a namespace's project",
}];

const EVENTS: &[Right] = &[Right {
    scope: Scope::Cluster,
    group: "events.k8s.io",
    resources: &["events"],
    names: &[],
    verbs: &["create", "patch"],
    why: "events about objects in any namespace",
}];

/// Rights on a resource kind, for its own controller.
macro_rules! kind {
    ($plural:literal) => {
        &[
            Right {
                scope: Scope::Cluster,
                group: OURS,
                resources: &[$plural],
                names: &[],
                verbs: &["get", "list", "watch", "patch"],
                why: "what is declared; its finalizer",
            },
            Right {
                scope: Scope::Cluster,
                group: OURS,
                resources: &[concat!($plural, "/status")],
                names: &[],
                verbs: PATCH,
                why: "what is observed of it",
            },
        ]
    };
}

const IMAGES: &[Right] = kind!("images");
const CLUSTER_IMAGES: &[Right] = kind!("clusterimages");
const FLAVORS: &[Right] = kind!("flavors");
const EXTERNAL_NETWORKS: &[Right] = kind!("externalnetworks");
const NETWORKS: &[Right] = kind!("networks");
const SECURITY_GROUPS: &[Right] = kind!("securitygroups");
const SUBNETS: &[Right] = kind!("subnets");
const PORTS: &[Right] = kind!("ports");
const KEY_PAIRS: &[Right] = kind!("keypairs");
const ROUTERS: &[Right] = kind!("routers");
const FLOATING_IPS: &[Right] = kind!("floatingips");
const VIRTUAL_MACHINES: &[Right] = kind!("virtualmachines");

const PARTS_OF_VIRTUAL_MACHINES: &[Right] = &[Right {
    scope: Scope::Cluster,
    group: OURS,
    resources: &["ports", "floatingips"],
    names: &[],
    verbs: &["create", "patch", "delete"],
    why: "the ports and the floating IP that are made for a VM",
}];
