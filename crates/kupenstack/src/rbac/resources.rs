//! What the controllers of the dotted arrow need: OpenStack's resources as objects.

use super::{Controller, Right, Scope};

const OURS: &str = "kupenstack.io";

pub(super) const CONTROLLERS: &[Controller] = &[
    Controller { name: "projects", rights: &[EVENTS, CLOUD, CREDENTIALS, PROJECTS] },
    Controller { name: "image", rights: &[EVENTS, CLOUD, NAMESPACES, CREDENTIALS, IMAGES] },
];

const READ: &[&str] = &["get", "list", "watch"];
const PATCH: &[&str] = &["patch"];

const CLOUD: &[Right] = &[Right {
    scope: Scope::Cluster,
    group: "cluster.kupenstack.io",
    resources: &["openstacks"],
    names: &[],
    verbs: READ,
    why: "where the cloud is, whether it is ready, which namespaces it takes",
}];

const NAMESPACES: &[Right] = &[Right {
    scope: Scope::Cluster,
    group: "",
    resources: &["namespaces"],
    names: &[],
    verbs: READ,
    why: "the project of a namespace",
}];

const PROJECTS: &[Right] = &[
    NAMESPACES[0],
    Right {
        scope: Scope::Cluster,
        group: "",
        resources: &["namespaces"],
        names: &[],
        verbs: PATCH,
        why: "our annotations and finalizer; a ValidatingAdmissionPolicy refuses everything else",
    },
];

const CREDENTIALS: &[Right] = &[Right {
    scope: Scope::CloudNamespace,
    group: "",
    resources: &["secrets"],
    names: &[],
    verbs: &["get", "create", "patch", "delete"],
    why: "credentials of the cloud and of each project's user, by name",
}];

const EVENTS: &[Right] = &[Right {
    scope: Scope::Cluster,
    group: "events.k8s.io",
    resources: &["events"],
    names: &[],
    verbs: &["create", "patch"],
    why: "events about objects in any namespace",
}];

const IMAGES: &[Right] = &[
    Right {
        scope: Scope::Cluster,
        group: OURS,
        resources: &["images"],
        names: &[],
        verbs: &["get", "list", "watch", "patch"],
        why: "images as declared; their finalizer",
    },
    Right {
        scope: Scope::Cluster,
        group: OURS,
        resources: &["images/status"],
        names: &[],
        verbs: PATCH,
        why: "images as observed",
    },
];
