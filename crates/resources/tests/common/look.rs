//! How to look at objects, and wait for what is to come of them.

use std::fmt::Debug;

use kube::{Api, Resource, runtime::wait::await_condition};
use kupenstack_api::resources::Image;
use kupenstack_core::conditions::{self, READY};
use kupenstack_testkit::PATIENCE;
pub(crate) use kupenstack_testkit::{eventually, within};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

/// Waits for an object that fits, and shows the last one when none does.
pub(crate) async fn until<K>(api: Api<K>, name: &str, fits: impl Fn(&K) -> bool + Send + Sync) -> K
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let fitting = await_condition(api.clone(), name, |object: Option<&K>| object.is_some_and(&fits));
    let Ok(object) = timeout(PATIENCE, fitting).await else {
        panic!("{name} never came to fit: {:#?}", api.get_opt(name).await);
    };
    object.unwrap().unwrap()
}

/// Content that looks like a disk: not all of it is text.
pub(crate) fn disk(size: usize) -> Vec<u8> {
    (0..size).map(|index| u8::try_from(index % 251).unwrap()).collect()
}

pub(crate) fn is_ready(image: &Image) -> bool {
    let conditions = image.status.as_ref().map_or(&[][..], |status| &status.conditions);
    conditions::is_ready(conditions, image.metadata.generation)
}

/// Reason and message of `Ready`.
pub(crate) fn shown(image: &Image) -> (String, String) {
    let conditions = image.status.as_ref().map_or(&[][..], |status| &status.conditions);
    conditions::find(conditions, READY).map(|c| (c.reason.clone(), c.message.clone())).unwrap_or_default()
}

pub(crate) fn id(image: &Image) -> String {
    image.status.as_ref().and_then(|status| status.id.clone()).unwrap_or_default()
}
