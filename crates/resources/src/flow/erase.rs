//! Deletion: of all that an object has in OpenStack, and of the object itself once nothing of it can be seen any more.
//!
//! What the last list of the whole cloud shows of it need not be looked at before, where nothing but that can be meant. After
//! it was deleted, the object's own is looked for by its mark: there may be another that a lost request made.

use std::{sync::Arc, time::Duration};

use kube::runtime::events::EventType;
use kupenstack_api::{
    FINALIZER,
    resources::{DeletionPolicy, ResourceKind},
};
use kupenstack_core::{Outcome, reason};
use kupenstack_openstack::ErrorKind;
use kupenstack_runtime::apply;

use super::{Flow, Scope, create::interrupted, gone, report::Report, settled::uid_of};
use crate::{
    actuator::{Actuator, Target},
    cloud::Site,
    observe::Listed,
    realm::{Realm, Worker, place_of},
    stop::Stop,
};

/// How soon what is on its way out is looked at if no list tells of it.
const LOOK: Duration = Duration::from_secs(5);

/// What is known of that which is on its way out.
enum Left {
    Nothing,
    /// The list that will show it is to come soon.
    Due(Outcome),
    Unknown,
}

/// What came of a deletion.
enum Erased {
    /// There was nothing to be seen.
    Unseen,
    /// The resource of this identifier can't be seen any more.
    Gone(String),
    /// It can still be seen, and this is waited for.
    Leaving(Outcome),
}

impl<A: Actuator> Flow<A> {
    pub(super) async fn remove(&self, report: &Report<A::Kind>) -> Result<Outcome, Stop> {
        let object = report.object();
        if !apply::has_finalizer(object.as_ref(), FINALIZER) {
            return Ok(gone("nothing is left to do"));
        }
        if object.deletion_policy() == DeletionPolicy::Retain {
            if object.recorded().is_some() {
                self.release_parts(object).await?;
            }
            self.let_go(report).await?;
            return Ok(gone("kept, as its deletionPolicy says"));
        }
        if let Some(id) = object.recorded()
            && let Some(rival) = self.rival(object, id).await?
        {
            self.let_go(report).await?;
            return Ok(gone(&format!("kept, as it belongs to {rival}")));
        }
        let Some(site) = self.cloud().site() else {
            return Err(Outcome::waiting(reason::CLOUD_UNAVAILABLE, "OpenStack is being set up").into());
        };
        self.stop.run_until_cancelled(self.directory.free(object.as_ref())).await.ok_or_else(interrupted)??;
        let left = match self.left(report, &site) {
            Left::Nothing => None,
            Left::Due(wait) => Some(wait),
            Left::Unknown => self.erase(object, &site).await?,
        };
        if let Some(wait) = left {
            return Ok(wait);
        }
        self.leave_shared(object, &site).await?;
        self.break_up(object).await?;
        self.let_go(report).await?;
        self.tell_of_deletion(report).await;
        Ok(gone("deleted"))
    }

    /// What is left of that which OpenStack has agreed to delete, as the object says: a list that began later shows it.
    fn left(&self, report: &Report<A::Kind>, site: &Site) -> Left {
        let (uid, recorded) = (uid_of(report.object().as_ref()), report.object().recorded());
        // what was taken over may be kept as what another object had before
        let is_told = A::LINGERS && !report.object().adopts() && report.shows(reason::DELETING);
        match recorded.filter(|_| is_told) {
            Some(_) if self.census.shows_nothing(site, &uid) => Left::Nothing,
            Some(id) if self.census.is_due(&uid, LOOK) => Left::Due(wait::<A::Resource>(id)),
            _ => Left::Unknown,
        }
    }

    /// Deletes all that the object has: as the maker, or, when that is gone, as who takes its place.
    async fn erase(&self, object: &Arc<A::Kind>, site: &Site) -> Result<Option<Outcome>, Stop> {
        let recorded = object.recorded();
        let (erased, sought) = match self.erase_as_maker(object, site).await? {
            // it may be in a project that was deleted behind our back, of which its maker knows nothing any more
            None => (self.erase_as_heir(object, site, recorded).await?, recorded),
            Some(erased) => (erased, None),
        };
        let gone = match erased {
            Erased::Leaving(wait) => return Ok(Some(wait)),
            Erased::Gone(id) => Some(id),
            Erased::Unseen => sought.map(ToOwned::to_owned),
        };
        for stray in self.census.all_of(&uid_of(object.as_ref())).into_iter().filter(|id| Some(id) != gone.as_ref()) {
            if let Erased::Leaving(wait) = self.erase_as_heir(object, site, Some(&stray)).await? {
                return Ok(Some(wait));
            }
        }
        Ok(None)
    }

    /// None if the maker is gone or can't see what may be there.
    async fn erase_as_maker(&self, object: &Arc<A::Kind>, site: &Site) -> Result<Option<Erased>, Stop> {
        let place = place_of(object.as_ref());
        let Some(maker) = Scope::<A>::maker(self.cloud(), site, &place).await? else { return Ok(None) };
        match self.erase_as(&maker, self.target(object, site, &maker)).await {
            Ok(Erased::Unseen) if object.recorded().is_some() => Ok(None),
            Err(stop) if stop.is_unauthorized() => Ok(None),
            erased => erased.map(Some),
        }
    }

    async fn erase_as_heir(&self, object: &Arc<A::Kind>, site: &Site, id: Option<&str>) -> Result<Erased, Stop> {
        let heir = Scope::<A>::heir(self.cloud(), site).await?;
        let target = Target { recorded: id.map(ToOwned::to_owned), ..self.target(object, site, &heir) };
        self.erase_as(&heir, target).await
    }

    async fn erase_as(&self, worker: &Worker, target: Target<A::Kind>) -> Result<Erased, Stop> {
        let erased = self.erase_target(target).await;
        erased.inspect_err(|stop| worker.doubt(self.cloud(), stop))
    }

    /// Deletes the resource. Done only when the object's own can't be seen any more; else says what is waited for.
    async fn erase_target(&self, target: Target<A::Kind>) -> Result<Erased, Stop> {
        let Some(resource) = self.to_erase(&target).await? else { return Ok(Erased::Unseen) };
        self.delete(&target, &resource).await?;
        if A::LINGERS {
            return Ok(leaving(&resource));
        }
        let others = Target { recorded: None, ..target };
        Ok(match self.actuator.observe(&others).await? {
            Some(left) => leaving(&left),
            None => Erased::Gone(resource.id().to_owned()),
        })
    }

    /// The resource, as the last list shows it where that is enough, else as it is now.
    async fn to_erase(&self, target: &Target<A::Kind>) -> Result<Option<A::Resource>, Stop> {
        if A::DELETES_AS_LISTED
            && let (Some(id), Some(project)) = (&target.recorded, &target.owner)
            && let Some(listed) = self.census.listed(&target.site, &uid_of(target.object.as_ref()), id).await
            && listed.is_in(project)
        {
            return Ok(Some(listed));
        }
        self.actuator.observe(target).await
    }

    /// Asks OpenStack to delete a resource. One that others still use is waited for.
    pub(super) async fn delete(&self, target: &Target<A::Kind>, resource: &A::Resource) -> Result<(), Stop> {
        let _writing = self.census.writing(uid_of(target.object.as_ref()));
        match self.actuator.delete(target, resource).await {
            Err(Stop::OpenStack(error)) if error.kind() == ErrorKind::Conflict => {
                let message = format!("the {} can't be deleted yet: {error}", A::Resource::NOUN);
                Err(Outcome::waiting("InUse", message).into())
            }
            result => result,
        }
    }

    async fn tell_of_deletion(&self, report: &Report<A::Kind>) {
        if Scope::<A>::takes_events(self.cloud(), &place_of(report.object().as_ref())) {
            let note = format!("{} deleted", A::Resource::NOUN);
            self.tellers.events.publish(&report.reference(), EventType::Normal, "Deleted", &note).await;
        }
    }
}

fn leaving<R: Listed>(resource: &R) -> Erased {
    Erased::Leaving(wait::<R>(resource.id()))
}

fn wait<R: Listed>(id: &str) -> Outcome {
    Outcome::waiting(reason::DELETING, format!("waiting until {} {id} is gone", R::NOUN)).within(LOOK)
}
