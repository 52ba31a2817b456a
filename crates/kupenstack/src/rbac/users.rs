//! Roles for people: per kind, added to Kubernetes' own `view` and `edit`, and through them to `admin`.
//!
//! Kinds without a namespace are for the administrators of the cluster, who hold every right already; only
//! reading them is added to `view`. Status is the operator's: no user role writes it.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::render::HEADER;

const VIEW: &[&str] = &["get", "list", "watch"];
const EDIT: &[&str] = &["create", "update", "patch", "delete", "deletecollection"];

/// The roles for all kinds.
pub(super) fn roles(kinds: &[CustomResourceDefinition]) -> String {
    let mut text = HEADER.to_owned();
    for kind in kinds {
        text.push_str(&role(kind, "view", VIEW));
        if kind.spec.scope == "Namespaced" {
            text.push_str(&role(kind, "edit", EDIT));
        }
    }
    text
}

fn role(kind: &CustomResourceDefinition, name: &str, verbs: &[&str]) -> String {
    let (plural, group, verbs) = (&kind.spec.names.plural, &kind.spec.group, verbs.join(", "));
    format!(
        r#"---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: kupenstack-{plural}-{name}
  labels:
    rbac.authorization.k8s.io/aggregate-to-{name}: "true"
    {{{{- include "kupenstack.labels" (list $ "users") | nindent 4 }}}}
rules:
  - apiGroups: ["{group}"]
    resources: [{plural}]
    verbs: [{verbs}]
"#
    )
}
