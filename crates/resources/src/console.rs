//! What VMs write to their consoles, for whoever may read it.
//!
//! Nothing is watched or kept for that: it costs a few requests when somebody asks, and any replica can answer.

use kube::{Api, Client};
use kupenstack_api::{
    HasConditions,
    cluster::OpenStack,
    resources::{ResourceKind, VirtualMachine},
};
use kupenstack_core::{
    Outcome,
    conditions::{self, READY},
    text::{NotRead, Reading, TextSource},
};
use kupenstack_openstack::{Error, ErrorKind, Options};

use crate::{
    cloud::{Access, DEFAULT, Site, Standing},
    stop::Stop,
};

/// The services that have to be up.
const SERVICES: &[&str] = &["Keystone", "Nova"];

/// The consoles of all `VirtualMachine`s, asked for as the user of the VM's namespace: of another project's server Nova
/// tells that user nothing, whichever is recorded.
pub struct Consoles {
    kubernetes: Client,
    access: Access,
}

impl Consoles {
    /// Finds the cloud and its users' credentials with `kubernetes`.
    pub fn new(kubernetes: Client) -> Self {
        Self { access: Access::new(kubernetes.clone(), Options::default()), kubernetes }
    }

    async fn log(&self, namespace: &str, name: &str, lines: u32) -> Result<String, NotRead> {
        let vms: Api<VirtualMachine> = Api::namespaced(self.kubernetes.clone(), namespace);
        let vm = vms.get_opt(name).await.map_err(|error| stopped(error.into()))?.ok_or(NotRead::NoObject)?;
        let id = vm.status.as_ref().and_then(VirtualMachine::id).ok_or_else(|| NotRead::None(serverless(&vm)))?;
        let site = self.site().await?;
        let Some(client) = self.access.project(&site, namespace).await.map_err(stopped)? else {
            return Err(NotRead::Unavailable(format!("the credentials of namespace {namespace} are missing")));
        };
        client.compute().console_output(id, Some(lines)).await.map_err(|error| {
            if error.kind() == ErrorKind::Unauthorized {
                self.access.forget_project(namespace);
            }
            refused(&error)
        })
    }

    async fn site(&self) -> Result<Site, NotRead> {
        let clouds: Api<OpenStack> = Api::all(self.kubernetes.clone());
        let cloud = clouds.get_opt(DEFAULT).await.map_err(|error| stopped(error.into()))?;
        let standing = Standing::of(cloud.as_ref(), SERVICES);
        standing.ready().cloned().map_err(|outcome| NotRead::Unavailable(outcome.message().to_owned()))
    }
}

impl TextSource for Consoles {
    fn read<'a>(&'a self, namespace: &'a str, name: &'a str, lines: u32) -> Reading<'a> {
        Box::pin(self.log(namespace, name, lines))
    }
}

fn serverless(vm: &VirtualMachine) -> String {
    let why = conditions::find(vm.conditions(), READY).map(|ready| format!(": {}", ready.message));
    format!("the VM has no server yet{}", why.unwrap_or_default())
}

fn refused(error: &Error) -> NotRead {
    let message = error.to_string();
    match error.kind() {
        ErrorKind::NotFound => NotRead::None(format!("the VM's server is gone: {message}")),
        ErrorKind::Conflict => NotRead::None(message),
        ErrorKind::Forbidden => NotRead::Forbidden(message),
        ErrorKind::Unavailable | ErrorKind::RateLimited | ErrorKind::Unauthorized => NotRead::Unavailable(message),
        _ => NotRead::Failed(message),
    }
}

/// Neither the cloud nor Kubernetes says anything about the VM then.
fn stopped(stop: Stop) -> NotRead {
    match stop.verdict().result {
        Ok(outcome) => NotRead::Unavailable(Outcome::message(&outcome).to_owned()),
        Err(failure) => NotRead::Unavailable(failure.message()),
    }
}
