//! Objects that tell API servers whom to trust.

use std::{fmt::Debug, sync::Arc};

use futures::stream::BoxStream;
use k8s_openapi::{
    ByteString,
    api::{admissionregistration::v1::ValidatingWebhookConfiguration, core::v1::Secret},
    kube_aggregator::pkg::apis::apiregistration::v1::APIService,
};
use kube::{Api, Resource, api::Patch, runtime::watcher};
use kupenstack_runtime::{Context, Failure, ObjectRef, Shared, apply};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::keeper::written;

/// An object that says whom to trust when a server is asked.
pub(crate) trait Says:
    Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static
{
    /// What makes it say that, and no more; `None` when it does.
    fn correction(&self, trusted: &ByteString) -> Option<Value>;
}

impl Says for ValidatingWebhookConfiguration {
    fn correction(&self, trusted: &ByteString) -> Option<Value> {
        let webhooks = self.webhooks.iter().flatten();
        let wrong = webhooks.filter(|webhook| webhook.client_config.ca_bundle.as_ref() != Some(trusted));
        let wrong = wrong.map(|webhook| json!({"name": webhook.name, "clientConfig": {"caBundle": trusted}}));
        let wrong: Vec<_> = wrong.collect();
        (!wrong.is_empty()).then(|| json!({"webhooks": wrong}))
    }
}

impl Says for APIService {
    fn correction(&self, trusted: &ByteString) -> Option<Value> {
        let said = self.spec.as_ref().and_then(|spec| spec.ca_bundle.as_ref());
        (said != Some(trusted)).then(|| json!({"spec": {"caBundle": trusted}}))
    }
}

/// One of them, which need not be there.
pub(crate) struct Announced<K: Resource<DynamicType = ()> + 'static> {
    api: Api<K>,
    name: String,
    objects: Arc<Shared<K>>,
}

impl<K: Says> Announced<K> {
    /// Starts to watch it: by name, as the rights are.
    pub(crate) fn start(api: Api<K>, name: &str, context: &Context) -> Self {
        let one = watcher::Config::default().fields(&format!("metadata.name={name}"));
        Self { objects: Shared::start(api.clone(), one, context), api, name: name.to_owned() }
    }

    pub(crate) async fn ready(&self) -> Result<(), Failure> {
        self.objects.ready().await
    }

    /// References of a Secret, each time that the object changes.
    pub(crate) fn changes(&self, secret: ObjectRef<Secret>) -> BoxStream<'static, ObjectRef<Secret>> {
        self.objects.changes(move |_, _| vec![secret.clone()])
    }

    /// Has the object say whom to trust. Whether it said so before, or is not there: nobody asks then.
    pub(crate) async fn tell(&self, trusted: &ByteString) -> Result<bool, Failure> {
        let Some(object) = self.objects.get(&ObjectRef::new(&self.name)) else { return Ok(true) };
        let Some(mut patch) = object.correction(trusted) else { return Ok(true) };
        patch["metadata"] = json!({"resourceVersion": object.meta().resource_version});
        written(self.api.patch(&self.name, &apply::patch_params(), &Patch::Strategic(patch)).await)?;
        Ok(false)
    }
}
