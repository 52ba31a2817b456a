//! An application credential of the namespace's user, on request, in a Secret for the namespace's programs.
//!
//! Its name and what it logs in with are in the Secret before Keystone is asked to make it, so that a crash or a lost
//! answer neither loses it nor leaves another one behind. One that takes the place of another is made first, and the
//! former ends when programs have had time to read the Secret again.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, Preconditions},
};
use kupenstack_api::{MANAGER, resources::CREDENTIAL_SECRET};
use kupenstack_core::{Outcome, reason};
use kupenstack_openstack::{ApplicationCredential, Client, CloudConfig, NewApplicationCredential};
use kupenstack_runtime::{Failure, apply};
use secrecy::{ExposeSecret, SecretString};

use super::{credentials::random_text, tenant::ROLES};
use crate::{
    cloud::{CLOUDS_YAML, Cloud},
    stop::Stop,
};

/// A credential is replaced when it has been in use for so long.
const ROTATED_AFTER: Duration = Duration::from_hours(30 * 24);
/// A former one ends so long after its successor was made.
const GRACE: Duration = Duration::from_hours(24);
/// Every one ends by itself so long after it was made, should nobody be there to replace it.
const LIFE: Duration = Duration::from_hours(37 * 24);
/// Name of the cloud in the `clouds.yaml`, the one that tools take when none is named.
const CLOUD: &str = "openstack";
/// The Secret's type, the one that we may write.
const TYPE: &str = "Opaque";
/// Field manager of an empty Secret. Applied by the manager of its content, an empty one would take that away.
const CLAIMER: &str = "kupenstack-claim";
/// Label of what we made.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Annotation with the name of a credential that is being made.
const NEXT: &str = "kupenstack.io/next-credential";
/// Key of what a credential that is being made logs in with.
const NEXT_SECRET: &str = "next";
/// Keys that tools read as environment variables.
const ID: &str = "OS_APPLICATION_CREDENTIAL_ID";
const SECRET: &str = "OS_APPLICATION_CREDENTIAL_SECRET";
const SECRET_LENGTH: usize = 43;

/// The credential of one namespace.
pub(super) struct Handout<'a> {
    api: Api<Secret>,
    namespace: &'a str,
    /// Beginning of the names of our credentials.
    prefix: String,
    client: Client,
    user: &'a str,
    config: CloudConfig,
}

/// A credential with what it logs in with.
#[derive(Clone)]
struct Login {
    id: String,
    secret: SecretString,
}

/// A credential that is being made.
struct Next {
    name: String,
    secret: SecretString,
}

/// What the Secret holds.
#[derive(Default)]
struct Held {
    login: Option<Login>,
    next: Option<Next>,
}

impl<'a> Handout<'a> {
    pub(super) fn new(
        cloud: &Arc<Cloud>,
        namespace: &'a str,
        uid: &str,
        client: Client,
        user: &'a str,
        config: CloudConfig,
    ) -> Self {
        let api = Api::namespaced(cloud.kubernetes(), namespace);
        Self { api, namespace, prefix: format!("kupenstack-{uid}-"), client, user, config }
    }

    /// Makes sure that the Secret holds a credential that is neither gone nor due to be replaced.
    pub(super) async fn hand_out(&self, now: Timestamp) -> Result<(), Stop> {
        let secret = own(&self.api, self.namespace).await?;
        let mut held = secret.as_ref().map(Held::of).unwrap_or_default();
        let ours = self.credentials().await?;
        let in_use = match &held.login {
            Some(login) => self.find(&ours, &login.id).await?,
            None => None,
        };
        if let (Some(login), Some(current), None) = (&held.login, in_use, &held.next)
            && !is_due(current, now)
        {
            let wanted = self.secret(Some(login), None)?;
            if let Some(secret) = secret.filter(|secret| secret.data != wanted.data) {
                self.write(&secret, wanted).await?;
            }
            return self.end_former(&ours, current, now).await;
        }
        let (secret, next) = match (secret, held.next.take()) {
            (Some(secret), Some(next)) => (secret, next),
            (secret, _) => self.begin(secret, held.login.as_ref()).await?,
        };
        let made = match ours.into_iter().find(|credential| credential.name == next.name) {
            Some(made) => made,
            None => self.make(&next, now).await?,
        };
        let done = self.secret(Some(&Login { id: made.id, secret: next.secret }), None)?;
        self.write(&secret, done).await.map(drop)
    }

    /// Ends every credential that was handed out, and removes the Secret. They are looked for twice: a server behind the
    /// others may not know yet of one that was made a moment ago.
    pub(super) async fn withdraw(&self) -> Result<(), Stop> {
        for credential in self.credentials().await? {
            self.client.identity().delete_application_credential(self.user, &credential.id).await?;
        }
        if let Some(left) = self.credentials().await?.first() {
            let message = format!("waiting until application credential {} is gone", left.name);
            return Err(Outcome::waiting(reason::DELETING, message).into());
        }
        remove(&self.api).await?;
        Ok(())
    }

    /// Writes down what is going to be made. What is in use stays so meanwhile.
    async fn begin(&self, secret: Option<Secret>, in_use: Option<&Login>) -> Result<(Secret, Next), Stop> {
        let secret = match secret {
            Some(secret) => secret,
            None => self.claim().await?,
        };
        let name = format!("{}{}", self.prefix, random_text(8));
        let next = Next { name, secret: random_text(SECRET_LENGTH).into() };
        let begun = self.write(&secret, self.secret(in_use, Some(&next))?).await?;
        Ok((begun, next))
    }

    /// Makes a Secret that tells no more than whose it is, since what it is to hold can be written only once into one
    /// that is there. It is applied, for a creation is nothing that could be allowed for a single name.
    async fn claim(&self) -> Result<Secret, Stop> {
        let claim = Secret { metadata: self.metadata(), type_: Some(TYPE.to_owned()), ..Secret::default() };
        let secret = self.api.patch(CREDENTIAL_SECRET, &PatchParams::apply(CLAIMER), &Patch::Apply(&claim)).await?;
        if secret.data.as_ref().is_some_and(|data| !data.is_empty()) {
            return Err(Failure::new("KubernetesConflict", "the Secret was made by another hand meanwhile").into());
        }
        Ok(secret)
    }

    /// Writes the Secret, if it still is as it was read: of two operators that take themselves for the only one, one
    /// makes a credential.
    async fn write(&self, read: &Secret, mut secret: Secret) -> Result<Secret, Stop> {
        (secret.metadata.uid, secret.metadata.resource_version) = (read.uid(), read.resource_version());
        Ok(apply::apply(&self.api, CREDENTIAL_SECRET, &secret).await?)
    }

    async fn make(&self, next: &Next, now: Timestamp) -> Result<ApplicationCredential, Stop> {
        let new = NewApplicationCredential {
            name: next.name.clone(),
            description: format!("for programs in Kubernetes namespace {}", self.namespace),
            secret: next.secret.clone(),
            roles: ROLES.map(ToOwned::to_owned).to_vec(),
            expires_at: now + SignedDuration::try_from(LIFE).unwrap_or(SignedDuration::MAX),
        };
        Ok(self.client.identity().create_application_credential(self.user, &new).await?)
    }

    async fn credentials(&self) -> Result<Vec<ApplicationCredential>, Stop> {
        let mut all = self.client.identity().list_application_credentials(self.user).await?;
        all.retain(|credential| self.is_ours(credential));
        Ok(all)
    }

    /// A credential among those that were listed. One that is missing there and exists says that the list is one of
    /// before, from which nothing follows.
    async fn find<'b>(
        &self,
        listed: &'b [ApplicationCredential],
        id: &str,
    ) -> Result<Option<&'b ApplicationCredential>, Stop> {
        if let Some(found) = listed.iter().find(|credential| credential.id == id) {
            return Ok(Some(found));
        }
        let single = self.client.identity().get_application_credential(self.user, id).await?;
        if single.is_some_and(|credential| self.is_ours(&credential)) {
            let message = format!("Keystone's list of application credentials lacks {id}, which there is");
            return Err(Failure::new("ListOutdated", message).into());
        }
        Ok(None)
    }

    fn is_ours(&self, credential: &ApplicationCredential) -> bool {
        credential.name.starts_with(&self.prefix)
    }

    /// Ends the ones before, when their time is over.
    async fn end_former(
        &self,
        ours: &[ApplicationCredential],
        current: &ApplicationCredential,
        now: Timestamp,
    ) -> Result<(), Stop> {
        if age(current, now).is_some_and(|age| age < GRACE) {
            return Ok(());
        }
        for former in ours.iter().filter(|credential| credential.id != current.id) {
            self.client.identity().delete_application_credential(self.user, &former.id).await?;
        }
        Ok(())
    }

    fn secret(&self, login: Option<&Login>, next: Option<&Next>) -> Result<Secret, Stop> {
        let mut data = BTreeMap::new();
        let mut add = |key: &str, value: &str| data.insert(key.to_owned(), ByteString(value.as_bytes().to_vec()));
        if let Some(login) = login {
            let yaml = self
                .config
                .to_clouds_yaml_with(&login.id, &login.secret, CLOUD)
                .map_err(|error| Stop::Trouble(Failure::new("CredentialsUnusable", error)))?;
            add(CLOUDS_YAML, yaml.expose_secret());
            add("OS_AUTH_TYPE", "v3applicationcredential");
            add("OS_AUTH_URL", self.config.auth_url.as_str());
            add("OS_INTERFACE", &self.config.interface.to_string());
            if let Some(region) = &self.config.region {
                add("OS_REGION_NAME", region);
            }
            add(ID, &login.id);
            add(SECRET, login.secret.expose_secret());
        }
        if let Some(next) = next {
            add(NEXT_SECRET, next.secret.expose_secret());
        }
        let annotations = next.map(|next| [(NEXT.to_owned(), next.name.clone())].into());
        let metadata = ObjectMeta { annotations, ..self.metadata() };
        Ok(Secret { metadata, data: Some(data), type_: Some(TYPE.to_owned()), ..Secret::default() })
    }

    fn metadata(&self) -> ObjectMeta {
        ObjectMeta {
            name: Some(CREDENTIAL_SECRET.to_owned()),
            namespace: Some(self.namespace.to_owned()),
            labels: Some([(MANAGED_BY.to_owned(), MANAGER.to_owned())].into()),
            ..ObjectMeta::default()
        }
    }
}

impl Held {
    fn of(secret: &Secret) -> Self {
        let text = |key: &str| {
            let bytes = &secret.data.as_ref()?.get(key)?.0;
            str::from_utf8(bytes).ok().map(ToOwned::to_owned)
        };
        let login = text(ID).zip(text(SECRET)).map(|(id, secret)| Login { id, secret: secret.into() });
        let name = secret.annotations().get(NEXT).cloned();
        let next = name.zip(text(NEXT_SECRET)).map(|(name, secret)| Next { name, secret: secret.into() });
        Self { login, next }
    }
}

/// Removes a namespace's Secret when there is no cloud any more that its credential could log in to.
pub(super) async fn remove(api: &Api<Secret>) -> Result<(), Failure> {
    let Some(secret) = api.get_opt(CREDENTIAL_SECRET).await?.filter(is_ours) else { return Ok(()) };
    let preconditions = Preconditions { uid: secret.uid(), resource_version: None };
    let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match api.delete(CREDENTIAL_SECRET, &parameters).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        result => Ok(result.map(drop)?),
    }
}

/// The Secret, if there is one; another's of its name is left alone.
async fn own(api: &Api<Secret>, namespace: &str) -> Result<Option<Secret>, Stop> {
    let secret = api.get_opt(CREDENTIAL_SECRET).await?;
    if secret.as_ref().is_some_and(|secret| !is_ours(secret)) {
        let message = format!(
            "no application credential: Secret {CREDENTIAL_SECRET} in namespace {namespace} is not ours; rename or delete it"
        );
        return Err(Outcome::blocked(reason::NAME_CLASH, message).into());
    }
    Ok(secret)
}

/// Whether we made it.
pub(super) fn is_ours(secret: &impl ResourceExt) -> bool {
    secret.labels().get(MANAGED_BY).is_some_and(|manager| manager == MANAGER)
}

/// How long ago a credential was made, which Keystone tells only by when it ends.
fn age(credential: &ApplicationCredential, now: Timestamp) -> Option<Duration> {
    let left = credential.expires_at?.duration_since(now);
    let life = SignedDuration::try_from(LIFE).ok()?;
    Some(Duration::try_from(life - left).unwrap_or_default())
}

fn is_due(credential: &ApplicationCredential, now: Timestamp) -> bool {
    age(credential, now).is_none_or(|age| age >= ROTATED_AFTER)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0, false)]
    #[case(29, false)]
    #[case(30, true)]
    #[case(40, true)]
    fn a_credential_is_replaced_well_before_it_ends(#[case] days: i64, #[case] due: bool) {
        let now: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
        let expires_at = now - SignedDuration::from_hours(24 * days) + SignedDuration::try_from(LIFE).unwrap();
        let credential = ApplicationCredential {
            id: "1".to_owned(),
            name: "n".to_owned(),
            project_id: None,
            expires_at: Some(expires_at),
        };
        assert_eq!(is_due(&credential, now), due);
    }
}
