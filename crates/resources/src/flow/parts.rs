//! What an object makes for itself in Kubernetes, beside its resource in OpenStack.

use jiff::Timestamp;
use kupenstack_api::HasConditions;

use super::{Flow, settled::uid_of};
use crate::{
    actuator::Actuator,
    needs::{Key, Needs, YOUTH},
    parts::Chore,
    stop::Stop,
};

impl<A: Actuator> Flow<A> {
    /// What has to be done about the parts of an object, as the directory knows them.
    pub(super) fn chores(&self, object: &A::Kind) -> Result<Vec<Chore>, Stop> {
        let wanted = A::parts(object)?;
        let mut chores: Vec<Chore> = self.directory.surplus(&uid_of(object), &wanted);
        for part in wanted {
            let standing = self.directory.standing(&uid_of(object), &part.key);
            chores.extend(part.chore(standing)?);
        }
        Ok(chores)
    }

    /// Does what has to be done about the parts.
    pub(super) async fn carry_out(&self, object: &A::Kind, chores: &[Chore]) -> Result<(), Stop> {
        for chore in chores {
            chore.carry_out(self.cloud.kubernetes(), object).await?;
        }
        Ok(())
    }

    /// Whether all is there that the object's own resource is made with. That its parts are only being made need not be told at
    /// first.
    pub(super) fn can_begin(object: &A::Kind, needs: &Needs) -> Result<(), Stop> {
        let Err(wait) = needs.before_creation() else { return Ok(()) };
        let parts: Vec<Key> = A::parts(object)?.into_iter().map(|part| part.key).collect();
        if object.conditions().is_empty() && needs.come_at_once(&parts, Timestamp::now()) {
            return Err(Stop::Quiet(wait.within(YOUTH.unsigned_abs())));
        }
        Err(wait.into())
    }

    /// Leaves all parts there, as objects of their own: what OpenStack keeps of this object still needs what they stand for.
    pub(super) async fn release_parts(&self, object: &A::Kind) -> Result<(), Stop> {
        self.needs(object).await?;
        let released: Vec<Chore> =
            self.directory.surplus(&uid_of(object), &[]).into_iter().map(Chore::sparing).collect();
        self.carry_out(object, &released).await
    }

    /// Removes all parts. They end by themselves.
    pub(super) async fn break_up(&self, object: &A::Kind) -> Result<(), Stop> {
        self.needs(object).await?;
        self.carry_out(object, &self.directory.surplus(&uid_of(object), &[])).await
    }
}
