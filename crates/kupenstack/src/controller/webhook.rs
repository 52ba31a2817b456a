//! What API servers ask, which every replica answers, whichever of them works.

use anyhow::Context as _;
use kupenstack_admission::{Issuer, Lifetimes, Settings, Webhook};
use kupenstack_core::admission::Rule;
use kupenstack_runtime::Context;

use super::{Selection, console};
use crate::{
    cli::{Certificate, ControllerArgs},
    rbac::{self, WEBHOOK},
};

/// What a process that serves the webhook is not ready without.
pub(super) const CERTIFICATE: &str = "the webhook's certificate, which API servers have to trust";

/// Listens, if it is to. It judges what either account's controllers do: rules need no rights. Console logs do.
pub(super) async fn bind(
    args: &ControllerArgs,
    selection: &Selection,
    context: &Context,
) -> anyhow::Result<Option<(Webhook, Vec<Rule>)>> {
    let Some(listen) = args.webhook_listen else { return Ok(None) };
    let settings = Settings {
        listen,
        names: args.webhook_names.clone(),
        namespace: args.operator_namespace.clone(),
        object: WEBHOOK.to_owned(),
        api_service: args.console_log.then(|| rbac::console::API_SERVICE.to_owned()),
        issuer: match args.webhook_certificate {
            Certificate::Keep => Issuer::Own(Lifetimes::default()),
            Certificate::Read => Issuer::Other,
        },
    };
    let webhook = Webhook::bind(settings).await.context("serve the webhook")?;
    let serves_consoles = args.console_log && selection.any_of(&rbac::RESOURCES);
    let webhook = if serves_consoles { webhook.with_texts(console::api(context.client.clone())) } else { webhook };
    let mut rules = kupenstack_deployment::rules(&args.cloud_namespace);
    rules.extend(kupenstack_resources::rules());
    Ok(Some((webhook, rules)))
}
