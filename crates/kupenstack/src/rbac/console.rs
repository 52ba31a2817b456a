//! Rights for the console logs of VMs: what serving them takes, and who may read them.
//!
//! A console shows what a guest writes, and guests write passwords. So they are for those who may change the VM, and
//! who only looks on does not see them.

use super::{Right, Scope, render};

/// API group of what is read through the API server, below the objects.
pub(crate) const GROUP: &str = "subresources.kupenstack.io";
/// Name of its `APIService`.
pub(crate) const API_SERVICE: &str = "v1.subresources.kupenstack.io";

/// Name of the roles' parts of the operator.
const NAME: &str = "kupenstack-console-log";
const COMPONENT: &str = "console-log";

const REVIEW: Right = Right {
    scope: Scope::Cluster,
    group: "authorization.k8s.io",
    resources: &["subjectaccessreviews"],
    names: &[],
    verbs: &["create"],
    why: "whether whoever asks for a console log may read it",
};
const ANNOUNCE: Right = Right {
    scope: Scope::Cluster,
    group: "apiregistration.k8s.io",
    resources: &["apiservices"],
    names: &[API_SERVICE],
    verbs: &["list", "watch", "patch"],
    why: "whom API servers trust when they pass requests for console logs on",
};

/// The roles as a template of the chart.
pub(super) fn roles() -> String {
    let role = |purpose: &str, right: Right, account| {
        let name = format!("{NAME}-{purpose}");
        let role = render::Role { name: &name, component: COMPONENT, scope: right.scope, accounts: &[account] };
        role.text(&[right.into()])
    };
    [
        render::HEADER,
        "{{- if .Values.consoleLog.enabled }}\n",
        &role("serve", REVIEW, "resources"),
        &API_SERVERS.replace("NAME", NAME).replace("COMPONENT", COMPONENT),
        &READERS.replace("NAME", NAME).replace("COMPONENT", COMPONENT).replace("GROUP", GROUP),
        "{{- if not .Values.webhook.certManager }}\n",
        &role("announce", ANNOUNCE, "cloud"),
        "{{- end }}\n{{- end }}\n",
    ]
    .concat()
}

/// Kubernetes' own role for servers that requests are passed on to.
const API_SERVERS: &str = r#"---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: NAME
  namespace: kube-system
  labels:
    {{- include "kupenstack.labels" (list $ "COMPONENT") | nindent 4 }}
roleRef:
  # how API servers make themselves known, in one ConfigMap
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: extension-apiserver-authentication-reader
subjects:
  - kind: ServiceAccount
    name: kupenstack-resources
    namespace: {{ .Release.Namespace }}
"#;

/// For those who have Kubernetes' own `edit`, and `admin` with it.
const READERS: &str = r#"---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: NAME-edit
  labels:
    rbac.authorization.k8s.io/aggregate-to-edit: "true"
    {{- include "kupenstack.labels" (list $ "users") | nindent 4 }}
rules:
  - apiGroups: ["GROUP"]
    resources: [virtualmachines/log]
    verbs: [get]
"#;

/// All rights of the operator that the roles grant.
#[cfg(test)]
pub(super) fn rights() -> [Right; 2] {
    [REVIEW, ANNOUNCE]
}
