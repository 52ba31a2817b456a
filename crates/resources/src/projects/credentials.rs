//! The Secret with the credentials of a namespace's user, in the cloud's namespace.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api,
    api::{DeleteParams, ObjectMeta},
};
use kupenstack_api::MANAGER;
use kupenstack_core::hash;
use kupenstack_openstack::{self as openstack, CloudConfig, DomainRef, ProjectScope};
use kupenstack_runtime::{Failure, apply};
use rand::{Rng, distr::Alphanumeric};
use secrecy::{ExposeSecret, SecretString};

use super::tenant::Tenant;
use crate::{
    cloud::{CLOUDS_YAML, Cloud, Site, project_secret},
    stop::Stop,
};

/// Label of every Secret that holds a `clouds.yaml`.
const LABEL: &str = "kupenstack.io/clouds-yaml";
/// Label with the namespace that the credentials are for.
const NAMESPACE: &str = "kupenstack.io/namespace";
/// Characters of a password: some 240 bits.
const PASSWORD_LENGTH: usize = 40;

/// Letters and digits that nobody can guess.
pub(super) fn random_text(length: usize) -> String {
    rand::rng().sample_iter(Alphanumeric).take(length).map(char::from).collect()
}

/// The password of a namespace's user.
#[derive(Debug)]
pub(super) struct Password(SecretString);

impl Password {
    fn random() -> Self {
        Self(random_text(PASSWORD_LENGTH).into())
    }

    pub(super) fn secret(&self) -> &SecretString {
        &self.0
    }

    /// To tell passwords apart without keeping them.
    pub(super) fn hash(&self) -> String {
        hash::of_bytes(self.0.expose_secret().as_bytes())
    }
}

/// The credentials of one namespace.
pub(super) struct Credentials<'a> {
    cloud: &'a Arc<Cloud>,
    site: &'a Site,
    tenant: &'a Tenant,
    api: Api<Secret>,
    name: String,
}

impl<'a> Credentials<'a> {
    pub(super) fn new(cloud: &'a Arc<Cloud>, site: &'a Site, tenant: &'a Tenant) -> Self {
        let api = Api::namespaced(cloud.kubernetes(), &site.namespace);
        Self { cloud, site, tenant, api, name: project_secret(tenant.namespace()) }
    }

    pub(super) fn tenant(&self) -> &Tenant {
        self.tenant
    }

    pub(super) async fn exist(&self) -> Result<bool, Failure> {
        Ok(self.api.get_metadata_opt(&self.name).await?.is_some())
    }

    /// The password. A new one is in the Secret before anybody uses it.
    pub(super) async fn password(&self) -> Result<Password, Stop> {
        let existing = self.api.get_opt(&self.name).await?;
        if let Some(password) = existing.as_ref().and_then(|secret| self.password_in(secret)) {
            return Ok(password);
        }
        let password = Password::random();
        let secret = self.secret(&password, None).await?;
        if existing.is_some() {
            // of an earlier namespace of this name, or spoilt
            apply::apply(&self.api, &self.name, &secret).await?;
        } else if !apply::create_if_absent(&self.api, &secret).await? {
            return Err(Failure::new("KubernetesConflict", "the Secret was made by another hand meanwhile").into());
        }
        self.cloud.reread_project(self.tenant.namespace());
        Ok(password)
    }

    /// Writes everything that is known by now, unless the Secret says it already.
    pub(super) async fn complete(&self, password: &Password, project_id: &str) -> Result<(), Stop> {
        let wanted = self.secret(password, Some(project_id)).await?;
        let existing = self.api.get_opt(&self.name).await?;
        if existing.is_some_and(|secret| secret.data == wanted.data && is_labelled(&secret, &wanted)) {
            return Ok(());
        }
        apply::apply(&self.api, &self.name, &wanted).await?;
        self.cloud.reread_project(self.tenant.namespace());
        Ok(())
    }

    pub(super) async fn delete(&self) -> Result<(), Failure> {
        match self.api.delete(&self.name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            result => Ok(result.map(drop)?),
        }
    }

    fn password_in(&self, secret: &Secret) -> Option<Password> {
        let text = secret.data.as_ref()?.get(CLOUDS_YAML).and_then(|value| str::from_utf8(&value.0).ok())?;
        let config = CloudConfig::from_clouds_yaml(text, self.tenant.namespace()).ok()?;
        let credentials = config.credentials;
        (credentials.username == self.tenant.user_name()).then_some(Password(credentials.password))
    }

    async fn secret(&self, password: &Password, project_id: Option<&str>) -> Result<Secret, Stop> {
        let admin = self.cloud.admin_config(self.site).await?;
        let credentials = openstack::Credentials {
            username: self.tenant.user_name(),
            password: password.0.clone(),
            user_domain: DomainRef::default(),
            project: project_id.map(|id| ProjectScope::Id(id.to_owned())),
        };
        let config = CloudConfig { credentials, ..admin };
        let text = config
            .to_clouds_yaml(self.tenant.namespace())
            .map_err(|error| Stop::Trouble(Failure::new("CredentialsUnusable", error)))?;
        let data = BTreeMap::from([(CLOUDS_YAML.to_owned(), ByteString(text.expose_secret().as_bytes().to_vec()))]);
        let labels = [(LABEL, "true"), (NAMESPACE, self.tenant.namespace()), ("app.kubernetes.io/managed-by", MANAGER)];
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            namespace: Some(self.site.namespace.clone()),
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
            ..ObjectMeta::default()
        };
        Ok(Secret { metadata, data: Some(data), ..Secret::default() })
    }
}

fn is_labelled(secret: &Secret, wanted: &Secret) -> bool {
    let has = |(key, value): (&String, &String)| {
        secret.metadata.labels.as_ref().and_then(|labels| labels.get(key)) == Some(value)
    };
    wanted.metadata.labels.iter().flatten().all(has)
}
