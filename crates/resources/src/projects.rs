//! Namespaces become projects, each with a Keystone user of its own.
//!
//! Everything done for a namespace is done as that user, so that a namespace can't reach what is another's. The order
//! survives a crash at any point: the finalizer first, then a Secret with the password before there is a user that
//! could lose it, then project, user and roles, and last the annotations that tell everybody. What is ours in Keystone
//! is found by mark and name, never by an annotation: those can be written by whoever may edit the namespace.
//!
//! A namespace that is settled costs Keystone nothing: the last list of the whole cloud shows its project, its user and
//! what that may do. An annotation says where to look in the list, and counts only if our mark is there.

mod admin;
mod admission;
mod credentials;
mod handout;
mod held;
mod home;
mod leftovers;
mod tenant;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream::BoxStream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::{Api, Resource, ResourceExt, core::PartialObjectMeta, runtime::events::EventType, runtime::watcher};
use kupenstack_api::{
    FINALIZER,
    resources::{APPLICATION_CREDENTIAL, APPLICATION_CREDENTIAL_SECRET, CREDENTIAL_SECRET, PROJECT_ID, PROJECT_NAME},
};
use kupenstack_core::{Outcome, reason};
use kupenstack_runtime::{Context, Controller, Events, Failure, ObjectRef, Reconcile, Shared, apply};
use serde_json::json;

use self::{
    admin::Admin,
    credentials::{Credentials, Password},
    handout::Handout,
    held::HELD,
    tenant::{Found, Tenant},
};
pub(crate) use self::{home::Home, tenant::user_of};
use crate::{
    cloud::{Cloud, NamespaceMeta, Site, Standing},
    observe::{Census, Records},
    stop::Stop,
    wake,
};

/// What a project takes of the cloud.
const SERVICES: &[&str] = &["Keystone"];
/// How long a password is known to work without being tried. One that is refused when something is done with it is
/// looked after at once.
const VERIFIED: Duration = Duration::from_hours(6);

/// The longest time until a change in Keystone is seen. It takes four lists, and hardly anybody changes there what is
/// ours: so twice as long as for what users make.
pub(crate) fn observed(every: Duration) -> Duration {
    every * 2
}

/// Runs the controller.
pub(crate) async fn run(cloud: Arc<Cloud>, census: Arc<Census<Home>>, context: Context) {
    if !cloud.known_to("projects").await {
        return;
    }
    let controller = Controller::<Namespace>::new("projects", &context);
    let changed = census.join(controller.objects(), Records { made_or_adopted: recorded, adopted: |_| None });
    let projects = Arc::new(Projects::new(Arc::clone(&cloud), census, &context));
    let doubter = Arc::clone(&projects);
    let controller = controller
        .trigger(changed)
        .trigger(turned(&cloud))
        .trigger(waiting(&cloud))
        .trigger(cloud.distrusted().inspect(move |namespace| doubter.doubt(&namespace.name)).boxed())
        .trigger(handed_out(&projects.handouts))
        // told by the controllers of the kinds, whose watches see it anyway
        .trigger(cloud.departures());
    controller.run(projects, context).await;
}

/// All namespaces, when the cloud comes or goes or admits others.
fn turned(cloud: &Arc<Cloud>) -> BoxStream<'static, ObjectRef<Namespace>> {
    let projects = |cloud: &Cloud| cloud.declared().map(|openstack| openstack.spec.projects.clone());
    wake::namespaces(cloud, move |cloud| Some((cloud.standing(SERVICES).settled()?, projects(cloud))))
}

/// Namespaces that may have waited for Keystone, when it is back.
fn waiting(cloud: &Arc<Cloud>) -> BoxStream<'static, ObjectRef<Namespace>> {
    let waits = |namespace: &Arc<NamespaceMeta>| {
        !namespace.annotations().contains_key(PROJECT_ID) || namespace.metadata.deletion_timestamp.is_some()
    };
    let recoveries = cloud.recoveries();
    let cloud = Arc::clone(cloud);
    recoveries
        .flat_map(move |()| {
            let waiting = cloud.namespaces().into_iter().filter(waits);
            wake::one_by_one(waiting.map(|namespace| wake::reference(&namespace)).collect())
        })
        .boxed()
}

/// Namespaces whose Secret with an application credential was changed or deleted.
fn handed_out(handouts: &Arc<Shared<SecretMeta>>) -> BoxStream<'static, ObjectRef<Namespace>> {
    handouts.changes(|secret, _| secret.namespace.iter().map(|name| ObjectRef::new(name)).collect())
}

/// The project that a namespace's annotation tells of, which anybody may have written.
fn recorded(namespace: &Namespace) -> Option<&str> {
    namespace.annotations().get(PROJECT_ID).map(String::as_str)
}

/// A Secret without what is in it.
type SecretMeta = PartialObjectMeta<Secret>;

struct Projects {
    cloud: Arc<Cloud>,
    /// The Secrets of the name that ours with application credentials have.
    handouts: Arc<Shared<SecretMeta>>,
    census: Arc<Census<Home>>,
    api: Api<Namespace>,
    events: Events,
    /// By namespace: the credentials' hash, and when Keystone took them.
    verified: Mutex<HashMap<String, (String, Instant)>>,
}

/// A namespace's project and user.
struct Place {
    project: String,
    project_name: String,
    user: String,
    found: Found,
}

impl Reconcile<Namespace> for Projects {
    fn reconcile(&self, namespace: Arc<Namespace>) -> BoxFuture<'_, Result<Outcome, Failure>> {
        async move { self.pass(&namespace).await }.boxed()
    }
}

impl Projects {
    fn new(cloud: Arc<Cloud>, census: Arc<Census<Home>>, context: &Context) -> Self {
        let (api, secrets) = (Api::all(cloud.kubernetes()), Api::all(cloud.kubernetes()));
        let named = watcher::Config::default().fields(&format!("metadata.name={CREDENTIAL_SECRET}"));
        let handouts = Shared::start(secrets, named, context);
        Self { cloud, handouts, census, api, events: Events::new(context.client.clone()), verified: Mutex::default() }
    }

    async fn pass(&self, namespace: &Namespace) -> Result<Outcome, Failure> {
        let deleting = namespace.metadata.deletion_timestamp.is_some();
        let result = match self.cloud.standing(SERVICES) {
            Standing::Absent | Standing::Leaving => self.release(namespace).await,
            _ if deleting => self.remove(namespace).await,
            standing => self.converge(namespace, &standing).await,
        };
        let result = match result {
            Ok(outcome) => return Ok(outcome),
            Err(stop) => stop,
        };
        if result.casts_doubt_on_the_token() {
            self.cloud.distrust_admin();
        }
        let result = result.verdict().result;
        // a namespace has no condition of ours to say it; repeats are counted on one event
        match &result {
            Ok(Outcome::Blocked { reason, message }) => self.warn(namespace, reason, message).await,
            Err(failure) if deleting => self.warn(namespace, "ProjectNotDeleted", &failure.message()).await,
            _ => {}
        }
        result
    }

    async fn converge(&self, namespace: &Namespace, standing: &Standing) -> Result<Outcome, Stop> {
        if !self.admits(namespace)? {
            return Ok(Outcome::Done { reason: "Ignored", message: "the namespace is to have no project".to_owned() });
        }
        let site = standing.ready().map_err(Stop::Outcome)?;
        if !apply::add_finalizer(&self.api, namespace, FINALIZER).await? {
            return Ok(Outcome::ready("gone"));
        }
        let tenant = Tenant::new(namespace, site);
        let credentials = Credentials::new(&self.cloud, site, &tenant);
        let password = credentials.password().await?;
        let place = match self.settled(namespace, site, &credentials, &password).await? {
            Some(place) => place,
            None => self.settle(site, &credentials, &password).await?,
        };
        let annotations = [(PROJECT_ID, place.project.as_str()), (PROJECT_NAME, &place.project_name)];
        let is_told = is_requested(namespace) || namespace.annotations().contains_key(APPLICATION_CREDENTIAL_SECRET);
        let told = Some((APPLICATION_CREDENTIAL_SECRET, CREDENTIAL_SECRET)).filter(|_| is_told);
        // before anything is handed out, so that it is known that there is something to be withdrawn
        self.annotate(namespace, &annotations.into_iter().chain(told).collect::<Vec<_>>()).await?;
        self.tell(namespace, &place).await;
        if is_told || self.has_handout(namespace) {
            self.hand_out(namespace, site, &place.user).await?;
        }
        if is_told && !is_requested(namespace) {
            self.annotate(namespace, &annotations).await?;
        }
        Ok(Outcome::ready(format!("project {}", place.project_name)))
    }

    /// What a namespace has, when the last list shows it as it is to be and the password works; none when Keystone has to
    /// be asked.
    async fn settled(
        &self,
        namespace: &Namespace,
        site: &Site,
        credentials: &Credentials<'_>,
        password: &Password,
    ) -> Result<Option<Place>, Stop> {
        let (tenant, recorded) = (credentials.tenant(), recorded(namespace).unwrap_or_default());
        let Some(home) = self.census.seen(site, tenant.uid(), recorded).await else { return Ok(None) };
        let is_told = namespace.annotations().get(PROJECT_NAME) == Some(&home.name);
        let is_only_one = self.census.strays(tenant.uid(), &home.id).is_empty();
        let Some(user) = tenant.settled_in(&home).filter(|_| is_told && is_only_one) else { return Ok(None) };
        credentials.complete(password, &home.id).await?;
        match self.log_in(site, tenant, password).await {
            Ok(()) => {}
            Err(stop) if stop.is_unauthorized() => return Ok(None),
            Err(stop) => return Err(stop),
        }
        let (project, project_name) = (home.id.clone(), home.name.clone());
        Ok(Some(Place { project, project_name, user: user.to_owned(), found: Found::There }))
    }

    /// Makes sure of all that a namespace is to have in Keystone.
    async fn settle(&self, site: &Site, credentials: &Credentials<'_>, password: &Password) -> Result<Place, Stop> {
        let tenant = credentials.tenant();
        let admin = Admin::new(self.cloud.admin(site).await?, &self.census, tenant.uid());
        let (project, found) = tenant.project(&admin).await?;
        credentials.complete(password, &project.id).await?;
        let user = tenant.user(&admin, password, &project.id).await?;
        tenant.grant(&admin, &project.id, &user.id).await?;
        match self.log_in(site, tenant, password).await {
            // the Secret was made anew, or somebody changed the password in Keystone
            Err(stop) if stop.is_unauthorized() => {
                admin.write().set_password(&user.id, password.secret()).await?;
                self.log_in(site, tenant, password).await?;
            }
            result => result?,
        }
        Ok(Place { project: project.id, project_name: project.name, user: user.id, found })
    }

    /// Whether there is a Secret of ours with an application credential. Whoever may edit the namespace can have removed
    /// every annotation that tells of it.
    fn has_handout(&self, namespace: &Namespace) -> bool {
        let key = ObjectRef::new(CREDENTIAL_SECRET).within(&namespace.name_any());
        self.handouts.get(&key).is_some_and(|secret| handout::is_ours(&*secret))
    }

    /// Hands out the application credential that is requested, or withdraws one that is not any more.
    async fn hand_out(&self, namespace: &Namespace, site: &Site, user: &str) -> Result<(), Stop> {
        let name = namespace.name_any();
        let Some(client) = self.cloud.project(site, &name).await? else {
            return Err(Failure::new("NotFound", "the Secret with the namespace's credentials vanished").into());
        };
        let config = self.cloud.admin_config(site).await?;
        let uid = namespace.uid().unwrap_or_default();
        let handout = Handout::new(&self.cloud, &name, &uid, client, user, config);
        if is_requested(namespace) { handout.hand_out(Timestamp::now()).await } else { handout.withdraw().await }
    }

    fn admits(&self, namespace: &Namespace) -> Result<bool, Stop> {
        let Some(openstack) = self.cloud.declared() else { return Ok(false) };
        admission::admits(&openstack.spec, self.cloud.operator_namespace(), &namespace.metadata).map_err(|error| {
            Outcome::blocked(reason::INVALID_SPEC, format!("OpenStack spec.projects.selector: {error}")).into()
        })
    }

    /// Tries the password, unless it is known to work.
    async fn log_in(&self, site: &Site, tenant: &Tenant, password: &Password) -> Result<(), Stop> {
        if self.is_verified(tenant.namespace(), password) {
            return Ok(());
        }
        // a client that is kept may know an earlier password, which Keystone still takes
        self.cloud.reread_project(tenant.namespace());
        let Some(client) = self.cloud.project(site, tenant.namespace()).await? else {
            return Err(Failure::new("NotFound", "the Secret with the namespace's credentials vanished").into());
        };
        client.authenticate().await?;
        let mut verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        verified.insert(tenant.namespace().to_owned(), (password.hash(), Instant::now()));
        Ok(())
    }

    fn is_verified(&self, namespace: &str, password: &Password) -> bool {
        let verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        verified.get(namespace).is_some_and(|(hash, at)| *hash == password.hash() && at.elapsed() < VERIFIED)
    }

    fn doubt(&self, namespace: &str) {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner).remove(namespace);
    }

    async fn remove(&self, namespace: &Namespace) -> Result<Outcome, Stop> {
        if !apply::has_finalizer(namespace, FINALIZER) {
            return Ok(done("the namespace has no project of ours"));
        }
        let name = namespace.name_any();
        let mut remaining = Vec::new();
        for remaining_of in HELD {
            remaining.extend(remaining_of(self.cloud.kubernetes(), &name).await?);
        }
        if let Some(first) = remaining.first() {
            let message = format!("waiting for {} objects, {first} among them", remaining.len());
            return Ok(Outcome::waiting(reason::DELETING, message));
        }
        let Some(site) = self.cloud.site() else {
            return Ok(Outcome::waiting(reason::CLOUD_UNAVAILABLE, "OpenStack is being set up"));
        };
        let tenant = Tenant::new(namespace, &site);
        let credentials = Credentials::new(&self.cloud, &site, &tenant);
        // the Secret comes before everything in Keystone and goes after it
        if credentials.exist().await? || namespace.annotations().contains_key(PROJECT_ID) {
            let admin = Admin::new(self.cloud.admin(&site).await?, &self.census, tenant.uid());
            if let Some(wait) = tenant.remove(&self.cloud, &admin).await? {
                return Ok(wait);
            }
            credentials.delete().await?;
        }
        self.let_go(namespace).await?;
        Ok(done("the project is deleted"))
    }

    /// The whole cloud is gone or going: its projects go with it, and no namespace may wait for it.
    async fn release(&self, namespace: &Namespace) -> Result<Outcome, Stop> {
        if apply::has_finalizer(namespace, FINALIZER) {
            if let Some(site) = self.cloud.site() {
                Credentials::new(&self.cloud, &site, &Tenant::new(namespace, &site)).delete().await?;
            }
            if namespace.metadata.deletion_timestamp.is_none() {
                if namespace.annotations().contains_key(APPLICATION_CREDENTIAL_SECRET) || self.has_handout(namespace) {
                    handout::remove(&Api::namespaced(self.cloud.kubernetes(), &namespace.name_any())).await?;
                }
                self.annotate(namespace, &[]).await?;
            }
            self.let_go(namespace).await?;
        }
        Ok(Outcome::Done { reason: reason::CLOUD_UNAVAILABLE, message: "there is no cloud for a project".to_owned() })
    }

    async fn let_go(&self, namespace: &Namespace) -> Result<(), Failure> {
        let name = namespace.name_any();
        self.doubt(&name);
        self.cloud.reread_project(&name);
        // the annotations may just have been written, and the namespace read again has the version that counts
        match self.api.get_opt(&name).await?.filter(|now| now.uid() == namespace.uid()) {
            Some(now) => apply::remove_finalizer(&self.api, &now, FINALIZER).await,
            None => Ok(()),
        }
    }

    /// Writes our annotations, and removes those of ours that are not among them.
    async fn annotate(&self, namespace: &Namespace, annotations: &[(&str, &str)]) -> Result<(), Failure> {
        let current = namespace.annotations();
        let as_wanted = [PROJECT_ID, PROJECT_NAME, APPLICATION_CREDENTIAL_SECRET].iter().all(|key| {
            let wanted = annotations.iter().find(|(k, _)| k == key).map(|(_, value)| *value);
            current.get(*key).map(String::as_str) == wanted
        });
        if as_wanted {
            return Ok(());
        }
        let name = namespace.name_any();
        let annotations: HashMap<_, _> = annotations.iter().copied().collect();
        let patch = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "uid": namespace.uid(), "annotations": annotations},
        });
        apply::apply(&self.api, &name, &patch).await.map(drop)
    }

    async fn tell(&self, namespace: &Namespace, place: &Place) {
        let project = &place.project_name;
        let (type_, reason, note) = match place.found {
            Found::There => return,
            Found::Made => (EventType::Normal, "ProjectCreated", format!("project {project} created")),
            Found::MadeBeside => {
                let note = format!("project {project} created, for a project named like the namespace is not ours");
                (EventType::Warning, "ProjectNameTaken", note)
            }
        };
        self.events.publish(&namespace.object_ref(&()), type_, reason, &note).await;
    }

    async fn warn(&self, namespace: &Namespace, reason: &str, note: &str) {
        self.events.publish(&namespace.object_ref(&()), EventType::Warning, reason, note).await;
    }
}

/// Whether the namespace asks for an application credential.
fn is_requested(namespace: &Namespace) -> bool {
    namespace.annotations().get(APPLICATION_CREDENTIAL).is_some_and(|value| value == "requested")
}

fn done(message: &str) -> Outcome {
    Outcome::Done { reason: reason::DELETING, message: message.to_owned() }
}
