//! Creation, which may take long: it is told of while it goes on, and given up when nobody wants it any more.

use std::time::Duration;

use kupenstack_core::Outcome;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use super::{Flow, report::Report, settled::uid_of};
use crate::{
    actuator::{Actuator, Kind, Target},
    stop::Stop,
};

/// What is done within this time needs no telling.
const PATIENCE: Duration = Duration::from_secs(1);
/// Progress is written at most this often.
const EVERY: Duration = Duration::from_secs(5);

impl<A: Actuator> Flow<A> {
    /// Creates the resource. Ends early when the object is being deleted or the process is to stop; what was begun is
    /// found by the next pass.
    pub(super) async fn create(&self, report: &Report<A::Kind>, target: &Target<A::Kind>) -> Result<A::Resource, Stop> {
        let _writing = self.census.writing(uid_of(target.object.as_ref()));
        let (unwanted, over) = (CancellationToken::new(), CancellationToken::new());
        let work = async {
            let create = async {
                let _turn = self.directory.turn_to_use::<A>(&target.object).await;
                self.actuator.create(target, report).await
            };
            let result = tokio::select! {
                result = create => result,
                () = unwanted.cancelled() => Err(interrupted()),
                () = self.stop.cancelled() => Err(interrupted()),
            };
            over.cancel();
            result
        };
        // two futures side by side and not one within the other: the work must go on while its progress is written
        let (result, ()) = tokio::join!(work, tell(report, &unwanted, &over));
        result
    }
}

pub(super) fn interrupted() -> Stop {
    Stop::Quiet(Outcome::waiting("Interrupted", "the object is being deleted, or the operator is to stop"))
}

/// Writes progress until the work is over. Every write is finished, so that none comes after the final one.
async fn tell<K: Kind>(report: &Report<K>, unwanted: &CancellationToken, over: &CancellationToken) {
    let mut ticks = interval_at(Instant::now() + PATIENCE, EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = over.cancelled() => return,
            _ = ticks.tick() => {}
        }
        match report.is_outdated().await {
            Ok(true) => unwanted.cancel(),
            Ok(false) => {
                if let Err(error) = report.flush().await {
                    tracing::debug!(%error, "progress not written");
                }
            }
            Err(error) => tracing::debug!(%error, "object not read"),
        }
    }
}
