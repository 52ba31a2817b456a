//! What needs no look at OpenStack: the last list of the whole cloud shows what is declared.

use kube::ResourceExt;
use kupenstack_api::resources::{DRIFT, ResourceKind};
use kupenstack_core::Outcome;

use super::{Flow, Scope, report::Report};
use crate::{
    actuator::{Actuator, Kind, Target},
    cloud::Site,
    needs::Needs,
    observe::Listed,
    realm::{Realm, place_of},
    stop::Stop,
};

/// Reason of objects whose resource others have deleted, and which is not made anew.
const VANISHED: &str = "Vanished";

impl<A: Actuator> Flow<A> {
    /// What a pass comes to when the last list shows the resource as declared; none when OpenStack has to be asked.
    pub(super) async fn settled(
        &self,
        report: &Report<A::Kind>,
        site: &Site,
        needs: &Needs,
    ) -> Result<Option<Outcome>, Stop> {
        let object = report.object();
        let (uid, place) = (uid_of(object.as_ref()), place_of(object.as_ref()));
        let Some(id) = object.recorded() else { return Ok(None) };
        // two may have taken it over at the same time
        if self.rival(object, id).await?.is_some() {
            return Ok(None);
        }
        let Some(resource) = self.census.seen(site, &uid, id).await else { return Ok(None) };
        let onlooker = Scope::<A>::onlooker(&self.cloud, site, &place).await?;
        let target = Target { needs: needs.clone(), ..self.target(object, site, &onlooker) };
        // a namespace may have got another project since
        let is_in_place = target.owner.as_ref().is_some_and(|project| A::can_be_of(project, &resource));
        let is_as_declared = self.actuator.updates(&target, &resource).is_empty() || leaves_drift(report);
        if !is_in_place || !is_as_declared || !self.actuator.is_whole(&target, &resource) {
            return Ok(None);
        }
        self.clear(&target, id).await?;
        self.tidy_shared(object, site).await?;
        Ok(Some(self.observed(report, &target, &resource).await))
    }

    /// Deletes what an object has in OpenStack beside its one resource: it was left in a project that is gone, whose
    /// user can't delete it any more.
    pub(super) async fn clear(&self, target: &Target<A::Kind>, id: &str) -> Result<(), Stop> {
        for stray in self.census.strays(&uid_of(target.object.as_ref()), id) {
            let heir = Scope::<A>::heir(&self.cloud, &target.site).await?;
            let target = self.target(&target.object, &target.site, &heir);
            let target = Target { recorded: Some(stray.clone()), ..target };
            let found = self.actuator.observe(&target).await;
            let found = found.inspect_err(|stop| heir.doubt(&self.cloud, stop))?;
            // by name and mark, the one that is to stay is found too
            if let Some(resource) = found.filter(|resource| resource.id() == stray) {
                tracing::info!(
                    kind = A::Resource::NOUN,
                    id = stray,
                    kept = id,
                    "left over from a project that is gone, deleted"
                );
                self.delete(&target, &resource).await?;
            }
        }
        Ok(())
    }
}

/// What becomes of an object whose resource others have deleted, if it is not to be made anew.
pub(super) fn left_alone<A: Actuator>(report: &Report<A::Kind>, target: &Target<A::Kind>) -> Option<Outcome> {
    let id = target.recorded.as_ref().filter(|_| leaves_drift(report))?;
    let message = format!(
        "{} {id} was deleted by others and is not made anew, since annotation {DRIFT} says ignore; remove the \
         annotation or change the spec to have it made",
        A::Resource::NOUN
    );
    Some(Outcome::blocked(VANISHED, message))
}

/// Whether what others have done to the resource is left as it is: it was once as declared, and nothing else has been
/// declared since.
pub(super) fn leaves_drift<K: Kind>(report: &Report<K>) -> bool {
    ignores_drift(report.object().as_ref()) && (report.was_ready() || report.shows(VANISHED))
}

/// Whether an object asks for that.
pub(crate) fn ignores_drift(object: &impl ResourceExt) -> bool {
    object.annotations().get(DRIFT).is_some_and(|value| value == "ignore")
}

pub(super) fn uid_of(object: &impl ResourceExt) -> String {
    object.uid().unwrap_or_default()
}
