//! The one flow of all resource kinds: finalizer, look for what is ours, create, bring up to date, tell; or delete.
//!
//! It knows no kind and no service of OpenStack. A kind that would need an `if` here needs another trait instead.

mod create;
mod report;

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use kube::{Api, Resource, ResourceExt, runtime::events::EventType};
use kupenstack_api::{
    FINALIZER,
    resources::{DeletionPolicy, PROJECT, PROJECT_ID, ResourceKind},
};
use kupenstack_core::{Outcome, reason};
use kupenstack_openstack::Client;
use kupenstack_runtime::{Context, Events, Failure, Reconcile, apply};
use tokio_util::sync::CancellationToken;

use self::report::Report;
use crate::{
    actuator::{Actuator, Target},
    cloud::{Cloud, Site, Standing},
    stop::{Stop, Verdict},
};

/// Drives all objects of one kind.
pub(crate) struct Flow<A> {
    cloud: Arc<Cloud>,
    actuator: A,
    events: Events,
    stop: CancellationToken,
}

impl<A: Actuator> Reconcile<A::Kind> for Flow<A> {
    fn reconcile(&self, object: Arc<A::Kind>) -> BoxFuture<'_, Result<Outcome, Failure>> {
        self.pass(object).boxed()
    }
}

impl<A: Actuator> Flow<A> {
    pub(crate) fn new(cloud: Arc<Cloud>, actuator: A, context: &Context) -> Self {
        let events = Events::new(context.client.clone());
        Self { cloud, actuator, events, stop: context.stop.clone() }
    }

    async fn pass(&self, object: Arc<A::Kind>) -> Result<Outcome, Failure> {
        let report = Report::new(A::NOUN, self.api(&object), self.events.clone(), Arc::clone(&object));
        let deleting = object.meta().deletion_timestamp.is_some();
        let result = match self.cloud.standing(A::SERVICES) {
            standing @ (Standing::Absent | Standing::Leaving) => self.release(&report, &standing).await,
            _ if deleting => self.remove(&report).await,
            standing => self.converge(&report, &standing).await,
        };
        self.conclude(&report, result).await
    }

    /// Shows what a pass came to.
    async fn conclude(&self, report: &Report<A::Kind>, result: Result<Outcome, Stop>) -> Result<Outcome, Failure> {
        let Verdict { shown, result } = result.map_or_else(Stop::verdict, Verdict::shown);
        // an outage is told once, by the cloud's own object, and not by each object that is as declared
        if let Some(shown) = shown.filter(|_| result.is_ok() || !report.was_ready()) {
            report.conclude(&shown).await?;
        }
        result
    }

    /// The whole cloud is gone or going, and what was made in it with it: nothing is left to delete or to wait for.
    async fn release(&self, report: &Report<A::Kind>, standing: &Standing) -> Result<Outcome, Stop> {
        self.let_go(report).await?;
        report.forget_id().await;
        match standing.ready() {
            Err(wait) if report.object().meta().deletion_timestamp.is_none() => Ok(wait),
            _ => Ok(gone("the cloud is gone")),
        }
    }

    async fn converge(&self, report: &Report<A::Kind>, standing: &Standing) -> Result<Outcome, Stop> {
        let object = report.object();
        let site = match standing.ready() {
            Ok(site) => site,
            Err(wait) if report.was_ready() => return Err(Stop::Quiet(wait)),
            Err(wait) => return Err(wait.into()),
        };
        self.project(object)?;
        if !apply::has_finalizer(object.as_ref(), FINALIZER) {
            apply::add_finalizer(&self.api(object), object.as_ref(), FINALIZER).await?;
        }
        let namespace = namespace_of(object.as_ref());
        let Some(client) = self.cloud.project(site, &namespace).await? else {
            self.cloud.distrust_project(&namespace);
            let message = format!("the credentials of namespace {namespace} are missing, they are made anew");
            return Err(Outcome::waiting(reason::PROJECT_NOT_READY, message).into());
        };
        let target = Self::target(object, site, client);
        let result = self.ensure(report, &target).await;
        if result.as_ref().is_err_and(Stop::is_unauthorized) {
            self.cloud.distrust_project(&namespace);
        }
        result
    }

    /// Makes sure that the resource exists and is as declared.
    async fn ensure(&self, report: &Report<A::Kind>, target: &Target<A::Kind>) -> Result<Outcome, Stop> {
        let resource = match self.actuator.observe(target).await? {
            Some(resource) if self.actuator.is_whole(&resource) => self.update(report, target, resource).await?,
            Some(_) => self.create(report, target).await?,
            None => {
                self.tell_of_loss(report, target).await;
                self.create(report, target).await?
            }
        };
        let id = self.actuator.id(&resource);
        Ok(report.observed(id, |status| self.actuator.report(target, &resource, status)).await)
    }

    /// Runs every update step, even when one of them fails, and looks at what came of it.
    async fn update(
        &self,
        report: &Report<A::Kind>,
        target: &Target<A::Kind>,
        resource: A::Resource,
    ) -> Result<A::Resource, Stop> {
        let steps = self.actuator.updates(target, &resource);
        if steps.is_empty() {
            drop(steps);
            return Ok(resource);
        }
        let mut failed = None;
        for step in steps {
            if let Err(stop) = step.await {
                failed.get_or_insert(stop);
            }
        }
        if let Some(stop) = failed {
            return Err(stop);
        }
        if report.was_ready() {
            let note = format!("{} {} was changed by others, set right", A::NOUN, self.actuator.id(&resource));
            self.events.publish(&report.reference(), EventType::Normal, "DriftRepaired", &note).await;
        }
        let lost = || Failure::new("NotFound", format!("{} vanished while it was updated", A::NOUN));
        Ok(self.actuator.observe(target).await?.ok_or_else(lost)?)
    }

    /// Says that a resource which was there is not any more, before it is made anew.
    async fn tell_of_loss(&self, report: &Report<A::Kind>, target: &Target<A::Kind>) {
        if let Some(id) = target.recorded.as_ref().filter(|_| report.was_ready()) {
            let note = format!("{} {id} was deleted by others, it is made anew", A::NOUN);
            self.events.publish(&report.reference(), EventType::Warning, "Vanished", &note).await;
        }
    }

    async fn remove(&self, report: &Report<A::Kind>) -> Result<Outcome, Stop> {
        let object = report.object();
        if !apply::has_finalizer(object.as_ref(), FINALIZER) {
            return Ok(gone("nothing is left to do"));
        }
        if object.deletion_policy() == DeletionPolicy::Retain {
            self.let_go(report).await?;
            return Ok(gone("kept, as its deletionPolicy says"));
        }
        let Some(site) = self.cloud.site() else {
            return Err(Outcome::waiting(reason::CLOUD_UNAVAILABLE, "OpenStack is being set up").into());
        };
        let namespace = namespace_of(object.as_ref());
        let result = match self.cloud.project(&site, &namespace).await? {
            Some(client) => self.erase(&Self::target(object, &site, client)).await,
            None => self.erase_as_admin(object, &site).await,
        };
        let result = match result {
            // the project's user is gone before the project's content: somebody helped
            Err(stop) if stop.is_unauthorized() => self.erase_as_admin(object, &site).await,
            result => result,
        };
        if let Some(wait) = result? {
            return Ok(wait);
        }
        self.let_go(report).await?;
        self.tell_of_deletion(report).await;
        Ok(gone("deleted"))
    }

    /// Deletes the resource. Done only when it can't be seen any more; else says what is waited for.
    async fn erase(&self, target: &Target<A::Kind>) -> Result<Option<Outcome>, Stop> {
        let Some(resource) = self.actuator.observe(target).await? else { return Ok(None) };
        self.actuator.delete(target, &resource).await?;
        Ok(self.actuator.observe(target).await?.map(|resource| {
            let message = format!("waiting until {} {} is gone", A::NOUN, self.actuator.id(&resource));
            Outcome::waiting(reason::DELETING, message).within(Duration::from_secs(5))
        }))
    }

    /// Deletes with the administrator's rights what has lost the user it belongs to.
    async fn erase_as_admin(&self, object: &Arc<A::Kind>, site: &Site) -> Result<Option<Outcome>, Stop> {
        let client = self.cloud.admin(site).await?;
        let target = Target { as_admin: true, ..Self::target(object, site, client) };
        let result = self.erase(&target).await;
        if result.as_ref().is_err_and(Stop::casts_doubt_on_the_token) {
            self.cloud.distrust_admin();
        }
        result
    }

    async fn tell_of_deletion(&self, report: &Report<A::Kind>) {
        let namespace = self.cloud.namespace(&namespace_of(report.object().as_ref()));
        // a terminating namespace takes no events
        if namespace.is_some_and(|n| n.metadata.deletion_timestamp.is_none()) {
            let note = format!("{} deleted", A::NOUN);
            self.events.publish(&report.reference(), EventType::Normal, "Deleted", &note).await;
        }
    }

    async fn let_go(&self, report: &Report<A::Kind>) -> Result<(), Failure> {
        let object = report.object();
        if apply::has_finalizer(object.as_ref(), FINALIZER) {
            apply::remove_finalizer(&self.api(object), object.as_ref(), FINALIZER).await?;
        }
        Ok(())
    }

    /// Waits until the object's namespace has a project.
    fn project(&self, object: &Arc<A::Kind>) -> Result<(), Stop> {
        let name = namespace_of(object.as_ref());
        let wait = |message: String| Err(Outcome::waiting(reason::PROJECT_NOT_READY, message).into());
        let Some(namespace) = self.cloud.namespace(&name) else {
            return wait(format!("namespace {name} is not known yet"));
        };
        if namespace.metadata.deletion_timestamp.is_some() {
            return wait(format!("namespace {name} is being deleted"));
        }
        if namespace.annotations().contains_key(PROJECT_ID) {
            return Ok(());
        }
        if namespace.annotations().get(PROJECT).is_some_and(|value| value == "ignore") {
            return wait(format!("namespace {name} has no project: its annotation {PROJECT} says ignore"));
        }
        wait(format!("namespace {name} has no project yet"))
    }

    fn target(object: &Arc<A::Kind>, site: &Site, client: Client) -> Target<A::Kind> {
        let uid = object.uid().unwrap_or_default();
        Target {
            recorded: object.status().and_then(<A::Kind as ResourceKind>::id).map(ToOwned::to_owned),
            mark: site.cluster.mark(&uid),
            own_id: site.cluster.resource_id(&uid),
            site: site.clone(),
            client,
            as_admin: false,
            object: Arc::clone(object),
        }
    }

    fn api(&self, object: &Arc<A::Kind>) -> Api<A::Kind> {
        Api::namespaced(self.cloud.kubernetes(), &namespace_of(object.as_ref()))
    }
}

fn gone(message: &str) -> Outcome {
    Outcome::Done { reason: reason::DELETING, message: message.to_owned() }
}

fn namespace_of(object: &impl ResourceExt) -> String {
    object.namespace().unwrap_or_default()
}
