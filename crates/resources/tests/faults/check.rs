//! What has to be true after each phase of a life, whatever went wrong in it.

use std::collections::BTreeMap;

use crate::{life::Life, point::Phase, stage::Stage};

/// How many there are of what.
pub(crate) type Census = BTreeMap<&'static str, usize>;

/// What is said of one life at most. Repeats count: they are what fills a cluster with events.
const MOST_EVENTS: i32 = 24;

/// A stage before a life.
pub(crate) struct Before {
    census: Census,
    events: i32,
}

impl Before {
    pub(crate) async fn of(stage: &Stage) -> Self {
        Self { census: stage.census().await, events: said(stage).await.0 }
    }

    /// Says what is wrong after a phase: more or less of something than there should be, something that is not as
    /// declared, events without end, a secret that anybody may read.
    pub(crate) async fn verify<L: Life>(&self, stage: &Stage, life: &L, phase: Phase) -> Result<(), String> {
        let lives = matches!(phase, Phase::Create | Phase::Update);
        let mut expected = self.census.clone();
        for (what, more) in life.adds().into_iter().filter(|_| lives) {
            *expected.entry(what).or_default() += more;
        }
        let found = stage.census().await;
        if found != expected {
            return Err(format!("there is {found:?} instead of {expected:?}"));
        }
        if lives {
            life.check(stage, phase).await?;
        }
        let (events, text) = said(stage).await;
        if events - self.events > MOST_EVENTS {
            return Err(format!("{} events about one life: {text}", events - self.events));
        }
        let shown = life.shown(stage).await;
        let cloud = stage.sim.cloud();
        match cloud.keystone.secrets().find(|secret| shown.contains(*secret) || text.contains(*secret)) {
            Some(secret) => Err(format!("everybody may read {secret}")),
            None => Ok(()),
        }
    }
}

/// How often something was said on a stage, and what.
async fn said(stage: &Stage) -> (i32, String) {
    let events = stage.events().await;
    let times = events.iter().map(|event| event.series.as_ref().map_or(1, |series| series.count)).sum();
    (times, serde_json::to_string(&events).unwrap())
}
