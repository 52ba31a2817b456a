//! List after list, for as long as the cloud is there.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use jiff::Timestamp;
use kupenstack_openstack::ErrorKind;
use kupenstack_runtime::metrics::Metrics;
use tokio::time::{Instant, sleep_until};

use super::{Census, Listed, News, draft::Draft, draft::Finished, owners, pace::Pace, scope::Scope, unowned::Unowned};
use crate::{
    cloud::{Cloud, Site, Standing},
    realm::Worker,
    stop::Stop,
};

/// Lists whenever it is time, from when the first kind has joined.
pub(super) async fn run<R: Listed>(census: Arc<Census<R>>, cloud: Arc<Cloud>, metrics: Arc<Metrics>, mut pace: Pace) {
    census.joined.notified().await;
    let mut turns = cloud.turns(|cloud| site(cloud, R::SERVICES));
    let (mut unowned, mut scope) = (Unowned::default(), Scope::new(pace.settled()));
    loop {
        let Some(site) = site(&cloud, R::SERVICES) else {
            if turns.next().await.is_none() {
                return;
            }
            continue;
        };
        let since = scope.since(&site);
        let wait = match round(&census, &cloud, &site, since).await {
            Ok(Round { finished, is_whole, took }) => {
                scope.listed(&site, is_whole, took, &finished);
                if is_whole {
                    unowned.judge(&census, &metrics);
                }
                let Finished { news, moving, .. } = finished;
                tell(&census, news);
                // what a list of all has taken is no reason to put off one of changes
                let cost = if is_whole && scope.since(&site).is_some() { Duration::ZERO } else { took };
                if is_deserted(&census) { pace.deserted() } else { pace.listed(moving, cost) }
            }
            Err(stop) if is_refusal(&stop) => {
                tracing::warn!(kind = R::NOUN, ?stop, "can't be listed for the whole cloud, each is looked at");
                scope.failed();
                census.state().refuse();
                tell(&census, News { everything: true, ..News::default() });
                pace.unlistable()
            }
            Err(stop) => {
                tracing::debug!(kind = R::NOUN, ?stop, "not listed, it is tried again");
                if since.is_some() {
                    scope.changes_failed();
                } else {
                    scope.failed();
                }
                pace.failed()
            }
        };
        census.tried.send_replace(Some(site));
        rest(&census, &mut turns, &mut pace, wait).await;
    }
}

/// The cloud, if it can be asked.
fn site(cloud: &Cloud, services: &[&str]) -> Option<Site> {
    match cloud.standing(services) {
        Standing::Ready(site) => Some(site),
        _ => None,
    }
}

/// One list that came to its end.
struct Round {
    finished: Finished,
    is_whole: bool,
    took: Duration,
}

/// One list, of all or of what has changed since.
async fn round<R: Listed>(
    census: &Census<R>,
    cloud: &Cloud,
    site: &Site,
    since: Option<Timestamp>,
) -> Result<Round, Stop> {
    let admin = Worker::stranger(cloud, site).await?;
    let began = Instant::now();
    let changed = since.and_then(|since| R::list_changed(&admin.client, since));
    let is_whole = changed.is_none();
    let mut draft = Draft::begin(census, site, is_whole);
    let mut listed = changed.unwrap_or_else(|| R::list(&admin.client));
    loop {
        match listed.try_next().await {
            Ok(Some(resource)) => draft.take(census, &resource),
            Ok(None) => return Ok(Round { finished: draft.finish(census), is_whole, took: began.elapsed() }),
            Err(error) => {
                let stop = Stop::from(error);
                admin.doubt(cloud, &stop);
                return Err(stop);
            }
        }
    }
}

/// Whether nobody has or wants any of it.
fn is_deserted<R: Listed>(census: &Census<R>) -> bool {
    let is_empty = census.state().kept.is_empty();
    is_empty && owners::uids(census).is_some_and(|owners| owners.is_empty())
}

/// Whether it is not the service that fails, but the list that is not for us to make.
fn is_refusal(stop: &Stop) -> bool {
    matches!(stop, Stop::OpenStack(error) if error.kind() == ErrorKind::Forbidden)
}

fn tell<R: Listed>(census: &Census<R>, news: News) {
    if !news.is_empty() {
        // without a listener there is no object to wake
        drop(census.news.send(Arc::new(news)));
    }
}

/// Waits until it is time for the next list.
async fn rest<R: Listed>(census: &Census<R>, turns: &mut BoxStream<'static, Site>, pace: &mut Pace, wait: Duration) {
    let mut until = Instant::now() + wait;
    loop {
        tokio::select! {
            () = sleep_until(until) => return,
            _ = turns.next() => return,
            () = census.moved.notified() => {
                if let Some(wait) = pace.moved() {
                    until = until.min(Instant::now() + wait);
                }
            }
        }
    }
}
