//! Objects that an object makes for itself, of other kinds of ours: they belong to it and go with it, unless it leaves its own
//! resource in OpenStack, which still needs them. They are then nobody's, until one of its name has them again.
//!
//! Each carries what it was made as, so that the directory tells without a request whether it is there, whose it is, and
//! whether it still is what is wanted. What people change of it in between is left as it is, as with the pods of a
//! Deployment.

use std::{fmt::Debug, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, Patch, Preconditions},
    core::{ApiResource, DynamicObject, ObjectMeta},
};
use kupenstack_api::FINALIZER;
use kupenstack_core::{Outcome, hash, reason};
use kupenstack_runtime::{Failure, apply};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    actuator::Kind,
    needs::Key,
    realm::{Realm, place_of},
    stop::Stop,
};

/// Annotation on such an object: the fingerprint of what it was made as.
const MADE_AS: &str = "kupenstack.io/made-as";

/// Where an object tells whose it is.
const OWNERS: &str = "/metadata/ownerReferences";

/// An object that another wants to have.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) key: Key,
    resource: ApiResource,
    spec: Value,
}

/// What is known of an object that is another's part, or was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owned {
    /// UID of the object that it belongs to; none of one that was released.
    pub(crate) owner: Option<Arc<str>>,
    uid: Arc<str>,
    made_as: Arc<str>,
}

impl Owned {
    /// What the metadata of an object tells, if it is any object's part.
    pub(crate) fn of(meta: &ObjectMeta) -> Option<Self> {
        let made_as = meta.annotations.as_ref()?.get(MADE_AS)?.as_str().into();
        let owner = meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
        Some(Self { owner: owner.map(|owner| owner.uid.as_str().into()), uid: meta.uid.as_deref()?.into(), made_as })
    }
}

/// What there is under the name of a part.
#[derive(Clone, Debug)]
pub(crate) enum Standing {
    Absent,
    /// On its way out, whosever it is.
    Leaving,
    Ours(Owned),
    /// An object of the same name had it, and left it there.
    Released(Owned),
    Foreign,
}

/// What has to be done about parts.
#[derive(Debug)]
pub(crate) enum Chore {
    Make(Part),
    Change(Part, Owned),
    /// Have what was left there.
    TakeBack(Part, Owned),
    Remove(Key, ApiResource, Owned),
    /// Leave it there, as an object of its own.
    Release(Key, ApiResource, Owned),
}

impl Part {
    /// That `owner` wants an object of kind `P` beside it.
    pub(crate) fn of<P: Kind>(owner: &impl ResourceExt, name: &str, spec: &impl Serialize) -> Result<Self, Failure> {
        let place = <<P as Resource>::Scope as Realm>::beside(&place_of(owner)).into();
        let spec = serde_json::to_value(spec).map_err(|error| Failure::new("Internal", error.to_string()))?;
        Ok(Self { key: Key { kind: P::KIND, place, name: name.into() }, resource: ApiResource::erase::<P>(&()), spec })
    }

    fn made_as(&self) -> String {
        hash::short(&hash::of(&self.spec)).to_owned()
    }

    /// What has to be done for it.
    pub(crate) fn chore(self, standing: Standing) -> Result<Option<Chore>, Outcome> {
        match standing {
            Standing::Absent => Ok(Some(Chore::Make(self))),
            Standing::Leaving => Ok(None),
            Standing::Ours(owned) if *owned.made_as == *self.made_as() => Ok(None),
            Standing::Ours(owned) => Ok(Some(Chore::Change(self, owned))),
            Standing::Released(owned) => Ok(Some(Chore::TakeBack(self, owned))),
            Standing::Foreign => {
                let message = format!(
                    "{} is in the way: it was not made for this object. Delete it, or give this object another name",
                    self.key
                );
                Err(Outcome::blocked(reason::NAME_CLASH, message))
            }
        }
    }
}

impl Chore {
    /// Does it, for `owner`. What has changed meanwhile is seen by the next pass.
    pub(crate) async fn carry_out<K: Kind>(&self, kubernetes: kube::Client, owner: &K) -> Result<(), Stop> {
        match self {
            Self::Make(wanted) => {
                let all = objects(kubernetes, &wanted.key, &wanted.resource);
                apply::create_if_absent(&all, &wanted.object(owner)?).await?;
            }
            Self::Change(wanted, known) => {
                let all = objects(kubernetes, &wanted.key, &wanted.resource);
                all.patch(&wanted.key.name, &apply::patch_params(), &known.patch(wanted.change())?).await?;
            }
            Self::TakeBack(wanted, known) => {
                let all = objects(kubernetes, &wanted.key, &wanted.resource);
                let owner = json!({"op": "add", "path": OWNERS, "value": [reference(owner)?]});
                let change = wanted.change().into_iter().chain([owner]).collect();
                all.patch(&wanted.key.name, &apply::patch_params(), &known.patch(change)?).await?;
            }
            Self::Remove(key, resource, known) => {
                let preconditions = Preconditions { uid: Some(known.uid.to_string()), resource_version: None };
                let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
                let all = objects(kubernetes, key, resource);
                unless_gone(all.delete(&key.name, &params).await.map(drop))?;
            }
            Self::Release(key, resource, known) => {
                // it is made with one owner, which the collector of garbage would follow
                let patch = known.patch(vec![json!({"op": "remove", "path": OWNERS})])?;
                let all = objects(kubernetes, key, resource);
                unless_gone(all.patch(&key.name, &apply::patch_params(), &patch).await.map(drop))?;
            }
        }
        Ok(())
    }

    /// What is done instead when the owner goes and leaves what it had.
    pub(crate) fn sparing(self) -> Self {
        match self {
            Self::Remove(key, resource, known) => Self::Release(key, resource, known),
            other => other,
        }
    }
}

impl Owned {
    /// These changes, of this object and no other that has its name by now.
    fn patch(&self, changes: Vec<Value>) -> Result<Patch<()>, Failure> {
        let same = json!({"op": "test", "path": "/metadata/uid", "value": &*self.uid});
        let patch = serde_json::from_value([same].into_iter().chain(changes).collect());
        Ok(Patch::Json(patch.map_err(|error| Failure::new("Internal", error.to_string()))?))
    }
}

impl Part {
    /// What makes an object what this one is to be.
    fn change(&self) -> Vec<Value> {
        let made_as = format!("/metadata/annotations/{}", MADE_AS.replace('/', "~1"));
        vec![
            json!({"op": "replace", "path": "/spec", "value": self.spec}),
            json!({"op": "add", "path": made_as, "value": self.made_as()}),
        ]
    }

    fn object<K: Kind>(&self, owner: &K) -> Result<DynamicObject, Failure> {
        let mut object = DynamicObject::new(&self.key.name, &self.resource).data(json!({"spec": self.spec}));
        object.metadata.owner_references = Some(vec![reference(owner)?]);
        // it would be put on it before anything else, by a write of its own
        object.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
        object.metadata.annotations = Some([(MADE_AS.to_owned(), self.made_as())].into());
        Ok(object)
    }
}

/// How `owner` is named on its parts.
fn reference<K: Kind>(owner: &K) -> Result<OwnerReference, Failure> {
    owner.controller_owner_ref(&()).ok_or_else(|| Failure::new("Internal", "an object without a UID"))
}

fn unless_gone(result: Result<(), kube::Error>) -> Result<(), kube::Error> {
    match result {
        Err(kube::Error::Api(error)) if error.is_not_found() => Ok(()),
        result => result,
    }
}

fn objects(client: kube::Client, key: &Key, resource: &ApiResource) -> Api<DynamicObject> {
    if key.place.is_empty() {
        Api::all_with(client, resource)
    } else {
        Api::namespaced_with(client, &key.place, resource)
    }
}
