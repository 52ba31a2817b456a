//! Images that were in Glance before their objects.

use futures::TryStreamExt;
use kupenstack_api::resources::{ImageAdoption, ImageFilter as Features};
use kupenstack_core::Outcome;
use kupenstack_openstack::{self as openstack, ImageFilter, ImageStatus as GlanceStatus};

use super::variant::Variant;
use crate::{actuator::Target, adoption, stop::Stop};

/// The adopted image: the one that was recorded, else the only one that fits.
pub(super) async fn find<K: Variant>(
    target: &Target<K>,
    wanted: &ImageAdoption,
) -> Result<Option<openstack::Image>, Stop> {
    let Some(project) = &target.owner else { return Ok(None) };
    if let Some(id) = &target.recorded {
        let image = target.client.image().get(id).await?;
        // a public image that was made private is still the one that was adopted, and is published again
        let is_its = |image: &openstack::Image| K::KEEPS_VISIBILITY || K::may_adopt(image, project);
        if let Some(image) = image.filter(|image| is_there(image) && is_its(image)) {
            return Ok(Some(image));
        }
    }
    adoption::only(target, candidates(target, wanted, project)).await
}

/// Why there is nothing to adopt.
pub(super) async fn missing<K: Variant>(target: &Target<K>, wanted: &ImageAdoption) -> Result<Outcome, Stop> {
    let fitting = match &target.owner {
        Some(project) => candidates(target, wanted, project).await?,
        None => Vec::new(),
    };
    let those = if K::KEEPS_VISIBILITY { "public images" } else { "images of the project" };
    Ok(match fitting.as_slice() {
        [one] => Outcome::waiting("NotUsable", format!("spec.adopt: image {} is {} in Glance", one.id, one.status)),
        fitting => adoption::missing(fitting, those),
    })
}

async fn candidates<K: Variant>(
    target: &Target<K>,
    wanted: &ImageAdoption,
    project: &str,
) -> Result<Vec<openstack::Image>, Stop> {
    let service = target.client.image();
    let images: Vec<_> = if let Some(id) = &wanted.id {
        service.get(id).await?.into_iter().collect()
    } else {
        let filter = ImageFilter { name: wanted.name.clone(), ..ImageFilter::default() };
        service.list(&filter).try_collect().await?
    };
    let fits = |image: &openstack::Image| {
        is_there(image)
            && K::may_adopt(image, project)
            && wanted.name.as_ref().is_none_or(|name| image.name.as_ref() == Some(name))
            && wanted.filter.as_ref().is_none_or(|features| has(image, features))
    };
    Ok(images.into_iter().filter(fits).collect())
}

fn has(image: &openstack::Image, features: &Features) -> bool {
    features.tags.iter().all(|tag| image.tags.contains(tag))
        && features.properties.iter().all(|(name, value)| image.properties.get(name) == Some(value))
}

fn is_there(image: &openstack::Image) -> bool {
    !matches!(image.status, GlanceStatus::Deleted | GlanceStatus::PendingDelete)
}
