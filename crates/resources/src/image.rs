//! `Image` and `ClusterImage`: fetched, inspected, converted if need be, and uploaded to Glance.

mod adopt;
mod fault;
mod listed;
mod prepare;
mod turn;
mod upload;
mod variant;
mod wanted;

use std::{marker::PhantomData, sync::Arc};

use futures::{FutureExt, TryStreamExt};
use kupenstack_api::resources::ImageStatus;
use kupenstack_core::{Outcome, reason};
use kupenstack_images::{Fetcher, Format, QemuImg, QemuLimits, Workspace};
use kupenstack_openstack::{self as openstack, ErrorKind, ImageFilter, ImageStatus as GlanceStatus};
use kupenstack_runtime::Failure;

pub(crate) use self::variant::Variant;
use self::{
    prepare::Prepared,
    turn::Turns,
    wanted::{MARK, SIZE, SOURCE_FORMAT, Wanted},
};
use crate::{
    Settings,
    actuator::{Actuator, Progress, Step, Target},
    observe::Listed,
    stop::Stop,
};

/// How many deleted images of one object are skipped. Glance forgets them when its database is purged.
const MOST_REMAINS: usize = 256;

/// Why the object can't be, with field and remedy, as far as it alone tells.
pub(crate) fn refusal<K: Variant>(object: &K) -> Option<String> {
    Wanted::of(object, "").err().map(|outcome| outcome.message().to_owned())
}

/// Where images are prepared, whatever their kind.
pub(crate) struct Workshop {
    workspace: Workspace,
    fetcher: Fetcher,
    qemu: QemuImg,
    turns: Turns,
}

impl Workshop {
    /// A workshop in a folder; what an earlier one left there is removed.
    pub(crate) fn open(settings: &Settings) -> Result<Self, Failure> {
        let unusable = |error: kupenstack_images::Error| Failure::new(error.reason(), error);
        Ok(Self {
            workspace: Workspace::open(&settings.work_dir, settings.work_dir_size).map_err(unusable)?,
            fetcher: Fetcher::new(settings.sources.clone()).map_err(unusable)?,
            qemu: QemuImg::new(QemuLimits::default()),
            turns: Turns::new(),
        })
    }
}

/// Keeps the images of one kind in Glance.
pub(crate) struct ImageActuator<K> {
    workshop: Arc<Workshop>,
    kind: PhantomData<fn(K)>,
}

impl<K: Variant> ImageActuator<K> {
    pub(crate) fn new(workshop: &Arc<Workshop>) -> Self {
        Self { workshop: Arc::clone(workshop), kind: PhantomData }
    }

    /// By the recorded identifier or the first of our own, else by name and mark; or what is to be adopted.
    async fn find(&self, target: &Target<K>) -> Result<Option<openstack::Image>, Stop> {
        if let Some(adoption) = &target.object.image().adopt {
            return adopt::find(target, adoption).await;
        }
        let service = target.client.image();
        let id = target.recorded.as_ref().unwrap_or(&target.own_id);
        if let Some(image) = service.get(id).await?.filter(|image| is_ours(image, target)) {
            return Ok(Some(image));
        }
        let name = target.object.meta().name.clone();
        let filter = ImageFilter { name, owner: target.owner.clone(), ..ImageFilter::default() };
        let same_name: Vec<openstack::Image> = service.list(&filter).try_collect().await?;
        Ok(same_name.into_iter().find(|image| is_ours(image, target)))
    }

    async fn make(&self, target: &Target<K>, progress: &dyn Progress) -> Result<openstack::Image, Stop> {
        if let Some(adoption) = &target.object.image().adopt {
            return Err(adopt::missing(target, adoption).await?.into());
        }
        let wanted = Wanted::of(target.object.as_ref(), &target.mark)?;
        let Some(origin) = wanted.origin.clone() else {
            return Err(Outcome::blocked(reason::INVALID_SPEC, "spec: neither src nor adopt is given").into());
        };
        let uid = target.object.meta().uid.clone().unwrap_or_default();
        let turn = self.workshop.turns.take(&uid, progress)?;
        let prepared = turn.during(self.workshop.prepare(&origin, &turn, progress)).await?;
        let image = register(target, &wanted, origin.format, &prepared).await?;
        if is_whole(&image) {
            return Ok(image);
        }
        progress.say("Uploading", format!("uploading {} to Glance", prepare::size(prepared.length)));
        progress.created(&image.id).await?;
        upload::upload(target, &image.id, &prepared).await
    }
}

/// Makes the image's record. Its identifier is chosen by us, so that a repeated request can't make another one: it is
/// refused, and what is there is looked at. Glance never gives an identifier again, not even after a deletion; the
/// next one is then derived from it, so that every identifier of an object can be found from the object alone.
async fn register<K: Variant>(
    target: &Target<K>,
    wanted: &Wanted,
    format: Format,
    prepared: &Prepared,
) -> Result<openstack::Image, Stop> {
    let service = target.client.image();
    let mut id = target.recorded.clone().unwrap_or_else(|| target.own_id.clone());
    for _ in 0..MOST_REMAINS {
        match service.create(&wanted.new_image(&id, prepared.length, prepared.source_format, format)).await {
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            result => return Ok(result?),
        }
        if let Some(image) = service.get(&id).await?.filter(|image| is_ours(image, target)) {
            if is_whole(&image) || is_open(&image, prepared.length) {
                return Ok(image);
            }
            service.delete(&id).await?;
        }
        id = target.site.cluster.resource_id(&id);
    }
    let message =
        format!("more than {MOST_REMAINS} deleted images of this object are left in Glance: purge its database");
    Err(Stop::Trouble(Failure::new("TooManyRemains", message)))
}

/// What carries our mark, or, as long as the project guards what is not its own, what we recorded. Whoever sees our
/// identifiers and marks (those of public images are seen by all) may give them to an image of his own, so they count
/// only in our project.
fn is_ours<K: Variant>(image: &openstack::Image, target: &Target<K>) -> bool {
    let marked = image.properties.get(MARK) == Some(&target.mark);
    let recorded = target.recorded.as_ref() == Some(&image.id);
    let gone = matches!(image.status, GlanceStatus::Deleted | GlanceStatus::PendingDelete);
    !gone
        && match &target.owner {
            Some(owner) => image.owner.as_ref() == Some(owner) && (marked || recorded),
            None => marked,
        }
}

/// Whether it has all its data: as many bytes as were to be sent. A status that we do not know is not ours to judge.
fn is_whole(image: &openstack::Image) -> bool {
    let announced = image.properties.get(SIZE).and_then(|size| size.parse().ok());
    match image.status {
        GlanceStatus::Active | GlanceStatus::Deactivated => {
            image.size > Some(0) && announced.is_none_or(|announced| image.size == Some(announced))
        }
        GlanceStatus::Unknown(_) => true,
        _ => false,
    }
}

/// Whether it is a record that waits for exactly this data.
fn is_open(image: &openstack::Image, length: u64) -> bool {
    image.status == GlanceStatus::Queued && image.properties.get(SIZE) == Some(&length.to_string())
}

impl<K: Variant> Actuator for ImageActuator<K> {
    type Kind = K;
    type Resource = openstack::Image;

    const NAME: &'static str = K::NAME;
    /// More than images on their way, so that one can always be deleted, however slow the servers are that others come
    /// from.
    const CONCURRENCY: u16 = 24;

    fn observe<'a>(&'a self, target: &'a Target<K>) -> Step<'a, Option<openstack::Image>> {
        self.find(target).boxed()
    }

    fn is_whole(&self, _: &Target<K>, image: &openstack::Image) -> bool {
        is_whole(image)
    }

    fn create<'a>(&'a self, target: &'a Target<K>, progress: &'a dyn Progress) -> Step<'a, openstack::Image> {
        self.make(target, progress).boxed()
    }

    fn passed(&self, uid: &str) {
        self.workshop.turns.passed(uid);
    }

    /// What all of the cluster use may be of whichever project.
    fn can_be_of(project: &str, image: &openstack::Image) -> bool {
        K::KEEPS_VISIBILITY || image.is_in(project)
    }

    fn updates<'a>(&'a self, target: &'a Target<K>, image: &'a openstack::Image) -> Vec<Step<'a, ()>> {
        let wanted = match Wanted::of(target.object.as_ref(), &target.mark) {
            Ok(wanted) => wanted,
            Err(blocked) => return vec![futures::future::err(blocked.into()).boxed()],
        };
        let differences = [wanted.attributes_to_set(image), wanted.properties_to_set(image)];
        let step = |changes: Vec<_>| {
            async move { Ok(target.client.image().update(&image.id, &changes).await.map(drop)?) }.boxed()
        };
        differences.into_iter().filter(|changes| !changes.is_empty()).map(step).collect()
    }

    fn delete<'a>(&'a self, target: &'a Target<K>, image: &'a openstack::Image) -> Step<'a, ()> {
        async move { Ok(target.client.image().delete(&image.id).await.map(drop)?) }.boxed()
    }

    fn report(&self, _: &Target<K>, image: &openstack::Image, status: &mut ImageStatus) -> Outcome {
        let bytes = |size: Option<u64>| size.and_then(|size| i64::try_from(size).ok());
        let is_raw = image.disk_format.as_deref() == Some("raw");
        status.size = bytes(image.size);
        status.virtual_size = bytes(image.virtual_size.or(image.size.filter(|_| is_raw)));
        let hash = image.os_hash_algo.as_ref().zip(image.os_hash_value.as_ref());
        status.digest = hash.map(|(algorithm, value)| format!("{algorithm}:{value}"));
        status.source_format = image.properties.get(SOURCE_FORMAT).cloned();
        match &image.status {
            GlanceStatus::Active => Outcome::ready("active in Glance"),
            GlanceStatus::Deactivated => {
                Outcome::blocked("Deactivated", "an administrator of the cloud has deactivated the image in Glance")
            }
            other => Outcome::waiting("UnknownStatus", format!("Glance shows status {other}")),
        }
    }
}

#[cfg(test)]
mod tests;
