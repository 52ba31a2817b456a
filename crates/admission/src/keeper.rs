//! Keeps the webhook's certificate valid and trusted.
//!
//! Every replica does the same: it serves what the Secret holds, writes into the Secret what is due, and tells API servers
//! whom to trust. Writes name the version that they are made for, so that of several replicas one is the first and the
//! others follow it.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream::BoxStream};
use jiff::Timestamp;
use k8s_openapi::{
    ByteString,
    api::{admissionregistration::v1::ValidatingWebhookConfiguration, core::v1::Secret},
};
use kube::{Api, Client, api::Patch, runtime::watcher};
use kupenstack_runtime::{Context, Failure, ObjectRef, Shared, apply, growing};
use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{
    Issuer, Settings,
    bundle::{self, Bundle},
    certificates::Served,
    pki::Lifetimes,
};

/// Before the second attempt at what went wrong; each further one waits twice as long.
const RETRY: Duration = Duration::from_secs(1);
/// Longest time between two looks, also while only an event can bring news.
const LONGEST_REST: Duration = Duration::from_mins(1);

type Configuration = ValidatingWebhookConfiguration;

/// Keeps one Secret and one configuration.
pub(crate) struct Keeper {
    client: Client,
    settings: Settings,
    served: Arc<Served>,
    certified: CancellationToken,
    secret: Arc<Shared<Secret>>,
    /// Watched only if it is ours to keep right.
    configuration: Option<Arc<Shared<Configuration>>>,
}

impl Keeper {
    /// Starts to watch. Cancels `certified` when what is served is trusted.
    pub(crate) fn start(
        settings: Settings,
        served: Arc<Served>,
        certified: CancellationToken,
        context: &Context,
    ) -> Self {
        let client = context.client.clone();
        // by name, as the rights are
        let one = watcher::Config::default().fields(&format!("metadata.name={}", settings.object));
        let secret = Shared::start(Api::namespaced(client.clone(), &settings.namespace), one.clone(), context);
        let is_own = matches!(settings.issuer, Issuer::Own(_));
        let configuration = is_own.then(|| Shared::start(Api::all(client.clone()), one, context));
        Self { client, settings, served, certified, secret, configuration }
    }

    /// Works until `stop`.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let work = async {
            let mut news = self.news();
            if self.ready().await.is_err() {
                return;
            }
            let mut failures = 0;
            loop {
                let rest = match self.pass(Timestamp::now()).await {
                    Ok(rest) => {
                        failures = 0;
                        rest
                    }
                    Err(failure) => {
                        tracing::warn!(reason = failure.reason(), error = %failure, "the webhook's certificate");
                        let rest = growing(RETRY, failures, LONGEST_REST);
                        failures += 1;
                        rest
                    }
                };
                tokio::select! {
                    _ = news.next() => {}
                    () = sleep(rest) => {}
                }
            }
        };
        stop.run_until_cancelled(work).await;
    }

    async fn ready(&self) -> Result<(), Failure> {
        self.secret.ready().await?;
        match &self.configuration {
            Some(configuration) => configuration.ready().await,
            None => Ok(()),
        }
    }

    fn news(&self) -> BoxStream<'static, ObjectRef<Secret>> {
        let key = self.key();
        let of_configuration = key.clone();
        let secrets = self.secret.changes(move |_, _| vec![key.clone()]);
        match &self.configuration {
            Some(all) => {
                futures::stream::select(secrets, all.changes(move |_, _| vec![of_configuration.clone()])).boxed()
            }
            None => secrets,
        }
    }

    fn key(&self) -> ObjectRef<Secret> {
        ObjectRef::new(&self.settings.object).within(&self.settings.namespace)
    }

    /// Does what is to be done now. Returns how long nothing is, unless one of the objects changes.
    async fn pass(&self, now: Timestamp) -> Result<Duration, Failure> {
        let Some(secret) = self.secret.get(&self.key()) else {
            let Settings { object, namespace, .. } = &self.settings;
            tracing::warn!(
                "Secret {object} in namespace {namespace} does not exist, so that nothing is served; run `helm upgrade`, \
                 which makes it"
            );
            return Ok(LONGEST_REST);
        };
        match self.settings.issuer {
            Issuer::Own(lifetimes) => self.keep(&secret, &lifetimes, now).await,
            Issuer::Other => {
                if self.serve(&secret)? {
                    self.certified.cancel();
                }
                Ok(LONGEST_REST)
            }
        }
    }

    /// Serves what the Secret holds, and brings it up to date.
    async fn keep(&self, secret: &Secret, lifetimes: &Lifetimes, now: Timestamp) -> Result<Duration, Failure> {
        let unusable = |error: rcgen::Error| Failure::new("NoCertificate", error);
        let names = &self.settings.names;
        let Some(bundle) = secret.data.as_ref().and_then(Bundle::read) else {
            let bundle = Bundle::new(names, lifetimes, now).map_err(unusable)?;
            return self.write(secret, &bundle, "a new authority").await;
        };
        self.serve(secret)?;
        let is_trusted = self.announce(&bundle).await?;
        if is_trusted {
            self.certified.cancel();
        }
        match bundle.next(names, lifetimes, now, is_trusted).map_err(unusable)? {
            Some(next) => self.write(secret, &next, "renewed").await,
            None => Ok(bundle.rest(lifetimes, now)),
        }
    }

    /// Serves with what the Secret holds. Whether there is anything in it yet.
    fn serve(&self, secret: &Secret) -> Result<bool, Failure> {
        let Some((chain, key)) = secret.data.as_ref().and_then(bundle::serving) else {
            tracing::info!("the Secret holds no tls.crt and tls.key yet");
            return Ok(false);
        };
        let changed = self.served.set(chain, &key).map_err(|error| Failure::new("CertificateUnusable", error))?;
        if changed {
            tracing::info!("the webhook serves another certificate");
        }
        Ok(true)
    }

    /// Writes the bundle unless somebody else was faster. Either way a watch tells what is there then.
    async fn write(&self, secret: &Secret, bundle: &Bundle, why: &str) -> Result<Duration, Failure> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.settings.namespace);
        let version = &secret.metadata.resource_version;
        let patch = json!({"metadata": {"resourceVersion": version}, "data": bundle.data()});
        if written(api.patch(&self.settings.object, &apply::patch_params(), &Patch::Merge(patch)).await)? {
            tracing::info!(why, "the webhook's certificates were written");
        }
        Ok(LONGEST_REST)
    }

    /// Has API servers trust the bundle's authorities. Whether they have been told before this pass.
    async fn announce(&self, bundle: &Bundle) -> Result<bool, Failure> {
        // without a configuration nobody asks
        let key = ObjectRef::new(&self.settings.object);
        let Some(configuration) = self.configuration.as_ref().and_then(|all| all.get(&key)) else {
            return Ok(true);
        };
        let trusted = ByteString(bundle.trusted().into_bytes());
        let webhooks = configuration.webhooks.iter().flatten();
        let wrong: Vec<_> = webhooks.filter(|w| w.client_config.ca_bundle.as_ref() != Some(&trusted)).collect();
        if wrong.is_empty() {
            return Ok(true);
        }
        let webhooks = wrong.iter().map(|w| json!({"name": w.name, "clientConfig": {"caBundle": trusted}}));
        let patch = json!({
            "metadata": {"resourceVersion": configuration.metadata.resource_version},
            "webhooks": webhooks.collect::<Vec<_>>(),
        });
        let api: Api<Configuration> = Api::all(self.client.clone());
        written(api.patch(&self.settings.object, &apply::patch_params(), &Patch::Strategic(patch)).await)?;
        Ok(false)
    }
}

/// Whether a write was made; false when the object is another one by now.
fn written<K>(result: kube::Result<K>) -> Result<bool, Failure> {
    match result {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => Ok(false),
        Err(error) => Err(error.into()),
    }
}
