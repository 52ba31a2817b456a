//! `KeyPair`: a key pair in Nova, of the namespace's user and of the object's name.

mod key;
mod secret;

use std::{sync::Arc, time::Duration};

use futures::FutureExt;
use kube::{Resource, ResourceExt};
use kupenstack_api::resources::{KeyPair, KeyPairStatus};
use kupenstack_core::{Outcome, reason};
use kupenstack_openstack::{self as openstack, Error, ErrorKind};

use self::key::PublicKey;
use crate::{
    actuator::{Actuator, Progress, Step, Target},
    cloud::Cloud,
    observe::Listed,
    projects,
    realm::place_of,
    stop::Stop,
};

/// Keeps key pairs in Nova. One is ours if it has the object's name and its key: it can have no mark, and nothing of it can
/// be another's.
pub(crate) struct KeyPairActuator {
    cloud: Arc<Cloud>,
}

/// Whose key pairs are meant, for the client that asks.
enum Owner {
    /// Its own user's.
    Itself,
    /// Those of the user of this identifier.
    Other(String),
}

impl Owner {
    fn id(&self) -> Option<&str> {
        match self {
            Self::Itself => None,
            Self::Other(id) => Some(id),
        }
    }
}

impl KeyPairActuator {
    /// Keeps the key pairs of a cloud's namespaces.
    pub(crate) fn new(cloud: &Arc<Cloud>) -> Self {
        Self { cloud: Arc::clone(cloud) }
    }

    /// Whose key pair the object stands for. The administrator has ones of its own, and those of a user who is gone are nobody's.
    async fn owner(&self, target: &Target<KeyPair>) -> Result<Option<Owner>, Stop> {
        if target.owner.is_some() {
            return Ok(Some(Owner::Itself));
        }
        let Some(namespace) = self.cloud.namespace(&place_of(&*target.object)) else { return Ok(None) };
        Ok(projects::user_of(&target.client, &namespace).await?.map(|user| Owner::Other(user.id)))
    }

    /// The object's public key, if there is one yet.
    async fn line(&self, object: &KeyPair) -> Result<Option<String>, Stop> {
        let recorded = object.status.as_ref().and_then(|status| status.public_key.as_ref());
        match (object.spec.public_key.as_ref().or(recorded), &object.spec.private_key_secret) {
            (Some(line), _) => Ok(Some(line.clone())),
            (None, Some(name)) => match secret::public_key(&self.cloud.kubernetes(), object, name).await {
                // what the operator was never let read has come to nothing
                Err(Stop::Outcome(_)) if object.meta().deletion_timestamp.is_some() => Ok(None),
                read => read,
            },
            (None, None) => Ok(None),
        }
    }

    async fn find(&self, target: &Target<KeyPair>) -> Result<Option<openstack::KeyPair>, Stop> {
        let Some(line) = self.line(&target.object).await? else { return Ok(None) };
        let Some(owner) = self.owner(target).await? else { return Ok(None) };
        let found = target.client.compute().get_key_pair(&target.object.name_any(), owner.id()).await?;
        Ok(found.filter(|found| is_key(&line, found)))
    }

    async fn remove(&self, target: &Target<KeyPair>, name: &str) -> Result<(), Stop> {
        let Some(owner) = self.owner(target).await? else { return Ok(()) };
        Ok(target.client.compute().delete_key_pair(name, owner.id()).await.map(drop)?)
    }

    async fn make(&self, target: &Target<KeyPair>, progress: &dyn Progress) -> Result<openstack::KeyPair, Stop> {
        let line = match (self.line(&target.object).await?, &target.object.spec.private_key_secret) {
            (None, Some(name)) => secret::make(&self.cloud.kubernetes(), &target.object, name).await?,
            (line, _) => line.unwrap_or_default(),
        };
        PublicKey::read(&line)
            .map_err(|fault| Outcome::blocked(reason::INVALID_SPEC, format!("spec.publicKey: {fault}")))?;
        let name = target.object.name_any();
        let key_pair = match target.client.compute().create_key_pair(&name, line.trim_end()).await {
            Err(refusal) if refusal.kind() == ErrorKind::Conflict => taken(target, &line, refusal).await?,
            made => made?,
        };
        progress.created(&key_pair.name).await?;
        Ok(key_pair)
    }
}

/// What is wrong with an object for good.
pub(crate) fn refusal(object: &KeyPair) -> Option<String> {
    let fault = PublicKey::read(object.spec.public_key.as_ref()?).err()?;
    Some(format!("spec.publicKey: {fault}"))
}

fn is_key(line: &str, found: &openstack::KeyPair) -> bool {
    PublicKey::read(line).is_ok_and(|key| PublicKey::read(&found.public_key).is_ok_and(|is| is == key))
}

/// What is in the way: an earlier request of ours that was carried out late, or another key of the name.
async fn taken(target: &Target<KeyPair>, line: &str, refusal: Error) -> Result<openstack::KeyPair, Stop> {
    let name = target.object.name_any();
    match target.client.compute().get_key_pair(&name, None).await? {
        Some(found) if is_key(line, &found) => Ok(found),
        Some(foreign) => {
            let message = format!(
                "the namespace's user has a key pair named {name} in Nova with another key ({}): give this object another \
                 name, or delete that key pair",
                foreign.fingerprint
            );
            Err(Outcome::blocked(reason::NAME_CLASH, message).into())
        }
        None => Err(refusal.into()),
    }
}

impl Actuator for KeyPairActuator {
    type Kind = KeyPair;
    type Resource = openstack::KeyPair;

    const NAME: &'static str = "keypair";
    const CONCURRENCY: u16 = 8;

    fn observe<'a>(&'a self, target: &'a Target<KeyPair>) -> Step<'a, Option<openstack::KeyPair>> {
        self.find(target).boxed()
    }

    fn create<'a>(&'a self, target: &'a Target<KeyPair>, progress: &'a dyn Progress) -> Step<'a, openstack::KeyPair> {
        self.make(target, progress).boxed()
    }

    /// Nova can't change any of it.
    fn updates<'a>(&'a self, _: &'a Target<KeyPair>, _: &'a openstack::KeyPair) -> Vec<Step<'a, ()>> {
        Vec::new()
    }

    fn delete<'a>(&'a self, target: &'a Target<KeyPair>, key_pair: &'a openstack::KeyPair) -> Step<'a, ()> {
        self.remove(target, &key_pair.name).boxed()
    }

    fn report(&self, _: &Target<KeyPair>, key_pair: &openstack::KeyPair, status: &mut KeyPairStatus) -> Outcome {
        let key = PublicKey::read(&key_pair.public_key).ok();
        status.type_ = key.as_ref().map(PublicKey::type_name);
        status.fingerprint = key.as_ref().map(PublicKey::fingerprint);
        status.public_key = Some(key_pair.public_key.clone());
        Outcome::ready("known to Nova")
    }
}

impl Listed for openstack::KeyPair {
    const NOUN: &'static str = "Nova key pair";
    const SERVICES: &'static [&'static str] = &["Keystone", "Nova"];
    /// Nova lists those of one user. A key pair can't be changed, and VMs that let it in do so without it.
    const TRUSTED: Option<Duration> = Some(Duration::from_hours(12));

    fn id(&self) -> &str {
        &self.name
    }

    fn mark(&self) -> Option<&str> {
        None
    }

    /// Of a user, whatever the project.
    fn is_in(&self, _: &str) -> bool {
        true
    }
}
