//! The limits of all projects, as one list showed them: a quota that is kept costs no request.

use std::{collections::HashMap, sync::Arc};

use futures::{StreamExt, TryStreamExt};
use kupenstack_openstack::Limit;
use tokio::sync::Mutex;

use super::{
    keys::{KEYS, Key},
    wanted::{Declared, Wanted},
};
use crate::{
    cloud::{Cloud, Site},
    stop::Stop,
};

/// Keeps the last list until it is doubted.
#[derive(Default)]
pub(super) struct Ledger(Mutex<Option<Arc<Page>>>);

/// The limits that keys of ours can become.
pub(super) struct Page {
    site: Site,
    /// By project.
    limits: HashMap<String, Vec<Limit>>,
}

impl Ledger {
    /// The last list of this cloud, or a new one. However many want one, one asks.
    pub(super) async fn page(&self, cloud: &Cloud, site: &Site) -> Result<Arc<Page>, Stop> {
        let mut held = self.0.lock().await;
        if let Some(page) = held.as_ref().filter(|page| page.site == *site) {
            return Ok(Arc::clone(page));
        }
        let mut limits: HashMap<String, Vec<Limit>> = HashMap::new();
        let mut listed = cloud.admin(site).await?.identity().list_limits(None).boxed();
        while let Some(limit) = listed.try_next().await? {
            let Some(project) = limit.project_id.clone() else { continue };
            if KEYS.iter().any(|key| key.resource == limit.resource_name) {
                limits.entry(project).or_default().push(limit);
            }
        }
        let page = Arc::new(Page { site: site.clone(), limits });
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
        let limited = page.limits.iter().filter(|(_, limits)| limits.iter().any(is_marked));
        limited.map(|(project, _)| project.clone()).collect()
    }
}

impl Page {
    /// Whether a project's limits are as they are wanted.
    pub(super) fn shows(&self, project: &str, wanted: &Wanted, mark: &str) -> bool {
        let limits = self.limits.get(project).map_or(&[][..], Vec::as_slice);
        KEYS.iter().all(|key| is_kept(key, wanted.declared(key), limits, mark))
    }
}

fn is_kept(key: &Key, declared: Option<&Declared>, limits: &[Limit], mark: &str) -> bool {
    let mut of_key = limits.iter().filter(|limit| limit.resource_name == key.resource);
    match declared {
        Some(Declared::Limit(wanted, _)) => of_key.any(|limit| limit.resource_limit == i64::from(*wanted)),
        Some(Declared::Unclear) => true,
        None => !of_key.any(|limit| limit.description.as_deref() == Some(mark)),
    }
}
