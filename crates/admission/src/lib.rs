//! The validating webhook: judges objects before they are stored, by the rules that the controllers follow.
//!
//! It answers the API server's reviews over TLS, with a certificate of an authority of its own that it keeps in a Secret
//! and renews in time; or with one that somebody else puts there. The cluster does not depend on it: what it would
//! refuse is refused by the controllers too, in the object's status. This crate must not know any kind of ours.

mod bundle;
mod certificates;
mod keeper;
mod pki;
mod review;
mod server;

use std::{net::SocketAddr, sync::Arc};

use kupenstack_core::admission::Rule;
use kupenstack_runtime::{Context, Failure};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

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
    /// Whose certificates it serves with.
    pub issuer: Issuer,
}

/// A webhook that listens and does not answer yet.
pub struct Webhook {
    settings: Settings,
    listener: TcpListener,
    certified: CancellationToken,
}

impl Webhook {
    /// Listens. Fails when the address can't be used.
    pub async fn bind(settings: Settings) -> Result<Self, Failure> {
        let listener = TcpListener::bind(settings.listen).await;
        let listener =
            listener.map_err(|e| Failure::new("NotListening", format!("listen on {}: {e}", settings.listen)))?;
        Ok(Self { settings, listener, certified: CancellationToken::new() })
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
        let tls = certificates::tls(&served).map_err(|e| Failure::new("NoTls", e))?;
        let keeper = keeper::Keeper::start(self.settings, served, self.certified, &context);
        let judge = Arc::new(server::Judge { rules, metrics: Arc::clone(&context.metrics) });
        tokio::join!(keeper.run(context.stop.clone()), server::serve(self.listener, tls, judge, context.stop));
        Ok(())
    }
}
