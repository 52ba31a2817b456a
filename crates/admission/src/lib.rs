//! What API servers ask the operator: the validating webhook, which judges objects before they are stored, by the rules
//! that the controllers follow; and an aggregated API, which serves a text of objects to whom the cluster lets read it.
//!
//! It answers over TLS, with a certificate of an authority of its own that it keeps in a Secret
//! and renews in time; or with one that somebody else puts there. The cluster does not depend on the webhook: what it would
//! refuse is refused by the controllers too, in the object's status. This crate must not know any kind of ours.

mod aggregated;
mod announced;
mod bundle;
mod certificates;
mod front_proxy;
mod keeper;
mod pki;
mod review;
mod server;

use std::{net::SocketAddr, sync::Arc};

use kupenstack_core::admission::Rule;
use kupenstack_runtime::{Context, Failure};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::aggregated::Aggregated;
pub use aggregated::TextApi;
pub use pki::Lifetimes;

/// Whose certificates the webhook serves with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Issuer {
    /// Those of an authority of its own, which it makes API servers trust.
    Own(Lifetimes),
    /// Those that somebody else keeps in the Secret and makes API servers trust: cert-manager, or another process.
    Other,
}

/// What the webhook needs to be told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The names or addresses under which API servers reach it.
    pub names: Vec<String>,
    /// Namespace of the operator.
    pub namespace: String,
    /// Name of the Secret in that namespace, which has to exist, and of the `ValidatingWebhookConfiguration`.
    pub object: String,
    /// Name of the `APIService` by which API servers come here or to other processes that serve with the same
    /// certificates; none when there is no such thing.
    pub api_service: Option<String>,
    /// Whose certificates it serves with.
    pub issuer: Issuer,
}

/// A webhook that listens and does not answer yet.
pub struct Webhook {
    settings: Settings,
    listener: TcpListener,
    certified: CancellationToken,
    texts: Option<TextApi>,
}

impl Webhook {
    /// Listens. Fails when the address can't be used.
    pub async fn bind(settings: Settings) -> Result<Self, Failure> {
        let listener = TcpListener::bind(settings.listen).await;
        let listener =
            listener.map_err(|e| Failure::new("NotListening", format!("listen on {}: {e}", settings.listen)))?;
        Ok(Self { settings, listener, certified: CancellationToken::new(), texts: None })
    }

    /// Serves these texts as well.
    #[must_use]
    pub fn with_texts(self, texts: TextApi) -> Self {
        Self { texts: Some(texts), ..self }
    }

    /// Where it listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Cancelled once it has a certificate and API servers have been told to trust it, so that reviews are answered.
    pub fn certified(&self) -> CancellationToken {
        self.certified.clone()
    }

    /// Answers until the context is cancelled; reviews under way are finished.
    pub async fn run(self, rules: Vec<Rule>, context: Context) -> Result<(), Failure> {
        let served = Arc::new(certificates::Served::default());
        let tls = certificates::tls(&served, self.texts.is_some()).map_err(|e| Failure::new("NoTls", e))?;
        let keeper = keeper::Keeper::start(self.settings, served, self.certified, &context);
        let judge = server::Judge { rules, metrics: Arc::clone(&context.metrics) };
        let aggregated = self.texts.map(|texts| Aggregated::start(texts, &context));
        let serving = server::serve(self.listener, tls, judge, aggregated, context.stop.clone());
        tokio::join!(keeper.run(context.stop), serving);
        Ok(())
    }
}
