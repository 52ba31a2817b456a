//! The Secret with the private key that is made for an object. It belongs to the object and goes with it.

use std::collections::BTreeMap;

use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{Api, Resource, ResourceExt, api::PostParams, core::ObjectMeta};
use kupenstack_api::{MANAGER, resources::KeyPair};
use kupenstack_core::{Outcome, reason};
use secrecy::ExposeSecret;

use super::key;
use crate::{own_secrets, stop::Stop};

/// Label with who made it.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// What the keys of a Secret of type `kubernetes.io/ssh-auth` are called.
const PRIVATE: &str = "ssh-privatekey";
const PUBLIC: &str = "ssh-publickey";

/// The public key in the Secret of this name, if that was made for the object.
pub(super) async fn public_key(
    kubernetes: &kube::Client,
    object: &KeyPair,
    name: &str,
) -> Result<Option<String>, Stop> {
    let secret = api(kubernetes, object).get_opt(name).await.map_err(|error| own_secrets::refused(error, name))?;
    let Some(secret) = secret else { return Ok(None) };
    let is_ours = secret.owner_references().iter().any(|owner| Some(&owner.uid) == object.uid().as_ref());
    let public = secret.data.as_ref().and_then(|data| str::from_utf8(&data.get(PUBLIC)?.0).ok());
    Ok(public.filter(|_| is_ours).map(str::to_owned))
}

/// Makes a key and its Secret, and gives the public half.
pub(super) async fn make(kubernetes: &kube::Client, object: &KeyPair, name: &str) -> Result<String, Stop> {
    let pair = key::generate(&object.name_any())?;
    let data = [(PRIVATE, pair.private.expose_secret()), (PUBLIC, pair.public.as_str())];
    let data: BTreeMap<_, _> =
        data.into_iter().map(|(key, text)| (key.to_owned(), ByteString(text.as_bytes().to_vec()))).collect();
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        labels: Some([(MANAGED_BY.to_owned(), MANAGER.to_owned())].into()),
        owner_references: Some(object.controller_owner_ref(&()).into_iter().collect()),
        ..ObjectMeta::default()
    };
    let secret = Secret {
        metadata,
        data: Some(data),
        immutable: Some(true),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    };
    match api(kubernetes, object).create(&PostParams::default(), &secret).await {
        Ok(_) => return Ok(pair.public),
        Err(kube::Error::Api(error)) if error.is_already_exists() => {}
        Err(error) => return Err(own_secrets::refused(error, name)),
    }
    // perhaps by an earlier request, whose answer was lost
    let clash = || {
        let message = format!(
            "spec.privateKeySecret: Secret {name} is there and was not made for this object: delete it, or create another \
             KeyPair with another name for it"
        );
        Outcome::blocked(reason::NAME_CLASH, message)
    };
    Ok(public_key(kubernetes, object, name).await?.ok_or_else(clash)?)
}

fn api(kubernetes: &kube::Client, object: &KeyPair) -> Api<Secret> {
    Api::namespaced(kubernetes.clone(), &object.namespace().unwrap_or_default())
}
