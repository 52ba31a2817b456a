//! What a resource kind has to tell the generic flow.

use std::{fmt::Debug, sync::Arc, time::Duration};

use futures::{
    FutureExt,
    future::{BoxFuture, ready},
};
use kube::Resource;
use kupenstack_api::resources::ResourceKind;
use kupenstack_core::Outcome;
use kupenstack_openstack::Client;
use kupenstack_runtime::{Failure, Told};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    cloud::Site,
    needs::{Key, Need, Needs},
    observe::Listed,
    parts::Part,
    queue::Call,
    realm::Realm,
    stop::Stop,
};

/// A resource kind of ours. Its scope says whose its resources are.
pub(crate) trait Kind:
    ResourceKind
    + Resource<DynamicType = (), Scope: Realm>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> Kind for K where
    K: ResourceKind
        + Resource<DynamicType = (), Scope: Realm>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// By then a request that was lost was carried out, if it ever is.
pub(crate) const LATE: Duration = Duration::from_mins(1);

/// A request or several to OpenStack.
pub(crate) type Step<'a, T> = BoxFuture<'a, Result<T, Stop>>;

/// An object and the place where its resource is to be.
pub(crate) struct Target<K> {
    /// The object as it was when the pass began.
    pub(crate) object: Arc<K>,
    /// The identifier recorded in its status.
    pub(crate) recorded: Option<String>,
    /// Our mark on what belongs to the object.
    pub(crate) mark: String,
    /// The first of the identifiers that are the object's own, for APIs that let the caller choose.
    pub(crate) own_id: String,
    /// The cloud.
    pub(crate) site: Site,
    /// Who makes and keeps the resource; the administrator to delete what has lost its maker.
    pub(crate) client: Client,
    /// The project that our resource belongs to. Unknown where the administrator deletes what has lost its maker: the
    /// client may then do anything to anything, and only the mark tells what is ours.
    pub(crate) owner: Option<String>,
    /// The objects that this one needs.
    pub(crate) needs: Needs,
    /// Whether nothing can have been made for the object before this pass.
    pub(crate) is_new: bool,
    /// Our mark on what the objects of its place share; none if it shares nothing, or its place is not known.
    pub(crate) place_mark: Option<String>,
    /// How many others need what it shares.
    pub(crate) sharers: usize,
}

/// Makes one kind true. The flow calls these; none of them may know what comes before or after.
pub(crate) trait Actuator: Send + Sync + 'static {
    /// The kind of object.
    type Kind: Kind;
    /// What stands for it in OpenStack.
    type Resource: Listed;

    /// Name of the controller.
    const NAME: &'static str;
    /// How many objects are worked on at once.
    const CONCURRENCY: u16;
    /// Kinds of the objects that others of this kind can need.
    const NEEDS: &'static [&'static str] = &[];
    /// Kinds of the objects that go first when they are being deleted too: those of the same place that need something which
    /// this one needs. They do not say that they need it, and OpenStack refuses to delete it before them.
    const GOES_AFTER: &'static [&'static str] = &[];
    /// Whether the last list says enough of a resource to delete it: its identifier is never given to another, and OpenStack
    /// refuses to delete it while others use it.
    const DELETES_AS_LISTED: bool = false;
    /// Whether a resource, which carries our mark, is there for a while after OpenStack has agreed to delete it. The next list
    /// shows when it is gone.
    const LINGERS: bool = false;

    /// The objects that this one needs. They are there and ready before [`create`](Self::create) is called, but for those
    /// that are needed in the end: of these, [`updates`](Self::updates) does what it can, and is called again when they
    /// are there.
    fn needs(_: &Self::Kind) -> Vec<Need> {
        Vec::new()
    }

    /// The objects that this one makes for itself. It needs them as others, and says so in [`needs`](Self::needs).
    fn parts(_: &Self::Kind) -> Result<Vec<Part>, Failure> {
        Ok(Vec::new())
    }

    /// What the object shares with others of its place, in OpenStack and without it being an object: [`create`](Self::create)
    /// makes it if it is not there, and [`sweep`](Self::sweep) removes it. Objects have turns at both.
    fn shared(_: &Self::Kind) -> Option<Key> {
        None
    }

    /// Whether what an object shares may be there a second time, by a request that was lost.
    fn may_be_twice(&self, _: &Self::Kind) -> bool {
        false
    }

    /// Removes of what an object shares all, if it is the last that needed it, else only what a lost request made beside the
    /// one that is used.
    fn sweep<'a>(&'a self, _: &'a Target<Self::Kind>, _is_last: bool) -> Step<'a, ()> {
        ready(Ok(())).boxed()
    }

    /// Whether a resource can be that of an object of this project.
    fn can_be_of(project: &str, resource: &Self::Resource) -> bool {
        resource.is_in(project)
    }

    /// What those that need an object have to know of it, beside its identifier and whether it is ready.
    fn tells(_: &Self::Kind) -> Option<&str> {
        None
    }

    /// Finds what is ours: by the recorded identifier, else by mark or constraint. Something foreign is never ours.
    fn observe<'a>(&'a self, target: &'a Target<Self::Kind>) -> Step<'a, Option<Self::Resource>>;

    /// Whether a resource is one that can be used and kept, not the rest of an attempt that broke off or failed.
    fn is_whole(&self, _: &Target<Self::Kind>, _: &Self::Resource) -> bool {
        true
    }

    /// Makes the resource, or completes or replaces the rest of an earlier attempt. It may take long and may be
    /// dropped at any point; it tells its `progress`, and the identifier as soon as there is one.
    fn create<'a>(&'a self, target: &'a Target<Self::Kind>, progress: &'a dyn Progress) -> Step<'a, Self::Resource>;

    /// All that is told of the objects of the kind, before any pass sees it. It must not wait for anything.
    fn heard(&self, _: &Told<'_, Self::Kind>) {}

    /// A pass over the object with this UID is over, whatever it came to: what is kept for the object and was not asked
    /// for in it is not wanted any more.
    fn passed(&self, _: &str) {}

    /// The steps that bring a resource to what the object declares, each sending only what differs. None when nothing
    /// does. Every step is run, even when one before it failed.
    fn updates<'a>(&'a self, target: &'a Target<Self::Kind>, resource: &'a Self::Resource) -> Vec<Step<'a, ()>>;

    /// Asks OpenStack to delete the resource. It is gone when it can't be observed any more; a conflict says that others
    /// still use it.
    fn delete<'a>(&'a self, target: &'a Target<Self::Kind>, resource: &'a Self::Resource) -> Step<'a, ()>;

    /// What the status says beside that, as a condition which is there only while it is so.
    fn aside(&self, _: &Target<Self::Kind>, _: &Self::Resource) -> Aside {
        Aside::None
    }

    /// Tells what users look for in the status, and whether the resource is as declared.
    fn report(
        &self,
        target: &Target<Self::Kind>,
        resource: &Self::Resource,
        status: &mut <Self::Kind as ResourceKind>::Status,
    ) -> Outcome;
}

/// What an object's status says beside what a pass came to.
pub(crate) enum Aside {
    /// What it says already: nothing is known of it now.
    AsBefore,
    /// Nothing.
    None,
    /// That this is not so, and why.
    Not {
        /// The type of the condition.
        kind: &'static str,
        /// One `CamelCase` word.
        reason: &'static str,
        /// What is otherwise, and what to do.
        message: String,
    },
}

/// Where a long creation tells how far it is.
pub(crate) trait Progress: Send + Sync {
    /// Tells what is being done; shown before long.
    fn say(&self, reason: &'static str, message: String);

    /// Tells of what was just made and is found again by its mark: its identifier is recorded with what the pass comes to.
    fn made<'a>(&'a self, id: &'a str) -> BoxFuture<'a, ()>;

    /// Records the identifier of what was just made, at once.
    fn created<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Failure>>;

    /// What has the object looked at again as soon as what it waits for is there.
    fn call(&self) -> Call;
}
