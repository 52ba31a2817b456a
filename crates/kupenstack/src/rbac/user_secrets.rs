//! Rights on users' own Secrets, in whichever namespace: nothing less than all of them, since a role can't tell one namespace's
//! from another's by what an object there names. So they are granted only if the chart is told to; without them, who wants
//! the operator to read a Secret lets it do so there.

use super::{Right, Scope, render};

const NAME: &str = "kupenstack-user-secrets";
const COMPONENT: &str = "user-secrets";

const USER_SECRETS: Right = Right {
    scope: Scope::Cluster,
    group: "",
    resources: &["secrets"],
    names: &[],
    verbs: &["get", "create"],
    why: "user data from the Secret that a VM names, and the private key that is made for a KeyPair",
};

/// The role as a template of the chart.
pub(super) fn roles() -> String {
    let role = render::Role { name: NAME, component: COMPONENT, scope: USER_SECRETS.scope, accounts: &["resources"] };
    let role = role.text(&[USER_SECRETS.into()]);
    [render::HEADER, "{{- if .Values.userSecrets.enabled }}\n", &role, "{{- end }}\n"].concat()
}
