//! An image's data: uploads, which take time and may break, and downloads.

use http::StatusCode;
use jiff::Timestamp;

use super::{Glance, SIZE};
use crate::sim::{
    clock::later,
    http::{Answer, Outcome, Refusal},
    service::Call,
};

impl Glance {
    /// The first byte is there: from now on nobody else uploads.
    pub(super) fn begin_upload(&mut self, call: &mut Call<'_>) -> Result<(), Refusal> {
        let media_type = call.request.header("content-type").unwrap_or_default();
        if media_type != "application/octet-stream" {
            let words = format!("Invalid content type {media_type}");
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, words));
        }
        let length = call.request.header("content-length").and_then(|length| length.parse::<u64>().ok());
        self.check_quota(call, SIZE, length.unwrap_or(0) >> 20)?;
        let image = self.own(call, "upload_image")?;
        if image.status != "queued" {
            let from = image.status;
            return Err(Refusal::conflict(format!("Image status transition from {from} to saving is not allowed")));
        }
        let missing: Vec<&str> = [("disk_format", &image.disk_format), ("container_format", &image.container_format)]
            .into_iter()
            .filter_map(|(name, value)| value.is_none().then_some(name))
            .collect();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            return Err(Refusal::bad_request(format!("Properties {missing} must be set prior to saving data.")));
        }
        let mut image = image.clone();
        image.status = "saving";
        image.updated_at = call.now;
        self.put(call.now, image);
        Ok(())
    }

    /// The last byte is there.
    pub(super) fn upload(&mut self, call: &mut Call<'_>) -> Outcome {
        let id = call.param(0);
        let Some(image) = self.image(id).filter(|image| image.status == "saving") else {
            return Err(Refusal::new(
                StatusCode::GONE,
                format!(
                    "Image {id} could not be found after upload. The image may have been deleted during the upload, \
                     cleaning up the chunks uploaded."
                ),
            ));
        };
        let Some(upload) = &call.request.upload else { return Err(Refusal::bad_request("Body expected in request.")) };
        let mut image = image.clone();
        image.size = Some(upload.length);
        image.checksum = Some(upload.md5.clone());
        image.sha512 = Some(upload.sha512.clone());
        image.data.clone_from(&upload.data);
        image.updated_at = call.now;
        self.put(call.now, image);
        if self.saving_takes.is_zero() {
            self.activate(id, call.now);
        } else {
            self.saves += 1;
            self.saving.insert((later(call.now, self.saving_takes), self.saves), id.to_owned());
        }
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }

    pub(super) fn activate(&mut self, id: &str, now: Timestamp) {
        let Some(image) = self.image(id).filter(|image| image.status == "saving") else { return };
        let mut image = image.clone();
        image.status = "active";
        image.updated_at = now;
        self.put(now, image);
    }

    /// A broken upload leaves the image as it was, fit for another.
    pub(super) fn restore(&mut self, id: &str, now: Timestamp) {
        let Some(image) = self.image(id).filter(|image| image.status == "saving" && image.size.is_none()) else {
            return;
        };
        let mut image = image.clone();
        image.status = "queued";
        image.updated_at = now;
        self.put(now, image);
    }

    pub(super) fn download(&mut self, call: &mut Call<'_>) -> Outcome {
        let image = self.seen(call)?;
        if image.status == "deactivated" && !call.caller.is_admin() {
            return Err(Refusal::forbidden(
                "The requested image has been deactivated. Image data download is forbidden.",
            ));
        }
        match (image.status, &image.data) {
            ("active" | "deactivated", Some(data)) => {
                let answer = Answer::empty(StatusCode::OK).with_body("application/octet-stream", data.clone());
                Ok(answer.with_header("content-md5", image.checksum.as_deref().unwrap_or_default()))
            }
            // not Glance's: the simulation keeps no more than it is told to
            ("active" | "deactivated", None) => {
                let words = "The simulation has not kept the data of this image: keep_data";
                Err(Refusal::new(StatusCode::NOT_IMPLEMENTED, words))
            }
            _ => Ok(Answer::empty(StatusCode::NO_CONTENT)),
        }
    }
}
