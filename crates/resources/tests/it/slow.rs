//! A web server that stops half-way until it is told to go on.

use std::sync::Arc;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};

pub(crate) struct Slow {
    pub(crate) url: String,
    proceed: watch::Sender<bool>,
}

impl Slow {
    /// Serves this content at every path.
    pub(crate) async fn serve(content: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/slow.img", listener.local_addr().unwrap());
        let (proceed, proceeds) = watch::channel(false);
        let content: Arc<[u8]> = content.into();
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(answer(connection, Arc::clone(&content), proceeds.clone()));
            }
        });
        Self { url, proceed }
    }

    /// Sends the other halves, now and from now on.
    pub(crate) fn proceed(&self) {
        self.proceed.send_replace(true);
    }
}

/// Answers one request. The client may well hang up before the end.
async fn answer(
    mut connection: TcpStream,
    content: Arc<[u8]>,
    mut proceeds: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(connection.read_u8().await?);
    }
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", content.len());
    connection.write_all(head.as_bytes()).await?;
    let (first, second) = content.split_at(content.len() / 2);
    connection.write_all(first).await?;
    if proceeds.wait_for(|proceed| *proceed).await.is_ok() {
        connection.write_all(second).await?;
    }
    connection.shutdown().await
}
