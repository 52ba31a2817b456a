//! Servers that do exactly one thing, each on a port and a thread of its own.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Serves every connection by `serve`; returns the address.
fn listen(serve: impl Fn(TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().flatten().for_each(serve));
    address.to_string()
}

/// Reads a request's head.
fn read_request(stream: &mut impl Read) {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|length| length == 1) {
        request.push(byte[0]);
    }
}

/// Gives one answer, word for word, and closes the connection.
pub(crate) fn plain(answer: &str) -> String {
    let answer = answer.to_owned();
    let address = listen(move |mut stream| {
        read_request(&mut stream);
        stream.write_all(answer.as_bytes()).unwrap();
    });
    format!("http://{address}/disk.img")
}

/// Says the beginning of an answer and then nothing any more.
pub(crate) fn silent(beginning: &'static str) -> String {
    let address = listen(move |mut stream| {
        read_request(&mut stream);
        stream.write_all(beginning.as_bytes()).unwrap();
        std::mem::forget(stream);
    });
    format!("http://{address}/disk.img")
}

/// Sends a byte at a time, for ever.
pub(crate) fn dripping(pause: Duration) -> String {
    let address = listen(move |mut stream| {
        read_request(&mut stream);
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";
        let mut alive = stream.write_all(head.as_bytes()).is_ok();
        while alive {
            std::thread::sleep(pause);
            alive = stream.write_all(b"x").is_ok();
        }
    });
    format!("http://{address}/disk.img")
}

/// As [`plain`], with TLS.
pub(crate) fn secure(config: &Arc<ServerConfig>, answer: &str) -> String {
    let (config, answer) = (Arc::clone(config), answer.to_owned());
    let address = listen(move |stream| {
        let mut stream = StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
        read_request(&mut stream);
        // A client that does not like our certificate does not stay for the answer.
        let _ = stream.write_all(answer.as_bytes());
        stream.conn.send_close_notify();
        let _ = stream.flush();
    });
    format!("https://{address}/disk.img")
}

/// A certificate authority that nobody knows.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(crate) fn server(&self, host: &str) -> Arc<ServerConfig> {
        self.sign(&CertificateParams::new([host.to_owned()]).unwrap())
    }

    pub(crate) fn expired_server(&self, host: &str) -> Arc<ServerConfig> {
        let mut params = CertificateParams::new([host.to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Arc<ServerConfig> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let config = ServerConfig::builder().with_no_client_auth();
        Arc::new(config.with_single_cert(vec![certificate.der().clone()], key).unwrap())
    }
}
