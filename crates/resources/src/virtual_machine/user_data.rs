//! What a VM is told at its first boot.

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt};
use kupenstack_api::resources::VirtualMachine;
use kupenstack_core::{Outcome, reason};

use crate::{own_secrets, stop::Stop};

/// The most that Nova takes once it is encoded, in bytes before that.
const LARGEST: usize = 49_149;

/// Reads the user data, if there is to be any.
pub(super) async fn read(client: &kube::Client, vm: &VirtualMachine) -> Result<Option<Vec<u8>>, Stop> {
    let Some(user_data) = &vm.spec.user_data else { return Ok(None) };
    if let Some(text) = &user_data.inline {
        return checked(text.as_bytes().to_vec(), "spec.userData.inline").map(Some);
    }
    let Some(wanted) = &user_data.secret_key_ref else { return Ok(None) };
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &vm.namespace().unwrap_or_default());
    let secret = secrets.get_opt(&wanted.name).await.map_err(|error| own_secrets::refused(error, &wanted.name))?;
    let Some(secret) = secret else {
        return Err(Outcome::waiting(reason::DEPENDENCY, format!("Secret {} does not exist", wanted.name)).into());
    };
    let Some(data) = secret.data.and_then(|mut data| data.remove(&wanted.key)) else {
        let message = format!("Secret {} has no key {}", wanted.name, wanted.key);
        return Err(Outcome::waiting(reason::DEPENDENCY, message).into());
    };
    checked(data.0, &format!("Secret {}, key {}", wanted.name, wanted.key)).map(Some)
}

fn checked(data: Vec<u8>, place: &str) -> Result<Vec<u8>, Stop> {
    if data.len() <= LARGEST {
        return Ok(data);
    }
    let message = format!("{place}: {} bytes, but Nova takes {LARGEST}", data.len());
    Err(Outcome::blocked(reason::INVALID_SPEC, message).into())
}
