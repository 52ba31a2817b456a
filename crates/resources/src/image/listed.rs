//! Images as the whole cloud's list shows them.

use futures::{StreamExt, stream::BoxStream};
use kupenstack_openstack::{Client, Error, Image};

use super::wanted::MARK;
use crate::observe::Listed;

impl Listed for Image {
    const NOUN: &'static str = "Glance image";
    const SERVICES: &'static [&'static str] = &["Keystone", "Glance"];

    fn list(admin: &Client) -> BoxStream<'static, Result<Self, Error>> {
        admin.image().survey().boxed()
    }

    fn id(&self) -> &str {
        &self.id
    }

    fn mark(&self) -> Option<&str> {
        self.properties.get(MARK).map(String::as_str)
    }

    fn is_in(&self, project: &str) -> bool {
        self.owner.as_deref() == Some(project)
    }
}
