//! What objects share in OpenStack: removed by the last that needed it.

use std::sync::Arc;

use kube::Resource;
use kupenstack_core::Outcome;

use super::{Flow, Scope, create::interrupted};
use crate::{
    actuator::{Actuator, LATE},
    cloud::Site,
    realm::{Realm, Worker, place_of},
    stop::Stop,
};

impl<A: Actuator> Flow<A> {
    /// Removes what the object shared, if no other needs it. Of several that are being deleted each does, since none can
    /// rely on another.
    pub(super) async fn leave_shared(&self, object: &Arc<A::Kind>, site: &Site) -> Result<(), Stop> {
        let turn = self.directory.turn_to_leave::<A>(object);
        let Some(turn) = self.stop.run_until_cancelled(turn).await.ok_or_else(interrupted)? else { return Ok(()) };
        if turn.is_needed {
            return Ok(());
        }
        if let Some(maker) = Scope::<A>::maker(&self.cloud, site, &place_of(object.as_ref())).await? {
            match self.sweep(&maker, object, site, true).await {
                Err(stop) if stop.is_unauthorized() => {}
                swept => return swept,
            }
        }
        let heir = Scope::<A>::heir(&self.cloud, site).await?;
        self.sweep(&heir, object, site, true).await
    }

    /// Removes what a lost request made of what the object shares.
    pub(super) async fn tidy_shared(&self, object: &Arc<A::Kind>, site: &Site) -> Result<(), Stop> {
        if !self.actuator.may_be_twice(object) {
            return Ok(());
        }
        let turn = self.directory.turn_to_use::<A>(object);
        let _turn = self.stop.run_until_cancelled(turn).await.ok_or_else(interrupted)?;
        // another may have looked meanwhile
        if !self.actuator.may_be_twice(object) {
            return Ok(());
        }
        match Scope::<A>::maker(&self.cloud, site, &place_of(object.as_ref())).await? {
            Some(maker) => self.sweep(&maker, object, site, false).await,
            None => Ok(()),
        }
    }

    /// Nothing happens any more to an object that is as declared, so it comes again by itself as long as a request that was lost
    /// may yet be carried out, for what it shares.
    pub(super) fn once_more(&self, object: &A::Kind, outcome: Outcome) -> Outcome {
        let stays = outcome.is_done() && object.meta().deletion_timestamp.is_none();
        if stays && self.actuator.may_be_twice(object) {
            return Outcome::waiting("Tidying", "what a lost request may have made is looked for").within(LATE);
        }
        outcome
    }

    async fn sweep(&self, worker: &Worker, object: &Arc<A::Kind>, site: &Site, is_last: bool) -> Result<(), Stop> {
        let target = self.target(object, site, worker);
        self.actuator.sweep(&target, is_last).await.inspect_err(|stop| worker.doubt(&self.cloud, stop))
    }
}
