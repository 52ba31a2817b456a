//! Glance: images and their data.

mod types;
mod upload;

use std::io;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::Method;
use serde_json::{Value, json};

pub use types::{Image, ImageChange, ImageFilter, ImageStatus, NewImage, Visibility};

use crate::{Client, Error, service::ServiceClient};

/// The media type that lets a change add, replace and remove.
const JSON_PATCH: &str = "application/openstack-images-v2.1-json-patch";

/// Glance as one user sees it.
#[derive(Debug, Clone)]
pub struct ImageService {
    service: ServiceClient,
}

impl ImageService {
    pub(crate) fn new(client: Client) -> Self {
        Self { service: ServiceClient::new(client, "image", "v2") }
    }

    /// An image by its id.
    pub async fn get(&self, id: &str) -> Result<Option<Image>, Error> {
        match self.service.get(&["images", id]).await? {
            Some(answer) => answer.json().map(Some),
            None => Ok(None),
        }
    }

    /// The images that fit, of those the user may see.
    pub fn list(&self, filter: &ImageFilter) -> impl Stream<Item = Result<Image, Error>> + Send + use<> {
        self.service.clone().list("images".into(), filter.query())
    }

    /// Every image of every project, whoever may see it, and hidden ones too; for an administrator, others get what
    /// they may see. It is read in the order of creation, so that what comes and goes meanwhile shifts nothing: no
    /// image is missed or told twice, except one that is hidden or shown meanwhile.
    ///
    /// An image that can't be read is left out, and told in the log.
    pub fn survey(&self) -> impl Stream<Item = Result<Image, Error>> + Send + use<> {
        let of = |hidden| self.service.clone().survey("images".into(), types::everything(hidden));
        of(false).chain(of(true))
    }

    /// Makes an image without data. An id that is taken, even by a deleted image, is a conflict.
    pub async fn create(&self, image: &NewImage) -> Result<Image, Error> {
        self.service.post(&["images"], &image.body()).await?.json()
    }

    /// Changes some of an image's attributes and properties.
    pub async fn update(&self, id: &str, changes: &[ImageChange]) -> Result<Image, Error> {
        let patch: Vec<Value> = changes.iter().map(ImageChange::operation).collect();
        let call = self.service.call(Method::PATCH, &["images", id]).await?.json_as(JSON_PATCH, &json!(patch));
        self.service.send(&call).await?.json()
    }

    /// Uploads an image's data, as it comes and never more than a chunk in memory. Tried once: only the caller can
    /// read the source again.
    ///
    /// A failing source ends the request in a way that Glance sees as broken, and is returned as [`Error::Source`];
    /// so is one that yields more or fewer bytes than `content_length` says. There is no limit to the time it takes as
    /// long as it moves on: see [`Options::upload_idle_timeout`](crate::Options::upload_idle_timeout).
    pub async fn upload<S>(&self, id: &str, content_length: Option<u64>, data: S) -> Result<(), Error>
    where
        S: Stream<Item = io::Result<Bytes>> + Send + 'static,
    {
        let call = self.service.call(Method::PUT, &["images", id, "file"]).await?;
        upload::upload(&self.service.client, &call, content_length, data).await
    }

    /// Deletes an image; false if there is none of that id.
    pub async fn delete(&self, id: &str) -> Result<bool, Error> {
        self.service.delete(&["images", id]).await
    }
}
