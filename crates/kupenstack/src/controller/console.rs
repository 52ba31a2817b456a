//! The console logs of VMs, which every replica that may read them serves, whichever of them works.

use std::sync::Arc;

use kupenstack_admission::TextApi;
use kupenstack_resources::Consoles;

use crate::rbac::console;

/// The API in which they are.
pub(super) fn api(kubernetes: kube::Client) -> TextApi {
    TextApi {
        group: console::GROUP.to_owned(),
        resource: "virtualmachines".to_owned(),
        kind: "VirtualMachine".to_owned(),
        subresource: "log".to_owned(),
        source: Arc::new(Consoles::new(kubernetes)),
    }
}
