//! Keeps the webhook's certificate valid and trusted.
//!
//! Every replica does the same: it serves what the Secret holds, writes into the Secret what is due, and tells API servers
//! whom to trust. Writes name the version that they are made for, so that of several replicas one is the first and the
//! others follow it.

use std::{sync::Arc, time::Duration};

use futures::{
    StreamExt,
    stream::{BoxStream, select_all},
};
use jiff::Timestamp;
use k8s_openapi::{
    ByteString,
    api::{admissionregistration::v1::ValidatingWebhookConfiguration, core::v1::Secret},
    kube_aggregator::pkg::apis::apiregistration::v1::APIService,
};
use kube::{Api, Client, api::Patch, runtime::watcher};
use kupenstack_runtime::{Context, Failure, ObjectRef, Shared, apply, growing};
use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{
    Issuer, Settings,
    announced::Announced,
    bundle::{self, Bundle},
    certificates::Served,
    pki::Lifetimes,
};

/// Before the second attempt at what went wrong; each further one waits twice as long.
const RETRY: Duration = Duration::from_secs(1);
/// Longest time between two looks, also while only an event can bring news.
const LONGEST_REST: Duration = Duration::from_mins(1);

/// Keeps one Secret, and what tells API servers of it.
pub(crate) struct Keeper {
    client: Client,
    settings: Settings,
    served: Arc<Served>,
    certified: CancellationToken,
    secret: Arc<Shared<Secret>>,
    /// Watched only if they are ours to keep right.
    configuration: Option<Announced<ValidatingWebhookConfiguration>>,
    api_service: Option<Announced<APIService>>,
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
        let secret = Shared::start(Api::namespaced(client.clone(), &settings.namespace), one, context);
        let is_own = matches!(settings.issuer, Issuer::Own(_));
        let configuration = is_own.then(|| Announced::start(Api::all(client.clone()), &settings.object, context));
        let api_service = settings.api_service.as_ref().filter(|_| is_own);
        let api_service = api_service.map(|name| Announced::start(Api::all(client.clone()), name, context));
        Self { client, settings, served, certified, secret, configuration, api_service }
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
        if let Some(configuration) = &self.configuration {
            configuration.ready().await?;
        }
        if let Some(api_service) = &self.api_service {
            api_service.ready().await?;
        }
        Ok(())
    }

    fn news(&self) -> BoxStream<'static, ObjectRef<Secret>> {
        let key = self.key();
        let secrets = self.secret.changes(move |_, _| vec![key.clone()]);
        let configuration = self.configuration.iter().map(|one| one.changes(self.key()));
        let api_service = self.api_service.iter().map(|one| one.changes(self.key()));
        select_all(configuration.chain(api_service).chain([secrets])).boxed()
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
        let trusted = ByteString(bundle.trusted().into_bytes());
        let mut were_told = true;
        if let Some(configuration) = &self.configuration {
            were_told &= configuration.tell(&trusted).await?;
        }
        if let Some(api_service) = &self.api_service {
            were_told &= api_service.tell(&trusted).await?;
        }
        Ok(were_told)
    }
}

/// Whether a write was made; false when the object is another one by now.
pub(crate) fn written<K>(result: kube::Result<K>) -> Result<bool, Failure> {
    match result {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => Ok(false),
        Err(error) => Err(error.into()),
    }
}
