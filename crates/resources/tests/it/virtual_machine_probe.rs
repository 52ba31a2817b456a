//! VMs that have to answer before they are ready.

use std::net::{Ipv4Addr, SocketAddr};

use kupenstack_api::resources::{FloatingIP, VirtualMachine};
use serde_json::{Value, json};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpSocket},
};

use crate::{
    common::look::{is_ready, shown, until},
    floating_ip,
    virtual_machine::{create, edit, meddle, only, surroundings},
    world::{self, Tenant},
};

/// A port that nothing listens on, at any address of this machine's own network.
async fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap().local_addr().unwrap().port()
}

/// Listens as a VM would, again at a port where there were connections.
fn listen(address: &str, port: u16) -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(SocketAddr::new(address.parse().unwrap(), port)).unwrap();
    socket.listen(16).unwrap()
}

/// A VM with a probe, and the address of this machine at which it is asked.
async fn probed(tenant: &Tenant<'_>, net: &str, probe: Value) -> String {
    surroundings(tenant).await;
    floating_ip::outside_of(tenant, net).await;
    let mut probe = probe;
    probe
        .as_object_mut()
        .unwrap()
        .extend(json!({"periodSeconds": 1, "failureThreshold": 2}).as_object().unwrap().clone());
    create(tenant, "asked", json!({"floatingIP": {"externalNetwork": tenant.name}, "readinessProbe": probe})).await;
    let message = tenant.says::<VirtualMachine>("asked", "NotAnswering").await;
    assert!(message.contains("the VM has none: give it floatingIP"), "{message}");
    floating_ip::lead_out(tenant).await;
    let name = format!("asked.{}", tenant.name);
    tenant.nudge::<FloatingIP>(&name).await;
    tenant.ready::<FloatingIP>(&name).await.status.unwrap().address.unwrap()
}

/// What keeps it from being ready, once that says so.
async fn objects(tenant: &Tenant<'_>, words: &str) -> VirtualMachine {
    until(tenant.api(), "asked", |vm: &VirtualMachine| !is_ready(vm) && shown(vm).1.contains(words)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vm_is_ready_when_it_takes_connections_and_not_when_it_does_not_any_more() {
    let tenant = world::shared().await.tenant().await;
    let port = free_port().await;
    let address = probed(&tenant, "127.77.1", json!({"tcpSocket": {"port": port}})).await;
    let silent = objects(&tenant, &format!("connecting to {address}:{port}: Connection refused")).await;
    assert_eq!(silent.status.unwrap().phase.as_deref(), Some("Running"));
    let listener = listen(&address, port);
    tenant.ready::<VirtualMachine>("asked").await;
    drop(listener);
    objects(&tenant, "Connection refused").await;
    // one that is stopped as declared is ready, and nobody asks it
    edit(&tenant, "asked", json!({"powerState": "Stopped"})).await;
    edit(&tenant, "asked", json!({"powerState": "Running", "readinessProbe": null})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vm_is_ready_when_it_answers_http_with_a_good_status() {
    let tenant = world::shared().await.tenant().await;
    let port = free_port().await;
    let address = probed(&tenant, "127.77.2", json!({"httpGet": {"port": port, "path": "/up"}})).await;
    objects(&tenant, &format!("GET http://{address}:{port}/up: no connection")).await;
    let listener = listen(&address, port);
    let (status, mut is) = tokio::sync::watch::channel("503 Service Unavailable");
    let server = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer =
                format!("HTTP/1.1 {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", *is.borrow_and_update());
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    status.send_replace("302 Found");
    tenant.ready::<VirtualMachine>("asked").await;
    status.send_replace("500 Internal Server Error");
    objects(&tenant, "answered 500 Internal Server Error").await;
    status.send_replace("200 OK");
    let ready = tenant.ready::<VirtualMachine>("asked").await;
    // what fails and is started again has to answer again, too
    let fails = only(&tenant).await.id;
    meddle(tenant.world, &fails, |server| server.vm_state = "error");
    until(tenant.api(), "asked", |vm: &VirtualMachine| {
        is_ready(vm) && vm.status.as_ref().unwrap().restarts > ready.status.as_ref().unwrap().restarts
    })
    .await;
    server.abort();
    objects(&tenant, "no connection").await;
}
