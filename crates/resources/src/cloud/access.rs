//! Clients of the cloud's users, made from Secrets in the cloud's namespace.
//!
//! A Secret is read when it is needed and again after a minute, never watched: that needs no right to list Secrets
//! and keeps no password but in the clients. One read a minute per namespace in use is cheap next to the requests.

use std::{
    collections::HashMap,
    error::Error,
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt};
use kupenstack_core::{Outcome, reason};
use kupenstack_openstack::{Client, ClientCache, CloudConfig, Options};
use kupenstack_runtime::Failure;

use super::Site;
use crate::stop::Stop;

/// Key of the Secrets' one value.
pub(crate) const CLOUDS_YAML: &str = "clouds.yaml";
/// Secret of the administrator, and the name of the cloud in it.
const ADMIN: (&str, &str) = ("openstack-admin", "admin");
/// How long a Secret is trusted to be what it was.
const TRUSTED: Duration = Duration::from_mins(1);
/// Users whose clients, and so tokens, are kept.
const USERS: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// Secret with the credentials of a namespace's user. The cloud in it has the namespace's name.
pub(crate) fn project_secret(namespace: &str) -> String {
    format!("project-{namespace}")
}

pub(crate) struct Access {
    kubernetes: kube::Client,
    options: Options,
    held: Mutex<Held>,
}

/// A Secret that is being read for all who need it: at a start, or after a minute, they all come at once.
type Reading = Shared<BoxFuture<'static, Result<Option<Secret>, Arc<kube::Error>>>>;

#[derive(Default)]
struct Held {
    admin: Option<Admin>,
    /// The administrator's Secret on its way, and of which cloud. Not kept once it is here.
    reading: Option<(Site, Reading)>,
    /// By namespace.
    projects: HashMap<String, Seen>,
}

struct Admin {
    site: Site,
    seen: Seen,
    config: CloudConfig,
    client: Client,
    /// Keyed by namespace and version of its Secret.
    users: Arc<ClientCache>,
}

/// A version of a Secret and when it was last found to be the newest.
#[derive(Clone)]
struct Seen {
    version: String,
    /// `None` when there is reason to doubt it.
    at: Option<Instant>,
}

impl Seen {
    fn now(version: String) -> Self {
        Self { version, at: Some(Instant::now()) }
    }

    fn is_fresh(&self) -> bool {
        self.at.is_some_and(|at| at.elapsed() < TRUSTED)
    }
}

impl Access {
    pub(crate) fn new(kubernetes: kube::Client, options: Options) -> Self {
        Self { kubernetes, options, held: Mutex::default() }
    }

    pub(crate) async fn admin(&self, site: &Site) -> Result<(Client, CloudConfig), Stop> {
        self.refresh_admin(site).await?;
        let held = self.held();
        // it may have been forgotten meanwhile, by a pass that was refused
        held.admin.as_ref().map(|admin| (admin.client.clone(), admin.config.clone())).ok_or_else(|| missing(site))
    }

    pub(crate) async fn project(&self, site: &Site, namespace: &str) -> Result<Option<Client>, Stop> {
        self.refresh_admin(site).await?;
        let Some(users) = self.held().admin.as_ref().map(|admin| Arc::clone(&admin.users)) else {
            return Err(missing(site));
        };
        let known = self.held().projects.get(namespace).filter(|seen| seen.is_fresh()).cloned();
        if let Some(client) = known.and_then(|seen| users.get(&key(namespace, &seen.version))) {
            return Ok(Some(client));
        }
        let name = project_secret(namespace);
        let Some(secret) = self.secret(&site.namespace, &name).await? else {
            self.forget_project(namespace);
            return Ok(None);
        };
        let version = version(&secret);
        let key = key(namespace, &version);
        let client = match users.get(&key) {
            Some(client) => client,
            None => users.insert(key, read(&site.namespace, &secret, namespace)?.credentials),
        };
        self.held().projects.insert(namespace.to_owned(), Seen::now(version));
        Ok(Some(client))
    }

    /// The next use reads the Secret and asks for a token, even if the Secret is the same: a token can outlive what it
    /// stands for, when Keystone's database is replaced.
    pub(crate) fn distrust_admin(&self) {
        let mut held = self.held();
        // one that was asked for before may be of before
        held.reading = None;
        if let Some(admin) = &mut held.admin {
            admin.seen.at = None;
            admin.client = admin.client.act_as(admin.config.credentials.clone());
        }
    }

    pub(crate) fn forget_project(&self, namespace: &str) {
        self.held().projects.remove(namespace);
    }

    /// Makes a new client if the administrator's Secret has changed.
    async fn refresh_admin(&self, site: &Site) -> Result<(), Stop> {
        if self.held().admin.as_ref().is_some_and(|a| a.site == *site && a.seen.is_fresh()) {
            return Ok(());
        }
        let reading = self.admin_secret(site);
        let secret = reading.clone().await;
        let mut held = self.held();
        // whoever comes to it first; who distrusts what it says has forgotten it already
        let is_news = held.reading.take_if(|(_, last)| last.ptr_eq(&reading)).is_some();
        let Some(secret) = secret? else {
            held.admin = None;
            return Err(missing(site));
        };
        let seen = Seen { version: version(&secret), at: is_news.then(Instant::now) };
        match &mut held.admin {
            Some(admin) if admin.site == *site && admin.seen.version == seen.version => {
                admin.seen.at = seen.at.or(admin.seen.at);
            }
            _ => held.admin = Some(self.admin_from(site, seen, read(&site.namespace, &secret, ADMIN.1)?)?),
        }
        Ok(())
    }

    /// The administrator's Secret as it is being read.
    fn admin_secret(&self, site: &Site) -> Reading {
        let mut held = self.held();
        if let Some((of, reading)) = &held.reading
            && of == site
        {
            return reading.clone();
        }
        let secrets: Api<Secret> = Api::namespaced(self.kubernetes.clone(), &site.namespace);
        let reading = async move { secrets.get_opt(ADMIN.0).await.map_err(Arc::new) }.boxed().shared();
        held.reading = Some((site.clone(), reading.clone()));
        reading
    }

    fn admin_from(&self, site: &Site, seen: Seen, config: CloudConfig) -> Result<Admin, Stop> {
        let client = Client::new(config.clone(), self.options.clone()).map_err(unusable)?;
        let users = Arc::new(ClientCache::new(client.clone(), USERS));
        Ok(Admin { site: site.clone(), seen, config, client, users })
    }

    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<Secret>, Stop> {
        Ok(Api::namespaced(self.kubernetes.clone(), namespace).get_opt(name).await?)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(namespace: &str, version: &str) -> String {
    format!("{namespace} {version}")
}

/// A Secret that is deleted and made anew may come to the same resource version only with another UID.
fn version(secret: &Secret) -> String {
    format!("{}/{}", secret.uid().unwrap_or_default(), secret.resource_version().unwrap_or_default())
}

fn missing(site: &Site) -> Stop {
    let message = format!("OpenStack is being set up: no Secret {} in namespace {}", ADMIN.0, site.namespace);
    Outcome::waiting(reason::CLOUD_UNAVAILABLE, message).into()
}

/// The named cloud of a Secret's `clouds.yaml`.
fn read(namespace: &str, secret: &Secret, cloud: &str) -> Result<CloudConfig, Stop> {
    let what = || format!("Secret {} in namespace {namespace}", secret.name_any());
    let bytes = secret.data.as_ref().and_then(|data| data.get(CLOUDS_YAML)).map_or(&[][..], |value| &value.0);
    let text = str::from_utf8(bytes).map_err(|_| unusable(format!("{}: {CLOUDS_YAML} is not text", what())))?;
    CloudConfig::from_clouds_yaml(text, cloud).map_err(|error| unusable(format!("{}: {error}", what())))
}

fn unusable(error: impl Into<Box<dyn Error + Send + Sync>>) -> Stop {
    Stop::Trouble(Failure::new("CredentialsUnusable", error))
}
