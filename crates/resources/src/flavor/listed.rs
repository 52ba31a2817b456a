//! Flavors as the whole cloud's list shows them.

use futures::{StreamExt, stream::BoxStream};
use kupenstack_core::ownership;
use kupenstack_openstack::{Client, Error, Flavor};

use crate::observe::Listed;

impl Listed for Flavor {
    const NOUN: &'static str = "Nova flavor";
    const SERVICES: &'static [&'static str] = &["Keystone", "Nova"];

    fn list(admin: &Client) -> BoxStream<'static, Result<Self, Error>> {
        admin.compute().survey_flavors().boxed()
    }

    fn id(&self) -> &str {
        &self.id
    }

    /// A description is easily copied, so a mark counts only together with the identifier that goes with it.
    fn mark(&self) -> Option<&str> {
        let mark = ownership::mark_in(self.description.as_deref()?)?;
        ownership::is_own_id(mark, &self.id).then_some(mark)
    }

    fn is_in(&self, _: &str) -> bool {
        true
    }
}
