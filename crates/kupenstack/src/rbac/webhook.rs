//! Rights for the webhook's certificate.
//!
//! Whoever may write a webhook configuration can have the API server send it any object. So only one account may, and
//! none when cert-manager does it.

use super::{Right, Scope, render};

/// Name of everything that belongs to the webhook.
pub(crate) const WEBHOOK: &str = "kupenstack-webhook";

const SECRET: Right = Right {
    scope: Scope::OperatorNamespace,
    group: "",
    resources: &["secrets"],
    names: &[WEBHOOK],
    verbs: &["list", "watch"],
    why: "the certificate that the webhook serves with",
};
const KEEP_SECRET: Right = Right { verbs: &["patch"], why: "that certificate, made and renewed", ..SECRET };
const CONFIGURATION: Right = Right {
    scope: Scope::Cluster,
    group: "admissionregistration.k8s.io",
    resources: &["validatingwebhookconfigurations"],
    names: &[WEBHOOK],
    verbs: &["list", "watch", "patch"],
    why: "whom API servers trust when they ask the webhook",
};

/// The roles as a template of the chart.
pub(super) fn roles() -> String {
    [
        render::HEADER,
        "{{- if .Values.webhook.enabled }}\n",
        &role("Role", "read", &[SECRET]),
        &binding("Role", "read", &["cloud", "resources"]),
        "{{- if not .Values.webhook.certManager }}\n",
        &role("Role", "keep", &[KEEP_SECRET]),
        &binding("Role", "keep", &["cloud"]),
        &role("ClusterRole", "keep", &[CONFIGURATION]),
        &binding("ClusterRole", "keep", &["cloud"]),
        "{{- end }}\n{{- end }}\n",
    ]
    .concat()
}

fn role(kind: &str, purpose: &str, rights: &[Right]) -> String {
    let rules: String = rights.iter().map(|right| render::right(right, right.resources)).collect();
    format!("{}rules:\n{rules}", head(kind, purpose))
}

fn binding(kind: &str, purpose: &str, accounts: &[&str]) -> String {
    let subject = |account: &&str| {
        format!(
            "  - kind: ServiceAccount\n    name: kupenstack-{account}\n    namespace: {{{{ .Release.Namespace }}}}\n"
        )
    };
    format!(
        "{head}roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: {kind}\n  name: {WEBHOOK}-{purpose}\nsubjects:\n{subjects}",
        head = head(&format!("{kind}Binding"), purpose),
        subjects = accounts.iter().map(subject).collect::<String>(),
    )
}

fn head(kind: &str, purpose: &str) -> String {
    let is_namespaced = kind.starts_with("Role");
    let namespace = if is_namespaced { "  namespace: {{ .Release.Namespace }}\n" } else { "" };
    format!(
        "---
apiVersion: rbac.authorization.k8s.io/v1
kind: {kind}
metadata:
  name: {WEBHOOK}-{purpose}
{namespace}  labels:
    {{{{- include \"kupenstack.labels\" (list $ \"webhook\") | nindent 4 }}}}
"
    )
}
