//! A way to the API server that can be blocked for one of those who use it.

use std::net::SocketAddr;

use kube::Client;
use kupenstack_testkit::ControlPlane;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

use crate::stage::client_at;

/// Passes bytes on, or keeps them until it is opened again.
pub(crate) struct Proxy {
    open: watch::Sender<bool>,
    address: SocketAddr,
}

impl Proxy {
    pub(crate) async fn start(plane: &ControlPlane) -> Self {
        let server = server(plane);
        // the server's certificate is for its address, with any port
        let listener = TcpListener::bind((server.ip(), 0)).await.unwrap();
        let (open, opened) = watch::channel(true);
        let proxy = Self { open, address: listener.local_addr().unwrap() };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let opened = opened.clone();
                tokio::spawn(async move {
                    let Ok(server) = TcpStream::connect(server).await else { return };
                    let ((from_client, to_client), (from_server, to_server)) =
                        (client.into_split(), server.into_split());
                    tokio::join!(pass(from_client, to_server, opened.clone()), pass(from_server, to_client, opened));
                });
            }
        });
        proxy
    }

    pub(crate) async fn client(&self, plane: &ControlPlane) -> Client {
        client_at(plane.kubeconfig_path(), format!("https://{}", self.address)).await
    }

    /// Nothing comes through any more, and nobody is told.
    pub(crate) fn block(&self) {
        self.open.send_replace(false);
    }

    /// What was kept comes through now, and everything else again.
    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut open: watch::Receiver<bool>) {
    let mut bytes = vec![0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut bytes).await {
        if open.wait_for(|open| *open).await.is_err() || to.write_all(&bytes[..length]).await.is_err() {
            return;
        }
    }
}

fn server(plane: &ControlPlane) -> SocketAddr {
    let config: serde_json::Value = serde_json::from_slice(&std::fs::read(plane.kubeconfig_path()).unwrap()).unwrap();
    let url = config["clusters"][0]["cluster"]["server"].as_str().unwrap();
    url.trim_start_matches("https://").parse().unwrap()
}
