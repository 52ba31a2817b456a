//! From a file to an image with all its data.

use std::time::Duration;

use kupenstack_openstack::{self as openstack, ErrorKind, ImageStatus as GlanceStatus};
use kupenstack_runtime::{Failure, jittered};
use tokio::time::sleep;

use super::{is_open, is_whole, prepare::Prepared, variant::Variant};
use crate::{actuator::Target, stop::Stop};

/// The pauses before an upload that broke is repeated, in seconds. Glance can't continue one, but while the file is
/// here it does not have to be fetched and converted again.
const PAUSES: [u64; 3] = [2, 8, 30];

/// Uploads the data and makes sure that all of it arrived.
pub(super) async fn upload<K: Variant>(
    target: &Target<K>,
    id: &str,
    prepared: &Prepared,
) -> Result<openstack::Image, Stop> {
    let mut pauses = PAUSES.into_iter();
    loop {
        let broken = match send(target, id, prepared).await {
            Err(Stop::OpenStack(error)) if is_passing(&error) => error,
            result => return result,
        };
        if let Some(image) = after(broken, target, id, prepared, &mut pauses).await? {
            return Ok(image);
        }
        tracing::info!(id, "the upload broke and is repeated");
    }
}

/// Waits until a broken upload can be repeated, or turns out to have arrived. Gives up with the failure.
async fn after<K: Variant>(
    broken: openstack::Error,
    target: &Target<K>,
    id: &str,
    prepared: &Prepared,
    pauses: &mut impl Iterator<Item = u64>,
) -> Result<Option<openstack::Image>, Stop> {
    for seconds in pauses {
        sleep(jittered(Duration::from_secs(seconds))).await;
        match target.client.image().get(id).await {
            Ok(Some(image)) if is_whole(&image) => return Ok(Some(image)),
            Ok(Some(image)) if is_open(&image, prepared.length) => return Ok(None),
            // Glance has not noticed yet
            Ok(Some(image)) if image.status == GlanceStatus::Saving => {}
            Err(error) if is_passing(&error) => {}
            Ok(_) | Err(_) => break,
        }
    }
    Err(broken.into())
}

/// A service that is away may come back, and a token that was refused is not used again.
fn is_passing(error: &openstack::Error) -> bool {
    matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Unauthorized)
}

async fn send<K: Variant>(target: &Target<K>, id: &str, prepared: &Prepared) -> Result<openstack::Image, Stop> {
    let (service, length) = (target.client.image(), prepared.length);
    service.upload(id, Some(length), prepared.open().await?.into_stream()).await?;
    let trouble = |message: String| Err(Stop::Trouble(Failure::new("UploadFailed", message)));
    match service.get(id).await? {
        Some(image) if image.status == GlanceStatus::Active && image.size == Some(length) => Ok(image),
        Some(image) => {
            let (status, size) = (image.status.to_string(), image.size.unwrap_or_default());
            service.delete(id).await?;
            trouble(format!("Glance took {length} bytes and shows {size}, status {status}"))
        }
        None => trouble("Glance took the data and lost the image".to_owned()),
    }
}
