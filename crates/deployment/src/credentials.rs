//! Credentials: generated once, kept in Secrets, never set anew.
//!
//! The Secrets carry no owner: they must live as long as the data they open, and data outlives the service's
//! object. A key that is missing from an existing Secret is added only when the Secret never had it; a value that
//! exists is never touched.

use std::collections::BTreeMap;

use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PostParams},
};
use kupenstack_openstack::CloudConfig;
use kupenstack_runtime::apply;
use rand::{Rng, distr::Alphanumeric};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use crate::{
    Error, fernet,
    jobs::SERVICE,
    removal::delete,
    service::{Kind, Secrets, Service},
};

/// Label on every Secret with a service's generated credentials; the value is the service.
const LABEL: &str = "kupenstack.io/credentials";
/// Secret with the administrator's access to the cloud.
const ADMIN: &str = "openstack-admin";
/// Annotation with the revision of a release made by hand whose passwords these are.
const TAKEN_OVER: &str = "kupenstack.io/taken-over";
/// Label on every Secret that holds a `clouds.yaml`.
const CLOUDS_LABEL: &str = "kupenstack.io/clouds-yaml";

/// What is generated for a service.
#[derive(Debug)]
pub(crate) enum Generated {
    /// A password under this key of the Secret `<service>-credentials`.
    Password(&'static str),
    /// A Secret of this name that is a fernet key repository: key `0` staged, key `1` primary.
    FernetKeys(&'static str),
}

/// Reads the credentials of the service and of those it depends on; what does not exist yet of its own is generated.
pub(crate) async fn ensure(client: &Client, namespace: &str, service: &dyn Service) -> Result<Secrets, Error> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let mut secrets = Secrets::default();
    let passwords: Vec<_> = service
        .credentials()
        .iter()
        .filter_map(|g| match g {
            Generated::Password(key) => Some(*key),
            Generated::FernetKeys(_) => None,
        })
        .collect();
    if !passwords.is_empty() {
        let data = ensure_passwords(&api, service.kind(), &passwords).await?;
        collect(&mut secrets, service.kind(), data);
    }
    for generated in service.credentials() {
        // looked at first, as even a create that is refused is a write to whoever counts them
        if let Generated::FernetKeys(name) = generated
            && api.get_metadata_opt(name).await?.is_none()
        {
            apply::create_if_absent(&api, &fernet_keys(name, service.kind())).await?;
        }
    }
    secrets.extend(of_dependencies(client, namespace, service).await?);
    Ok(secrets)
}

/// Reads the credentials of the services that this one depends on.
pub(crate) async fn of_dependencies(client: &Client, namespace: &str, service: &dyn Service) -> Result<Secrets, Error> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let mut secrets = Secrets::default();
    for kind in service.dependencies() {
        if let Some(secret) = api.get_opt(&name(*kind)).await? {
            collect(&mut secrets, *kind, secret.data.unwrap_or_default());
        }
    }
    Ok(secrets)
}

/// Writes the administrator's `clouds.yaml`, unless it is there as it should be.
pub(crate) async fn hand_out(
    client: &Client,
    namespace: &str,
    service: Kind,
    access: &CloudConfig,
) -> Result<(), Error> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let lost = |_| Error::Credential { secret: ADMIN.to_owned(), key: "clouds.yaml".to_owned() };
    let yaml = access.to_clouds_yaml("admin").map_err(lost)?;
    let wanted = ByteString(yaml.expose_secret().as_bytes().to_vec());
    let existing = api.get_opt(ADMIN).await?.unwrap_or_default();
    let labelled = existing.labels().get(SERVICE).map(String::as_str) == Some(service.object());
    if labelled && existing.data.unwrap_or_default().get("clouds.yaml") == Some(&wanted) {
        return Ok(());
    }
    let secret = Secret {
        metadata: metadata(ADMIN, [(CLOUDS_LABEL, "true"), (SERVICE, service.object())]),
        data: Some(BTreeMap::from([("clouds.yaml".to_owned(), wanted)])),
        ..Secret::default()
    };
    api.patch(ADMIN, &apply::params(), &Patch::Apply(&secret)).await?;
    Ok(())
}

/// The revision of a release made by hand that the service's passwords were taken from.
pub(crate) async fn taken_over(client: &Client, namespace: &str, kind: Kind) -> Result<Option<u32>, Error> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let secret = api.get_metadata_opt(&name(kind)).await?;
    Ok(secret.and_then(|s| s.annotations().get(TAKEN_OVER)?.parse().ok()))
}

/// Makes passwords that are in use already the service's own, also in place of others: those open nothing any more.
pub(crate) async fn take_over(
    client: &Client,
    namespace: &str,
    kind: Kind,
    passwords: &BTreeMap<&'static str, ByteString>,
    revision: u32,
) -> Result<(), Error> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let name = name(kind);
    let existing = api.get_metadata_opt(&name).await?;
    let patch = json!({
        "metadata": {
            "annotations": {TAKEN_OVER: revision.to_string()},
            "resourceVersion": existing.as_ref().and_then(ResourceExt::resource_version),
        },
        "data": passwords,
    });
    if existing.is_some() {
        api.patch(&name, &kube::api::PatchParams::default(), &Patch::Merge(&patch)).await?;
        return Ok(());
    }
    let mut secret = Secret {
        metadata: metadata(&name, [(LABEL, kind.object())]),
        data: Some(passwords.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect()),
        ..Secret::default()
    };
    secret.annotations_mut().insert(TAKEN_OVER.to_owned(), revision.to_string());
    api.create(&PostParams::default(), &secret).await?;
    Ok(())
}

/// Removes all credentials of a service.
pub(crate) async fn remove(client: &Client, namespace: &str, service: &dyn Service) -> Result<(), Error> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    delete(&api, &name(service.kind())).await?;
    for generated in service.credentials() {
        if let Generated::FernetKeys(name) = generated {
            delete(&api, name).await?;
        }
    }
    let handed_out =
        ListParams::default().labels(&format!("{CLOUDS_LABEL}=true,{SERVICE}={}", service.kind().object()));
    api.delete_collection(&DeleteParams::default(), &handed_out).await?;
    Ok(())
}

fn name(kind: Kind) -> String {
    format!("{}-credentials", kind.object())
}

fn metadata<const N: usize>(name: &str, labels: [(&str, &str); N]) -> ObjectMeta {
    let labels = labels.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    ObjectMeta { name: Some(name.to_owned()), labels: Some(labels), ..ObjectMeta::default() }
}

fn collect(secrets: &mut Secrets, kind: Kind, data: BTreeMap<String, ByteString>) {
    for (key, value) in data {
        if let Ok(text) = String::from_utf8(value.0) {
            secrets.insert(kind, &key, SecretString::from(text));
        }
    }
}

async fn ensure_passwords(
    api: &Api<Secret>,
    kind: Kind,
    keys: &[&'static str],
) -> Result<BTreeMap<String, ByteString>, Error> {
    let name = name(kind);
    let fresh = || keys.iter().map(|k| ((*k).to_owned(), ByteString(password().into_bytes())));
    let Some(existing) = api.get_opt(&name).await? else {
        let secret = Secret {
            metadata: metadata(&name, [(LABEL, kind.object())]),
            data: Some(fresh().collect()),
            ..Secret::default()
        };
        // a create, not an apply: of two writers one must lose rather than change what the other generated
        let made = api.create(&PostParams::default(), &secret).await?;
        return Ok(made.data.unwrap_or_default());
    };
    let mut data = existing.data.unwrap_or_default();
    let missing: BTreeMap<_, _> = fresh().filter(|(k, _)| !data.contains_key(k)).collect();
    if !missing.is_empty() {
        let patch = json!({"metadata": {"resourceVersion": existing.metadata.resource_version}, "data": missing});
        api.patch(&name, &kube::api::PatchParams::default(), &Patch::Merge(&patch)).await?;
        data.extend(missing);
    }
    if let Some(key) = keys.iter().find(|k| data.get(**k).is_none_or(|v| v.0.is_empty())) {
        return Err(Error::Credential { secret: name, key: (*key).to_owned() });
    }
    Ok(data)
}

/// 190 bits of randomness in characters that need no quoting anywhere.
fn password() -> String {
    rand::rng().sample_iter(Alphanumeric).take(32).map(char::from).collect()
}

fn fernet_keys(name: &str, kind: Kind) -> Secret {
    let key = || ByteString(fernet::key());
    Secret {
        metadata: metadata(name, [(LABEL, kind.object())]),
        data: Some(BTreeMap::from([("0".to_owned(), key()), ("1".to_owned(), key())])),
        ..Secret::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_long_and_different() {
        let (a, b) = (password(), password());
        assert_ne!(a, b);
        assert!(a.len() == 32 && a.chars().all(|c| c.is_ascii_alphanumeric()), "{}", a.len());
    }

    #[test]
    fn a_fernet_key_has_44_characters() {
        let data = fernet_keys("k", Kind::Keystone).data.unwrap();
        assert!(data.values().all(|k| k.0.len() == 44));
        assert_ne!(data["0"], data["1"]);
    }
}
