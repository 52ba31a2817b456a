//! The limits of all projects, as one list showed them: a quota that is kept costs no request.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{StreamExt, TryStreamExt};
use kupenstack_openstack::Limit;
use tokio::sync::Mutex;

use super::{
    keys::KEYS,
    limits::Catalogue,
    wanted::{Declared, Wanted},
};
use crate::{
    cloud::{Cloud, Site},
    stop::Stop,
};

/// How long a list counts in which nothing is ours: it may have been one of before.
const LONGEST: Duration = Duration::from_mins(10);

/// Keeps the last list until it is doubted, or old.
#[derive(Default)]
pub(super) struct Ledger(Mutex<Option<Arc<Page>>>);

/// The limits that keys of ours can become.
pub(super) struct Page {
    site: Site,
    began: Instant,
    /// By project, and by the name of the key.
    limits: HashMap<String, BTreeMap<&'static str, Limit>>,
}

impl Ledger {
    /// The last list of this cloud, or a new one. However many want one, one asks.
    pub(super) async fn page(&self, cloud: &Cloud, site: &Site) -> Result<Arc<Page>, Stop> {
        let mut held = self.0.lock().await;
        if let Some(page) = held.as_ref().filter(|page| page.site == *site && page.began.elapsed() < LONGEST) {
            return Ok(Arc::clone(page));
        }
        let began = Instant::now();
        let mut limits: HashMap<String, BTreeMap<&'static str, Limit>> = HashMap::new();
        let identity = cloud.admin(site).await?.identity();
        let catalogue = Catalogue::look(&identity, cloud.admin_config(site).await?.region).await?;
        let mut listed = identity.list_limits(None).boxed();
        while let Some(limit) = listed.try_next().await? {
            let Some(project) = limit.project_id.clone() else { continue };
            if let Some(key) = KEYS.iter().find(|key| catalogue.has(key, &limit)) {
                limits.entry(project).or_default().entry(key.name).or_insert(limit);
            }
        }
        let page = Arc::new(Page { site: site.clone(), began, limits });
        *held = Some(Arc::clone(&page));
        Ok(page)
    }

    /// The next page is a new list: something was written, or time has passed. A list under way does not count.
    pub(super) async fn doubt(&self) {
        *self.0.lock().await = None;
    }

    /// Projects with a limit that carries one of this cluster's marks, as far as is known.
    pub(super) async fn limited(&self) -> Vec<String> {
        let held = self.0.lock().await;
        let Some(page) = held.as_ref() else { return Vec::new() };
        let is_marked =
            |limit: &Limit| limit.description.as_deref().is_some_and(|text| page.site.cluster.marked(text).is_some());
        let limited = page.limits.iter().filter(|(_, limits)| limits.values().any(is_marked));
        limited.map(|(project, _)| project.clone()).collect()
    }
}

impl Page {
    /// Whether a project's limits are as they are wanted.
    pub(super) fn shows(&self, project: &str, wanted: &Wanted, mark: &str) -> bool {
        let limits = self.limits.get(project);
        KEYS.iter().all(|key| is_kept(wanted.declared(key), limits.and_then(|limits| limits.get(key.name)), mark))
    }
}

fn is_kept(declared: Option<&Declared>, present: Option<&Limit>, mark: &str) -> bool {
    match declared {
        Some(Declared::Limit(wanted, _)) => present.is_some_and(|limit| limit.resource_limit == i64::from(*wanted)),
        Some(Declared::Unclear) => true,
        None => present.is_none_or(|limit| limit.description.as_deref() != Some(mark)),
    }
}
