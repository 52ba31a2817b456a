//! `VirtualMachine`: a server in Nova, at ports that are objects too.
//!
//! A network that it names gets it a `Port` of its own, which is there before the server and has the same MAC and addresses
//! whichever server is at it. Nova refuses a second server at a port, so that there is never a second guest with its
//! address; one that a lost request made all the same is seen by the next list of the whole cloud and deleted by the flow.

mod adopt;
mod apart;
mod attachments;
mod listed;
mod plan;
mod probe;
mod restart;
mod shown;
mod user_data;
mod wanted;

use std::sync::Arc;

use futures::{FutureExt, TryStreamExt};
use jiff::Timestamp;
use kube::ResourceExt;
use kupenstack_api::{
    HasConditions,
    resources::{
        ClusterImage, Flavor, FloatingIP, FloatingIPSpec, Image, KeyPair, Port, PortSpec, ResourceKind, RestartPolicy,
        VirtualMachine, VirtualMachineStatus,
    },
};
use kupenstack_core::Outcome;
use kupenstack_openstack::{ErrorKind, NewServer, Server, ServerAction, ServerFilter};
use kupenstack_runtime::{Failure, Told};

use self::{
    apart::Groups,
    plan::{Case, Plan, Prior, Size},
    probe::Probes,
};
use crate::{
    actuator::{Actuator, Aside, Progress, Step, Target},
    adoption,
    directory::Directory,
    fencing::Fencing,
    needs::{
        Key, Need,
        When::{FromTheStart, InTheEnd},
    },
    observe::{self, Listed},
    parts::Part,
    placement::{Placement, SCHEDULING, flavor_of},
    stop::Stop,
};

/// Keeps servers in Nova.
pub(crate) struct VirtualMachineActuator {
    kubernetes: kube::Client,
    placement: Arc<Placement>,
    fencing: Arc<Fencing>,
    probes: Probes,
    groups: Groups,
}

impl VirtualMachineActuator {
    /// Reads user data with `kubernetes`. What VMs need to be on certain nodes comes from `placement`, and which have
    /// lost their node from `fencing`; those that begin or cease to answer are looked at by `directory`.
    pub(crate) fn new(
        kubernetes: kube::Client,
        placement: &Arc<Placement>,
        fencing: &Arc<Fencing>,
        directory: &Arc<Directory>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            kubernetes,
            placement: Arc::clone(placement),
            fencing: Arc::clone(fencing),
            probes: Probes::new(directory)?,
            groups: Groups::default(),
        })
    }

    /// The flavor in Nova that a VM is to have.
    fn flavor(&self, target: &Target<VirtualMachine>) -> Size {
        let vm = &target.object;
        if vm.spec.node_selector.is_empty() {
            let named = vm.spec.flavor.as_deref().and_then(|name| target.needs.id_of::<Flavor>(name));
            return named.map(ToOwned::to_owned).ok_or(None);
        }
        self.placement.flavor_for(vm, target.owner.as_deref()).map_err(Some)
    }

    fn case(&self, target: &Target<VirtualMachine>, server: &Server) -> Case {
        let (flavor, dead_host) = (self.flavor(target), self.fencing.dead_host_of(&server.id));
        let adopted = target.object.spec.flavor.as_deref().and_then(|name| target.needs.told_of::<Flavor>(name));
        let flavor_name = flavor_of(&target.object, adopted);
        Case { flavor, flavor_name, dead_host, now: Timestamp::now() }
    }

    fn plan(&self, target: &Target<VirtualMachine>, server: &Server) -> Plan {
        plan::of(&target.object, server, &self.case(target, server))
    }

    /// Asks once, however often it is looked at. But who was asked may have died since.
    async fn erase(&self, target: &Target<VirtualMachine>, server: &Server) -> Result<(), Stop> {
        let is_asked = server.task_state.as_deref() == Some("deleting");
        if !is_asked || self.fencing.dead_host_of(&server.id).is_some() {
            target.client.compute().delete_server(&server.id).await?;
        }
        Ok(())
    }

    /// Makes the server, once nothing is left of one that failed.
    async fn make(&self, target: &Target<VirtualMachine>, progress: &dyn Progress) -> Result<Server, Stop> {
        if let Some(found) = find(target).await? {
            // another operator may have been faster, and have put a good one in its place
            if self.is_whole(target, &found) {
                return Ok(found);
            }
            // its ports can't be used before it is gone
            self.erase(target, &found).await?;
            let message = format!("server {}, which failed, is being deleted", found.id);
            return Err(Outcome::waiting("Restarting", message).into());
        }
        let vm = &target.object;
        if let Some(adoption) = &vm.spec.adopt {
            return Err(adopt::missing(target, adoption).await?.into());
        }
        if let Some(id) = target.recorded.as_ref().filter(|_| vm.restart_policy() == RestartPolicy::Never) {
            let message =
                format!("server {id} is gone, and restartPolicy is Never: delete this object, or change that");
            return Err(Outcome::blocked("Failed", message).into());
        }
        let flavor = self.flavor(target).map_err(|lack| match lack {
            // it comes at once, or tells why it does not
            Some(wait) if wait.reason() == SCHEDULING && vm.conditions().is_empty() => Stop::Quiet(wait),
            Some(wait) => wait.into(),
            None => wanted::missing::<Flavor>(vm.spec.flavor.as_deref().unwrap_or_default()).into(),
        })?;
        let user_data = user_data::read(&self.kubernetes, vm).await?;
        let compute = target.client.compute();
        let new = wanted::new_server(target, flavor, user_data)?;
        let new = NewServer { group_id: self.groups.id(target).await?, ..new };
        // it may be refused because another operator was faster, and has made a group of its own
        let id = compute.create_server(&new).await.inspect_err(|_| self.groups.doubt(vm))?;
        let building = format!("Nova makes server {id}");
        progress.say("Building", building.clone());
        progress.created(&id).await?;
        if target.recorded.is_none() {
            // there is nothing to see of it before the next list
            return Err(Outcome::waiting("Building", building).into());
        }
        let lost = || Failure::new("NotFound", format!("server {id} vanished when it had just been made"));
        Ok(compute.get_server(&id).await?.ok_or_else(lost)?)
    }
}

/// By the recorded identifier, else by name and mark, or adopted.
async fn find(target: &Target<VirtualMachine>) -> Result<Option<Server>, Stop> {
    let compute = target.client.compute();
    if let Some(id) = &target.recorded
        && let Some(found) = compute.get_server(id).await?.filter(|found| is_ours(found, target))
    {
        return Ok(Some(found));
    }
    if let Some(adoption) = &target.object.spec.adopt {
        return adoption::only(target, adopt::candidates(target, adoption)).await;
    }
    if target.is_new {
        return Ok(None);
    }
    let filter = ServerFilter { name: Some(target.object.name_any()) };
    let same_name: Vec<Server> = compute.list_servers(&filter).try_collect().await?;
    Ok(observe::marked(same_name, &target.mark))
}

/// What carries our mark, or, as long as the project guards what is not its own, what we recorded.
fn is_ours(found: &Server, target: &Target<VirtualMachine>) -> bool {
    match &target.owner {
        Some(owner) => found.is_in(owner),
        None => found.mark() == Some(target.mark.as_str()),
    }
}

async fn act(target: &Target<VirtualMachine>, server: &Server, action: ServerAction) -> Result<(), Stop> {
    match target.client.compute().act_on_server(&server.id, &action).await {
        // Nova shows a server whose resize is being confirmed as one that waits for that
        Err(error) if action == ServerAction::ConfirmResize && error.kind() == ErrorKind::BadRequest => Ok(()),
        result => Ok(result?),
    }
}

impl Actuator for VirtualMachineActuator {
    type Kind = VirtualMachine;
    type Resource = Server;

    const NAME: &'static str = "virtualmachine";
    const CONCURRENCY: u16 = 32;
    const NEEDS: &'static [&'static str] =
        &[Image::KIND, ClusterImage::KIND, Flavor::KIND, KeyPair::KIND, Port::KIND, FloatingIP::KIND];
    const DELETES_AS_LISTED: bool = true;
    const LINGERS: bool = true;

    fn needs(vm: &VirtualMachine) -> Vec<Need> {
        let spec = &vm.spec;
        let image = spec.image.iter().map(|name| Need::of::<Image>(vm, name, FromTheStart));
        let cluster_image = spec.cluster_image.iter().map(|name| Need::of::<ClusterImage>(vm, name, FromTheStart));
        let ports = wanted::ports(vm).map(|name| Need::of::<Port>(vm, &name, FromTheStart));
        let flavor = spec.flavor.iter().map(|name| Need::of::<Flavor>(vm, name, FromTheStart));
        let floating = spec.floating_ip.iter().map(|floating| wanted::part_name(vm, &floating.external_network));
        // it can't stand for the port before there is a way, which may come when the VM has long been running
        let floating = floating.map(|name| Need::of::<FloatingIP>(vm, &name, InTheEnd));
        let key_pair = spec.key_pair.iter().map(|name| Need::of::<KeyPair>(vm, name, FromTheStart));
        image.chain(cluster_image).chain(flavor).chain(key_pair).chain(ports).chain(floating).collect()
    }

    fn parts(vm: &VirtualMachine) -> Result<Vec<Part>, Failure> {
        let made = vm.spec.networks.iter().filter_map(|network| {
            let name = network.network.as_ref()?;
            let spec = PortSpec {
                network: Some(name.clone()),
                addresses: network.addresses.clone(),
                security_groups: vm.spec.security_groups.clone(),
                ..PortSpec::default()
            };
            Some(Part::of::<Port>(vm, &wanted::part_name(vm, name), &spec))
        });
        let floating = vm.spec.floating_ip.iter().map(|floating| {
            let network = &floating.external_network;
            let (external_network, port) = (Some(network.clone()), wanted::ports(vm).next());
            let spec = FloatingIPSpec { external_network, port, ..FloatingIPSpec::default() };
            Part::of::<FloatingIP>(vm, &wanted::part_name(vm, network), &spec)
        });
        made.chain(floating).collect()
    }

    fn heard(&self, told: &Told<'_, VirtualMachine>) {
        self.placement.heard_of_vm(told);
        self.fencing.heard_of_vm(told);
    }

    fn shared(vm: &VirtualMachine) -> Option<Key> {
        apart::shared(vm)
    }

    fn may_be_twice(&self, vm: &VirtualMachine) -> bool {
        self.groups.may_be_more(vm)
    }

    fn sweep<'a>(&'a self, target: &'a Target<VirtualMachine>, is_last: bool) -> Step<'a, ()> {
        self.groups.sweep(target, is_last).boxed()
    }

    fn observe<'a>(&'a self, target: &'a Target<VirtualMachine>) -> Step<'a, Option<Server>> {
        find(target).boxed()
    }

    /// One that never came up is made anew when its time has come.
    fn is_whole(&self, target: &Target<VirtualMachine>, server: &Server) -> bool {
        !matches!(self.plan(target, server), Plan::Replace)
    }

    fn create<'a>(&'a self, target: &'a Target<VirtualMachine>, progress: &'a dyn Progress) -> Step<'a, Server> {
        self.make(target, progress).boxed()
    }

    fn updates<'a>(&'a self, target: &'a Target<VirtualMachine>, server: &'a Server) -> Vec<Step<'a, ()>> {
        let mut steps = wanted::updates(target, server);
        steps.extend(attachments::step(target, server));
        if let Plan::Act(action, _) = self.plan(target, server) {
            steps.push(act(target, server, action).boxed());
        }
        steps
    }

    fn delete<'a>(&'a self, target: &'a Target<VirtualMachine>, server: &'a Server) -> Step<'a, ()> {
        self.erase(target, server).boxed()
    }

    fn aside(&self, target: &Target<VirtualMachine>, server: &Server) -> Aside {
        let vm = &target.object;
        if vm.spec.node_selector.is_empty() || !matches!(self.plan(target, server), Plan::Keep(_)) {
            return Aside::None;
        }
        // users are not told on which node a server is
        let fits = server.host.as_ref().and_then(|node| Some((node, self.placement.fits(vm, node)?)));
        match fits {
            None => Aside::AsBefore,
            Some((_, true)) => Aside::None,
            Some((node, false)) => shown::misplaced(vm, node),
        }
    }

    fn report(&self, target: &Target<VirtualMachine>, server: &Server, status: &mut VirtualMachineStatus) -> Outcome {
        let case = self.case(target, server);
        let plan = plan::of(&target.object, server, &case);
        shown::describe(&target.object, server, &plan, status);
        if Prior::of(&target.object).had_lost(server) {
            restart::count(&target.object.status.clone().unwrap_or_default(), status, None, case.now);
        }
        let objection =
            (plan == Plan::Keep("Running")).then(|| self.probes.objection(&target.object, server)).flatten();
        objection.unwrap_or_else(|| shown::outcome(target, server, &plan, &case, status))
    }

    fn passed(&self, uid: &str) {
        self.probes.passed(uid);
    }
}
