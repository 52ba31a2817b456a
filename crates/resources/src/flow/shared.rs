//! What objects share in OpenStack: removed by the last that needed it.

use std::sync::Arc;

use super::{Flow, Scope, create::interrupted};
use crate::{
    actuator::Actuator,
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

    async fn sweep(&self, worker: &Worker, object: &Arc<A::Kind>, site: &Site, is_last: bool) -> Result<(), Stop> {
        let target = self.target(object, site, worker);
        self.actuator.sweep(&target, is_last).await.inspect_err(|stop| worker.doubt(&self.cloud, stop))
    }
}
