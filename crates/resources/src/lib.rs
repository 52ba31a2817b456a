//! The dotted arrow: what users want from their OpenStack, as Kubernetes objects, made true.
//!
//! One generic [flow](flow) drives every resource kind through its [`Actuator`](actuator::Actuator); namespaces
//! become projects beside it. What is in a namespace is made by the namespace's own user, what is in none by the
//! cloud's administrator. All of them share one [`Cloud`](cloud::Cloud): where it is, whether it is up, and the clients
//! of its users. This crate must not know how the cloud is deployed, Helm, or how a watch works.

mod actuator;
mod admission;
mod adoption;
mod cloud;
mod console;
mod directory;
mod external_network;
mod fencing;
mod flavor;
mod floating_ip;
mod flow;
mod image;
mod key_pair;
mod needs;
mod network;
mod neutron;
mod nodes;
mod observe;
mod own_secrets;
mod parts;
mod placement;
mod port;
mod projects;
mod queue;
mod quota;
mod realm;
mod router;
mod security_group;
mod stop;
mod subnet;
mod virtual_machine;
mod wake;

use std::{path::PathBuf, sync::Arc, time::Duration};

use futures::{
    FutureExt, StreamExt,
    channel::mpsc::{self, UnboundedReceiver},
    future::BoxFuture,
};
use kupenstack_api::resources::{
    ClusterImage, ExternalNetwork, FloatingIP, Image, Network, Port, ResourceKind, Router, SecurityGroup, Subnet,
};
pub use kupenstack_images::{FetchSettings, Guard, Proxies};
use kupenstack_runtime::{Context, Controller, Failure, ObjectRef};

pub use admission::rules;
pub use console::Consoles;

use crate::{
    actuator::Actuator,
    cloud::Cloud,
    directory::Directory,
    fencing::Fencing,
    flavor::FlavorActuator,
    flow::Flow,
    image::{ImageActuator, Workshop},
    key_pair::KeyPairActuator,
    neutron::NeutronActuator,
    nodes::Nodes,
    observe::{Census, Listed, Records},
    placement::Placement,
    virtual_machine::VirtualMachineActuator,
};

/// What the controllers need to be told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Namespace of the operator; it never becomes a project.
    pub operator_namespace: String,
    /// Folder for images on their way, for this process alone; what an earlier process left there is removed.
    pub work_dir: PathBuf,
    /// The most that those images take together, in bytes; as much as the disk has when absent.
    pub work_dir_size: Option<u64>,
    /// Where images may come from, and how.
    pub sources: FetchSettings,
    /// The longest time until a change behind our back is seen, as long as a list of all there is takes much less. It is
    /// twice as long for projects.
    pub observe_every: Duration,
}

/// A controller by its name, as a future that ends with the context.
pub type Named = (&'static str, BoxFuture<'static, ()>);

/// The controllers of this crate, one for each kind and those for what is no kind of ours, none of them running yet. Has to be called
/// within a tokio runtime, with a crypto provider for TLS installed. Fails when the folder for images can't be used.
pub fn controllers(context: &Context, settings: &Settings) -> Result<Vec<Named>, Failure> {
    let cloud = Cloud::start(context, &settings.operator_namespace);
    let directory = Arc::default();
    let workshop = Arc::new(Workshop::open(settings)?);
    let images = Census::start(&cloud, context, settings.observe_every);
    let flavors = Census::start(&cloud, context, settings.observe_every);
    let homes = Census::start(&cloud, context, projects::observed(settings.observe_every));
    homes.announce();
    let key_pairs = Census::start(&cloud, context, settings.observe_every);
    let networks = Census::start(&cloud, context, settings.observe_every);
    let groups = Census::start(&cloud, context, settings.observe_every);
    let subnets = Census::start(&cloud, context, settings.observe_every);
    let ports = Census::start(&cloud, context, settings.observe_every);
    let routers = Census::start(&cloud, context, settings.observe_every);
    let floating_ips = Census::start(&cloud, context, settings.observe_every);
    let servers = Census::start(&cloud, context, settings.observe_every);
    let nodes = Nodes::new(context.client.clone());
    let placement = Placement::new(&cloud, &directory, &nodes);
    let fencing = Fencing::new(&cloud, &directory, &nodes);
    let virtual_machines = VirtualMachineActuator::new(context.client.clone(), &placement, &fencing, &directory)?;
    Ok(vec![
        ("projects", projects::run(Arc::clone(&cloud), homes, context.clone()).boxed()),
        ("quotas", quota::run(Arc::clone(&cloud), settings.observe_every, context.clone()).boxed()),
        ("aggregates", Arc::clone(&placement).run(settings.observe_every, context.clone()).boxed()),
        ("fencing", fencing.run(settings.observe_every, context.clone()).boxed()),
        kind(&cloud, &directory, &images, ImageActuator::<Image>::new(&workshop), context),
        kind(&cloud, &directory, &images, ImageActuator::<ClusterImage>::new(&workshop), context),
        kind(&cloud, &directory, &flavors, FlavorActuator::new(&placement), context),
        kind(&cloud, &directory, &key_pairs, KeyPairActuator::new(&cloud), context),
        kind(&cloud, &directory, &networks, NeutronActuator::<Network>::new(), context),
        kind(&cloud, &directory, &networks, NeutronActuator::<ExternalNetwork>::new(), context),
        kind(&cloud, &directory, &groups, NeutronActuator::<SecurityGroup>::new(), context),
        kind(&cloud, &directory, &subnets, NeutronActuator::<Subnet>::new(), context),
        kind(&cloud, &directory, &ports, NeutronActuator::<Port>::new(), context),
        kind(&cloud, &directory, &routers, NeutronActuator::<Router>::new(), context),
        kind(&cloud, &directory, &floating_ips, NeutronActuator::<FloatingIP>::new(), context),
        kind(&cloud, &directory, &servers, virtual_machines, context),
    ])
}

/// The controller of one resource kind.
fn kind<A: Actuator>(
    cloud: &Arc<Cloud>,
    directory: &Arc<Directory>,
    census: &Arc<Census<A::Resource>>,
    actuator: A,
    context: &Context,
) -> Named {
    census.announce();
    let (calls, called) = mpsc::unbounded();
    let registration = directory.register::<A>(calls.clone());
    let flow = Flow::new(Arc::clone(cloud), Arc::clone(directory), Arc::clone(census), actuator, calls, context);
    let controller = run(flow, called, context.clone());
    (A::NAME, controller.inspect(move |()| drop(registration)).boxed())
}

/// Runs the controller of one resource kind.
async fn run<A: Actuator>(flow: Flow<A>, called: UnboundedReceiver<ObjectRef<A::Kind>>, context: Context) {
    let (cloud, census) = (flow.cloud(), flow.census());
    if !cloud.known_to(A::NAME).await {
        return;
    }
    let controller = Controller::<A::Kind>::new(A::NAME, &context).concurrency(A::CONCURRENCY);
    // a change behind our back is seen by the next list
    let changed =
        census.join(controller.objects(), Records { made_or_adopted: A::Kind::recorded, adopted: A::Kind::taken_over });
    let turned = wake::objects(cloud, A::Resource::SERVICES, controller.objects());
    let waiting = wake::waiting(cloud, controller.objects());
    let controller = controller.trigger(changed).trigger(turned).trigger(waiting).trigger(called.boxed());
    let flow = Arc::new(flow);
    controller.listener(flow.listener()).run(flow, context).await;
}
