//! Keystone: the identity service.

use futures::{FutureExt, future::BoxFuture};
use jiff::Timestamp;
use kube::Client;
use kupenstack_api::cluster::{Fernet, OpenStackSpec, Own};
use kupenstack_openstack::{CloudConfig, Credentials, DomainRef, Interface, ProjectScope};
use serde_json::{Value, json};

use crate::{
    Error,
    catalogue::Part,
    credentials::Generated,
    exposure::Door,
    fernet::{self, Schedule},
    probe::{self, NotProven},
    service::{File, Format, Kind, Request, Scene, Secrets, Service},
    values::{ADMIN_PASSWORD, DB_PASSWORD},
};

/// Secret with the keys that tokens are made with.
const TOKEN_KEYS: &str = "keystone-fernet-keys";

pub(crate) struct Keystone;

fn fernet_of(request: &Request) -> Option<&Fernet> {
    match &request.own {
        Own::Keystone(fernet) => fernet.as_ref(),
        _ => None,
    }
}

impl Service for Keystone {
    fn kind(&self) -> Kind {
        Kind::Keystone
    }

    fn dependencies(&self) -> &'static [Kind] {
        &[Kind::MariaDB, Kind::Memcached]
    }

    fn credentials(&self) -> &'static [Generated] {
        &[
            Generated::Password(DB_PASSWORD),
            Generated::Password(ADMIN_PASSWORD),
            Generated::FernetKeys(TOKEN_KEYS),
            Generated::FernetKeys("keystone-credential-keys"),
        ]
    }

    fn images(&self) -> &'static [(&'static str, Part)] {
        &[
            ("keystone_api", Part::OpenStack),
            ("keystone_db_sync", Part::OpenStack),
            ("bootstrap", Part::OpenStack),
            ("db_init", Part::OpenStack),
            ("dep_check", Part::OpenStack),
        ]
    }

    fn components(&self) -> &'static [&'static str] {
        &["api"]
    }

    fn format(&self) -> Format {
        Format::Oslo
    }

    fn files(&self) -> &'static [File] {
        &[File::Policy, File::Logging]
    }

    fn values(&self, _request: &Request, _secrets: &Secrets) -> Value {
        // the key repositories are ours: they live longer than the release
        json!({"manifests": {"job_fernet_setup": false, "job_credential_setup": false}})
    }

    fn declared_by(&self, cloud: &OpenStackSpec) -> Value {
        json!(cloud.services.keystone)
    }

    fn doors(&self) -> &'static [Door] {
        &[Door { name: "keystone", component: "api", endpoint: ("identity", "/v3"), port: 5000, node_port: 30500 }]
    }

    fn endpoint(&self, namespace: &str) -> String {
        format!("http://keystone.{namespace}.svc:5000/v3")
    }

    fn admin_access(&self, request: &Request, secrets: &Secrets) -> Option<CloudConfig> {
        Some(CloudConfig {
            auth_url: self.endpoint(&request.namespace).parse().ok()?,
            credentials: Credentials {
                username: "admin".to_owned(),
                password: secrets.get(Kind::Keystone, ADMIN_PASSWORD)?.clone(),
                user_domain: DomainRef::default(),
                project: Some(ProjectScope::Name { name: "admin".to_owned(), domain: DomainRef::default() }),
            },
            region: Some(request.common.region.clone()),
            interface: Interface::Internal,
            ca_certificate: None,
        })
    }

    fn refusal(&self, request: &Request, values: &Value) -> Option<String> {
        Schedule::of(fernet_of(request), values).err()
    }

    fn upkeep<'a>(
        &'a self,
        client: &'a Client,
        request: &'a Request,
        values: &'a Value,
    ) -> BoxFuture<'a, Result<Option<(&'static str, String)>, Error>> {
        async move {
            // a schedule that can't be was refused before
            let Ok(schedule) = Schedule::of(fernet_of(request), values) else { return Ok(None) };
            let now = Timestamp::now();
            let done = fernet::rotate_when_due(client, &request.namespace, TOKEN_KEYS, &schedule, now).await?;
            Ok(done.map(|note| ("KeysRotated", note)))
        }
        .boxed()
    }

    fn prove<'a>(&'a self, scene: Scene<'a>) -> BoxFuture<'a, Result<(), NotProven>> {
        async move {
            probe::client(self.admin_access(scene.request, scene.secrets))?.authenticate().await?;
            Ok(())
        }
        .boxed()
    }
}
