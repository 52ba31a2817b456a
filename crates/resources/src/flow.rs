//! The one flow of all resource kinds: finalizer, look for what is ours, create, bring up to date, tell; or delete.
//!
//! It knows no kind and no service of OpenStack. A kind that would need an `if` here needs another trait instead.

mod create;
mod erase;
mod parts;
mod report;
mod settled;
mod shared;

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, channel::mpsc::UnboundedSender, future::BoxFuture};
use kube::{Api, Resource, ResourceExt, runtime::events::EventType};
use kupenstack_api::{FINALIZER, resources::ResourceKind};
use kupenstack_core::{Outcome, reason};
use kupenstack_runtime::{Context, Events, Failure, ObjectRef, Reconcile, Told, apply};
use tokio_util::sync::CancellationToken;

pub(crate) use self::settled::ignores_drift;
use self::{
    create::interrupted,
    report::{Report, Tellers},
    settled::{leaves_drift, left_alone, uid_of},
};
use crate::{
    actuator::{Actuator, Target},
    cloud::{Cloud, Site, Standing},
    directory::{Directory, LOOK},
    needs::Needs,
    observe::{Census, Listed},
    realm::{Realm, Worker, place_of},
    stop::{Stop, Verdict},
};

/// How soon what differs after it was set right is looked at again.
const AGAIN: Duration = Duration::from_secs(2);

/// The scope of an actuator's kind: whose its resources are.
type Scope<A> = <<A as Actuator>::Kind as Resource>::Scope;

/// Drives all objects of one kind.
pub(crate) struct Flow<A: Actuator> {
    cloud: Arc<Cloud>,
    directory: Arc<Directory>,
    census: Arc<Census<A::Resource>>,
    actuator: A,
    tellers: Tellers<A::Kind>,
    stop: CancellationToken,
}

impl<A: Actuator> Reconcile<A::Kind> for Flow<A> {
    fn reconcile(&self, object: Arc<A::Kind>) -> BoxFuture<'_, Result<Outcome, Failure>> {
        self.pass(object).boxed()
    }
}

impl<A: Actuator> Flow<A> {
    /// A flow that sends to `calls` what is to be looked at.
    pub(crate) fn new(
        cloud: Arc<Cloud>,
        directory: Arc<Directory>,
        census: Arc<Census<A::Resource>>,
        actuator: A,
        calls: UnboundedSender<ObjectRef<A::Kind>>,
        context: &Context,
    ) -> Self {
        let tellers = Tellers { events: Events::new(context.client.clone()), calls };
        Self { cloud, directory, census, actuator, tellers, stop: context.stop.clone() }
    }

    pub(crate) fn cloud(&self) -> &Arc<Cloud> {
        &self.cloud
    }

    pub(crate) fn census(&self) -> &Arc<Census<A::Resource>> {
        &self.census
    }

    /// What is to be told of the kind's objects, as its controller hears of them.
    pub(crate) fn listener(self: &Arc<Self>) -> impl FnMut(Told<'_, A::Kind>) + Send + 'static {
        let (flow, mut follow) = (Arc::clone(self), self.directory.follow::<A>());
        move |told| {
            flow.actuator.heard(&told);
            flow.cloud.stirred(&told);
            follow(told);
        }
    }

    async fn pass(&self, object: Arc<A::Kind>) -> Result<Outcome, Failure> {
        let report = Report::new(A::Resource::NOUN, self.api(&object), self.tellers.clone(), Arc::clone(&object));
        let deleting = object.meta().deletion_timestamp.is_some();
        let result = match self.cloud.standing(A::Resource::SERVICES) {
            standing @ (Standing::Absent | Standing::Leaving) => self.release(&report, &standing).await,
            _ if deleting => self.remove(&report).await,
            standing => self.converge(&report, &standing).await,
        };
        self.actuator.passed(&uid_of(object.as_ref()));
        let outcome = self.conclude(&report, result).await?;
        Ok(self.once_more(&object, outcome))
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
        let place = place_of(object.as_ref());
        Scope::<A>::open(&self.cloud, &place)?;
        // what nothing was made for is held when something is going to be, and can go at once until then
        let is_new = object.recorded().is_none() && !apply::has_finalizer(object.as_ref(), FINALIZER);
        if !is_new {
            self.hold(object).await?;
        }
        let needs = self.needs(object).await?;
        let chores = self.chores(object)?;
        if chores.is_empty()
            && let Some(outcome) = self.settled(report, site, &needs).await?
        {
            return Ok(outcome);
        }
        self.carry_out(object, &chores).await?;
        if object.recorded().is_none() {
            Self::can_begin(object, &needs)?;
        }
        let Some(maker) = Scope::<A>::maker(&self.cloud, site, &place).await? else {
            return Err(Scope::<A>::bereft(&self.cloud, &place).into());
        };
        if is_new {
            self.hold(object).await?;
        }
        let target = Target { needs, is_new, ..self.target(object, site, &maker) };
        let result = self.ensure(report, target).await;
        result.inspect_err(|stop| maker.doubt(&self.cloud, stop))
    }

    /// Keeps an object from going before what is made for it has gone. Nothing may be made for one that is gone already.
    async fn hold(&self, object: &Arc<A::Kind>) -> Result<(), Stop> {
        if apply::add_finalizer(&self.api(object), object.as_ref(), FINALIZER).await? {
            return Ok(());
        }
        Err(Stop::Quiet(gone("deleted before anything was made for it")))
    }

    /// Makes sure that the resource exists and is as declared.
    async fn ensure(&self, report: &Report<A::Kind>, mut target: Target<A::Kind>) -> Result<Outcome, Stop> {
        let mut resource = match self.actuator.observe(&target).await? {
            Some(resource) if self.actuator.is_whole(&target, &resource) => resource,
            Some(_) => self.create(report, &target).await?,
            None => {
                if let Some(blocked) = left_alone::<A>(report, &target) {
                    return Ok(blocked);
                }
                target.needs.before_creation()?;
                self.tell_of_loss(report, &target).await;
                self.create(report, &target).await?
            }
        };
        self.alone(report, resource.id()).await?;
        // another one may be what keeps this from being as declared
        if target.recorded.as_deref() == Some(resource.id()) {
            self.clear(&target, resource.id()).await?;
            self.tidy_shared(&target.object, &target.site).await?;
        }
        (target.recorded, target.is_new) = (Some(resource.id().to_owned()), false);
        self.census.complete(&mut resource);
        // what there is is told, whatever comes of the updates
        self.observed(report, &target, &resource).await;
        // what was made now may be the rest of an attempt for an earlier spec, completed
        let (mut resource, differs) = self.update(report, &target, resource).await?;
        self.census.complete(&mut resource);
        self.census.looked(&target.site, &uid_of(target.object.as_ref()), &resource);
        let outcome = self.observed(report, &target, &resource).await;
        if !outcome.is_done() || !differs {
            return Ok(outcome);
        }
        // what was set right may not have been all: it was found by a look at what was
        let message = format!("{} {} is not as declared yet", A::Resource::NOUN, resource.id());
        Ok(Outcome::waiting("Updating", message).within(AGAIN))
    }

    /// Leaves alone what another object has: each would set right without end what the other declares.
    async fn alone(&self, report: &Report<A::Kind>, id: &str) -> Result<(), Stop> {
        let Some(rival) = self.rival(report.object(), id).await? else { return Ok(()) };
        report.forget_id().await;
        let message = format!("spec.adopt: {} {id} belongs to {rival}", A::Resource::NOUN);
        Err(Outcome::waiting("AlreadyAdopted", message).within(LOOK).into())
    }

    /// Another object that a resource belongs to.
    async fn rival(&self, object: &A::Kind, id: &str) -> Result<Option<String>, Stop> {
        let rival = self.stop.run_until_cancelled(self.directory.rival::<A>(object, id)).await;
        rival.ok_or_else(interrupted)
    }

    /// Shows a resource. However it is, the object is not as declared before all that it needs is there.
    async fn observed(&self, report: &Report<A::Kind>, target: &Target<A::Kind>, resource: &A::Resource) -> Outcome {
        let aside = self.actuator.aside(target, resource);
        let describe = |status: &mut _| self.actuator.report(target, resource, status);
        let outcome = report.observed(resource.id(), aside, describe).await;
        target.needs.met().err().unwrap_or(outcome)
    }

    /// What an object needs. It is not known before all objects are that it may need.
    async fn needs(&self, object: &A::Kind) -> Result<Needs, Stop> {
        let needs = self.stop.run_until_cancelled(self.directory.needs::<A>(object)).await;
        needs.ok_or_else(interrupted)
    }

    /// Runs every update step, even when one of them fails, and looks at what came of it. Whether that still differs.
    async fn update(
        &self,
        report: &Report<A::Kind>,
        target: &Target<A::Kind>,
        resource: A::Resource,
    ) -> Result<(A::Resource, bool), Stop> {
        let steps = self.actuator.updates(target, &resource);
        if steps.is_empty() || leaves_drift(report) {
            drop(steps);
            return Ok((resource, false));
        }
        let _writing = self.census.writing(uid_of(target.object.as_ref()));
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
            let note = format!("{} {} was changed by others, set right", A::Resource::NOUN, resource.id());
            self.tellers.events.publish(&report.reference(), EventType::Normal, "DriftRepaired", &note).await;
        }
        let lost = || Failure::new("NotFound", format!("{} vanished while it was updated", A::Resource::NOUN));
        let now = self.actuator.observe(target).await?.ok_or_else(lost)?;
        let differs = !self.actuator.updates(target, &now).is_empty();
        Ok((now, differs))
    }

    /// Says that a resource which was there is not any more, before it is made anew.
    async fn tell_of_loss(&self, report: &Report<A::Kind>, target: &Target<A::Kind>) {
        if let Some(id) = target.recorded.as_ref().filter(|_| report.was_ready()) {
            let note = format!("{} {id} was deleted by others", A::Resource::NOUN);
            self.tellers.events.publish(&report.reference(), EventType::Warning, "Vanished", &note).await;
        }
    }

    async fn let_go(&self, report: &Report<A::Kind>) -> Result<(), Failure> {
        let object = report.object();
        self.census.forget(&uid_of(object.as_ref()));
        if apply::has_finalizer(object.as_ref(), FINALIZER) {
            apply::remove_finalizer(&self.api(object), object.as_ref(), FINALIZER).await?;
        }
        Ok(())
    }

    fn target(&self, object: &Arc<A::Kind>, site: &Site, worker: &Worker) -> Target<A::Kind> {
        let uid = object.uid().unwrap_or_default();
        Target {
            recorded: object.recorded().map(ToOwned::to_owned),
            mark: site.cluster.mark(&uid),
            own_id: site.cluster.resource_id(&uid),
            site: site.clone(),
            client: worker.client.clone(),
            owner: worker.owner.clone(),
            needs: Needs::default(),
            is_new: false,
            place_mark: A::shared(object).and_then(|_| Scope::<A>::mark(&self.cloud, site, &place_of(object.as_ref()))),
            sharers: self.directory.sharers::<A>(object),
            object: Arc::clone(object),
        }
    }

    fn api(&self, object: &Arc<A::Kind>) -> Api<A::Kind> {
        Scope::<A>::api(self.cloud.kubernetes(), &place_of(object.as_ref()))
    }
}

fn gone(message: &str) -> Outcome {
    Outcome::Done { reason: reason::DELETING, message: message.to_owned() }
}
