//! Servers that do exactly one thing, each on a port and a thread of its own.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
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
fn read_request(stream: &mut impl Read) -> Request {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|length| length == 1) {
        request.push(byte[0]);
    }
    Request(String::from_utf8_lossy(&request).into_owned())
}

/// The head of a request.
#[derive(Clone, Debug)]
pub(crate) struct Request(String);

impl Request {
    pub(crate) fn line(&self) -> &str {
        self.0.lines().next().unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let headers = self.0.lines().filter_map(|line| line.split_once(": "));
        headers.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// A server that gives one answer after the other, each on a connection of its own, and then the last one again.
pub(crate) struct Script {
    pub(crate) url: String,
    requests: Mutex<Vec<Request>>,
}

impl Script {
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

pub(crate) fn scripted(answers: Vec<String>) -> Arc<Script> {
    answering(answers.into_iter().map(String::into_bytes).collect())
}

pub(crate) fn answering(answers: Vec<Vec<u8>>) -> Arc<Script> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/disk.img", listener.local_addr().unwrap());
    let script = Arc::new(Script { url, requests: Mutex::default() });
    let served = Arc::clone(&script);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut requests = served.requests.lock().unwrap();
            let answer = &answers[requests.len().min(answers.len() - 1)];
            requests.push(read_request(&mut stream));
            drop(requests);
            // A client that has seen enough does not stay to the end.
            let _ = stream.write_all(answer);
        }
    });
    script
}

/// A proxy that forwards plain requests and tunnels the others; asks for a login when it has one.
pub(crate) fn proxy(login: Option<&'static str>) -> Arc<Script> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = listener.local_addr().unwrap().to_string();
    let script = Arc::new(Script { url, requests: Mutex::default() });
    let served = Arc::clone(&script);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let request = read_request(&mut stream);
            served.requests.lock().unwrap().push(request.clone());
            std::thread::spawn(move || forward(stream, &request, login));
        }
    });
    script
}

fn forward(mut client: TcpStream, request: &Request, login: Option<&str>) {
    if request.header("proxy-authorization") != login {
        let _ = client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n");
        return;
    }
    let target = request.line().split(' ').nth(1).unwrap().trim_start_matches("http://");
    let address = target.split('/').next().unwrap();
    // Names that only the proxy knows lead to this machine.
    let address = format!("127.0.0.1:{}", address.rsplit_once(':').unwrap().1);
    let Ok(mut server) = TcpStream::connect(address) else { return };
    if request.line().starts_with("CONNECT") {
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    } else {
        server.write_all(request.0.as_bytes()).unwrap();
    }
    let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    std::thread::spawn(move || std::io::copy(&mut from, &mut to));
    let _ = std::io::copy(&mut server, &mut client);
}

/// Gives one answer, word for word, and closes the connection.
pub(crate) fn plain(answer: &str) -> String {
    let answer = answer.to_owned();
    let address = listen(move |mut stream| {
        read_request(&mut stream);
        // A client that has seen enough does not stay to the end.
        let _ = stream.write_all(answer.as_bytes());
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
