//! What happens to a service.

use kupenstack_api::cluster::Keystone;
use serde_json::json;

use crate::common::world::World;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    Install,
    Change,
    FailedJob,
    FailedPods,
    Repair,
    Delete,
    Recreate,
}

/// In the configuration of what crashes.
const POISON: &str = "poison";

impl Scenario {
    /// What comes before it in the life of a service.
    pub(crate) fn before(self) -> &'static [Self] {
        match self {
            Self::Install => &[],
            Self::Change | Self::FailedJob | Self::FailedPods | Self::Delete => &[Self::Install],
            Self::Repair => &[Self::Install, Self::FailedPods],
            Self::Recreate => &[Self::Install, Self::Delete],
        }
    }

    /// What the admin does.
    pub(crate) async fn declare(self, world: &World) {
        match self {
            Self::Install | Self::Repair | Self::Recreate => world.declare("Keystone", &json!({})).await,
            Self::Change => world.declare("Keystone", &json!({"conf": {"DEFAULT": {"debug": true}}})).await,
            Self::FailedJob => {
                world.player.fail("keystone-db-sync", POISON);
                world.declare("Keystone", &json!({"conf": {"DEFAULT": {"debug": POISON}}})).await;
            }
            Self::FailedPods => {
                world.player.crash_on(POISON);
                world.declare("Keystone", &json!({"conf": {"DEFAULT": {"debug": POISON}}})).await;
            }
            Self::Delete => world.delete("Keystone").await,
        }
    }

    /// Waits until that has its effect.
    pub(crate) async fn takes_effect(self, world: &World) {
        match self {
            Self::Delete => world.gone::<Keystone>("keystone").await,
            Self::FailedJob | Self::FailedPods => {
                world.keystone_taken_back().await;
            }
            _ => {
                world.ready::<Keystone>().await;
            }
        }
    }
}
