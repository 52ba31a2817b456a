//! What a server is to be like.

use std::collections::BTreeMap;

use futures::FutureExt;
use kube::ResourceExt;
use kupenstack_api::resources::{ClusterImage, Image, KeyPair, Port, ResourceKind, VirtualMachine};
use kupenstack_core::{Outcome, hash, reason};
use kupenstack_openstack::{NewServer, Server, ServerChanges};

use crate::{
    actuator::{Step, Target},
    neutron::{description as described, differing},
    stop::Stop,
};

/// Longest name of an object.
const LONGEST_NAME: usize = 253;

/// Name of what is made for a VM on a network.
pub(super) fn part_name(vm: &VirtualMachine, network: &str) -> String {
    let name = format!("{}.{network}", vm.name_any());
    if name.len() <= LONGEST_NAME {
        return name;
    }
    format!("{}.{}", vm.name_any(), hash::short(&hash::of_bytes(network.as_bytes())))
}

/// Names of the `Port`s that a VM is at, in their order.
pub(super) fn ports(vm: &VirtualMachine) -> impl Iterator<Item = String> {
    vm.spec.networks.iter().filter_map(|named| match (&named.port, &named.network) {
        (Some(port), _) => Some(port.clone()),
        (None, Some(network)) => Some(part_name(vm, network)),
        (None, None) => None,
    })
}

fn description(target: &Target<VirtualMachine>) -> Option<String> {
    let vm = &target.object;
    described(vm.spec.description.as_deref(), &target.mark, !vm.adopts())
}

/// The server to ask for, in no group.
pub(super) fn new_server(
    target: &Target<VirtualMachine>,
    flavor_id: String,
    user_data: Option<Vec<u8>>,
) -> Result<NewServer, Stop> {
    let (vm, spec) = (&target.object, &target.object.spec);
    let image = match (&spec.image, &spec.cluster_image) {
        (Some(image), _) => id::<Image>(target, image)?,
        (None, Some(image)) => id::<ClusterImage>(target, image)?,
        (None, None) => {
            return Err(
                Outcome::blocked(reason::INVALID_SPEC, "spec.image: neither it nor clusterImage is given").into()
            );
        }
    };
    Ok(NewServer {
        name: vm.name_any(),
        description: description(target),
        flavor_id,
        image_id: image,
        key_name: spec.key_pair.as_deref().map(|name| id::<KeyPair>(target, name)).transpose()?,
        ports: ports(vm).map(|port| id::<Port>(target, &port)).collect::<Result<_, _>>()?,
        user_data,
        metadata: spec.metadata.clone(),
        group_id: None,
    })
}

/// The identifier of what has to be there before a server is asked for.
fn id<N: ResourceKind>(target: &Target<VirtualMachine>, name: &str) -> Result<String, Stop> {
    Ok(target.needs.id_of::<N>(name).ok_or_else(|| missing::<N>(name))?.to_owned())
}

pub(super) fn missing<N: ResourceKind>(name: &str) -> Outcome {
    Outcome::waiting(reason::DEPENDENCY, format!("{} {name} is not ready", N::KIND))
}

/// The steps that set what can be set at any time. Of an adopted server, what is not declared is left as it is.
pub(super) fn updates<'a>(target: &'a Target<VirtualMachine>, server: &'a Server) -> Vec<Step<'a, ()>> {
    let (compute, is_made) = (target.client.compute(), !target.object.adopts());
    let mut steps: Vec<Step<'a, ()>> = Vec::new();
    let changes = ServerChanges {
        name: differing(is_made.then(|| target.object.name_any()), Some(&server.name)),
        description: differing(description(target), server.description.as_ref()),
    };
    if changes != ServerChanges::default() {
        let compute = compute.clone();
        steps.push(async move { Ok(compute.update_server(&server.id, &changes).await.map(drop)?) }.boxed());
    }
    let wanted = &target.object.spec.metadata;
    let set: BTreeMap<_, _> = wanted.iter().filter(|(key, value)| server.metadata.get(*key) != Some(*value)).collect();
    let set: BTreeMap<String, String> = set.into_iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    if !set.is_empty() {
        let compute = compute.clone();
        steps.push(async move { Ok(compute.set_server_metadata(&server.id, &set).await?) }.boxed());
    }
    for key in server.metadata.keys().filter(|key| is_made && !wanted.contains_key(*key)) {
        let compute = compute.clone();
        steps.push(async move { Ok(compute.remove_server_metadata(&server.id, key).await.map(drop)?) }.boxed());
    }
    steps
}
