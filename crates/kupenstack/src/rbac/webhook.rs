//! Rights for the webhook's certificate, with which console logs are served too.
//!
//! Whoever may write a webhook configuration can have the API server send it any object. So only one account may, and
//! none when cert-manager does it.

use super::{Right, Scope, render};

/// Name of everything that belongs to the webhook.
pub(crate) const WEBHOOK: &str = "kupenstack-webhook";

/// A right in a role of its own, and the accounts that have it.
struct Grant {
    purpose: &'static str,
    right: Right,
    accounts: &'static [&'static str],
}

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

/// Where there is a webhook.
const SERVE: &[Grant] = &[Grant { purpose: "read", right: SECRET, accounts: &["cloud", "resources"] }];
/// Where its certificate is made by itself.
const KEEP: &[Grant] = &[
    Grant { purpose: "keep", right: KEEP_SECRET, accounts: &["cloud"] },
    Grant { purpose: "keep", right: CONFIGURATION, accounts: &["cloud"] },
];

/// The roles as a template of the chart.
pub(super) fn roles() -> String {
    [
        render::HEADER,
        "{{- if or .Values.webhook.enabled .Values.consoleLog.enabled }}\n",
        &SERVE.iter().map(role).collect::<String>(),
        "{{- if not .Values.webhook.certManager }}\n",
        &KEEP.iter().map(role).collect::<String>(),
        "{{- end }}\n{{- end }}\n",
    ]
    .concat()
}

fn role(grant: &Grant) -> String {
    let name = format!("{WEBHOOK}-{}", grant.purpose);
    let role = render::Role { name: &name, component: "webhook", scope: grant.right.scope, accounts: grant.accounts };
    role.text(&[grant.right.into()])
}

/// All rights that the roles grant.
#[cfg(test)]
pub(super) fn rights() -> impl Iterator<Item = Right> {
    SERVE.iter().chain(KEEP).map(|grant| grant.right)
}
