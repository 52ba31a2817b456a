//! List after list, for as long as the cloud is there.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use kupenstack_openstack::ErrorKind;
use kupenstack_runtime::metrics::Metrics;
use tokio::time::{Instant, sleep_until};

use super::{Census, Listed, News, draft::Draft, draft::Finished, owners, pace::Pace, unowned::Unowned};
use crate::{
    cloud::{Cloud, Site, Standing},
    realm::Worker,
    stop::Stop,
};

/// Lists whenever it is time, from when the first kind has joined.
pub(super) async fn run<R: Listed>(census: Arc<Census<R>>, cloud: Arc<Cloud>, metrics: Arc<Metrics>, mut pace: Pace) {
    census.joined.notified().await;
    let mut turns = cloud.turns(|cloud| site(cloud, R::SERVICES));
    let mut unowned = Unowned::default();
    loop {
        let Some(site) = site(&cloud, R::SERVICES) else {
            if turns.next().await.is_none() {
                return;
            }
            continue;
        };
        let wait = match round(&census, &cloud, &site).await {
            Ok((finished, took)) => {
                unowned.judge(&census, &metrics);
                let Finished { news, moving } = finished;
                tell(&census, news);
                if is_deserted(&census) { pace.deserted() } else { pace.listed(moving, took) }
            }
            Err(stop) if is_refusal(&stop) => {
                tracing::warn!(kind = R::NOUN, ?stop, "can't be listed for the whole cloud, each is looked at");
                census.state().refuse();
                tell(&census, News { everything: true, ..News::default() });
                pace.unlistable()
            }
            Err(stop) => {
                tracing::debug!(kind = R::NOUN, ?stop, "not listed, it is tried again");
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

/// One list, and how long it took.
async fn round<R: Listed>(census: &Census<R>, cloud: &Cloud, site: &Site) -> Result<(Finished, Duration), Stop> {
    let admin = Worker::stranger(cloud, site).await?;
    let began = Instant::now();
    let mut draft = Draft::begin(census, site);
    let mut all = R::list(&admin.client);
    loop {
        match all.try_next().await {
            Ok(Some(resource)) => draft.take(census, &resource),
            Ok(None) => return Ok((draft.finish(census), began.elapsed())),
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
