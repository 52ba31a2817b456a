//! A simulated cloud and clients at it.

use std::time::Duration;

use kupenstack_openstack::{
    Client, CloudConfig, Credentials, DomainRef, Interface, NewImage, Options, ProjectScope, RetryPolicy, Visibility,
};
use kupenstack_testkit::{
    install_tls_provider,
    sim::{Effect, Sim, SimOptions},
};

pub(crate) const ID: &str = "4f1ab1a4-0000-5000-8000-000000000001";
pub(crate) const NO_COMMIT: Effect = Effect::Answer { status: 503, body: None, retry_after: None, commit: false };

pub(crate) fn start() -> Sim {
    install_tls_provider();
    Sim::start(SimOptions { standing_clock: true, ..SimOptions::default() })
}

fn config(sim: &Sim) -> CloudConfig {
    install_tls_provider();
    CloudConfig {
        auth_url: sim.auth_url().parse().unwrap(),
        credentials: credentials("admin", &sim.options().admin_password, "admin"),
        region: Some("RegionOne".to_owned()),
        interface: Interface::Internal,
        ca_certificate: None,
    }
}

pub(crate) fn credentials(user: &str, password: &str, project: &str) -> Credentials {
    Credentials {
        username: user.to_owned(),
        password: password.to_owned().into(),
        user_domain: DomainRef::default(),
        project: Some(ProjectScope::Name { name: project.to_owned(), domain: DomainRef::default() }),
    }
}

/// A client that repeats nothing by itself, so that a test sees what each request comes to.
pub(crate) fn admin(sim: &Sim) -> Client {
    admin_within(sim, Duration::from_secs(30))
}

/// The same with a time limit.
pub(crate) fn admin_within(sim: &Sim, timeout: Duration) -> Client {
    let retry = RetryPolicy { repeats: 0, ..RetryPolicy::default() };
    Client::new(config(sim), Options { retry, timeout, ..Options::default() }).unwrap()
}

/// A client as the operator has it, with shorter delays.
pub(crate) fn patient_admin(sim: &Sim) -> Client {
    let retry = RetryPolicy { first_delay: Duration::from_millis(1), ..RetryPolicy::default() };
    Client::new(config(sim), Options { retry, ..Options::default() }).unwrap()
}

/// A member of a project of his own, both called `name`.
pub(crate) fn member(sim: &Sim, admin: &Client, name: &str) -> Client {
    let (now, mut cloud) = (sim.clock().now(), sim.cloud());
    cloud.keystone.add_project(now, &format!("project-{name}"), name);
    cloud.keystone.add_user(now, &format!("user-{name}"), name, "pass");
    cloud.keystone.grant(&format!("project-{name}"), &format!("user-{name}"), "member");
    admin.act_as(credentials(name, "pass", name))
}

pub(crate) fn new_image(id: &str) -> NewImage {
    NewImage {
        id: id.to_owned(),
        name: "cirros".to_owned(),
        disk_format: "raw".to_owned(),
        container_format: "bare".to_owned(),
        visibility: Visibility::Private,
        min_disk: 1,
        min_ram: 64,
        tags: vec!["t".to_owned()],
        properties: [("os_distro".to_owned(), "cirros".to_owned())].into(),
    }
}
