//! The HTTP side: connections, bodies, and the faults that happen to them.
//!
//! It speaks to hyper directly since a web framework always answers, and a fault may be that nobody does.

use std::{
    fmt, io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http::{Method, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use md5::{Digest, Md5};
use sha2::Sha512;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinSet,
};

use super::{
    Shared, control,
    fault::Effect,
    http::{Answer, Request, Upload},
};

/// More than any JSON a client sends.
const LONGEST_BODY: usize = 16 << 20;

/// Answers until it is told to stop, or the other end of `stop` is gone.
pub(super) async fn run(listener: TcpListener, shared: Arc<Shared>, stop: oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    let accept = async {
        loop {
            let Ok((stream, _)) = listener.accept().await else { continue };
            let _ = stream.set_nodelay(true);
            connections.spawn(serve(stream, Arc::clone(&shared)));
            while connections.try_join_next().is_some() {}
        }
    };
    tokio::select! {
        () = accept => {}
        _ = stop => {}
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let reset = Arc::new(AtomicBool::new(false));
    let connection = Connection { stream, reset: Arc::clone(&reset) };
    let service = service_fn(|request| exchange(request, &shared, &reset));
    // An error is what a fault, or a client that left, looks like from here.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(connection), service).await;
}

/// The end of a connection without an answer.
#[derive(Debug)]
struct Unanswered;

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a fault")
    }
}

impl std::error::Error for Unanswered {}

async fn exchange(
    incoming: http::Request<Incoming>,
    shared: &Arc<Shared>,
    reset: &AtomicBool,
) -> Result<Response<Full<Bytes>>, Unanswered> {
    let (mut request, body) = head(incoming);
    let is_head = request.method == Method::HEAD;
    let answer = if control::is_control(&request) {
        request.body = read(body).await?;
        control::answer(shared, &request)
    } else {
        answer(request, body, shared, reset).await?
    };
    let mut response = Response::new(Full::new(if is_head { Bytes::new() } else { answer.body }));
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    Ok(response)
}

async fn answer(
    mut request: Request,
    mut body: Incoming,
    shared: &Arc<Shared>,
    reset: &AtomicBool,
) -> Result<Answer, Unanswered> {
    let streamed = shared.cloud().is_streamed(&request);
    if !streamed {
        request.body = read(&mut body).await?;
    }
    let plan = shared.cloud().arrive(&request);
    let number = plan.entry.number;
    // nobody listening is fine
    let _ = shared.arrivals.send(plan.entry);
    let (delays, others): (Vec<_>, Vec<_>) =
        plan.effects.into_iter().partition(|effect| matches!(effect, Effect::Delay { .. }));
    let delays = delays.iter().map(|delay| if let Effect::Delay { millis } = delay { *millis } else { 0 });
    let delay = shared.latency + Duration::from_millis(delays.sum());
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let effect = others.into_iter().next();
    if effect.as_ref().is_some_and(|effect| !carries_out(effect)) {
        return instead(shared, &request, number, effect.as_ref(), reset).await;
    }
    if streamed && let Some(answer) = receive(&mut request, body, shared, number).await? {
        return Ok(answer);
    }
    if let Some(Effect::CommitLater { seconds }) = effect {
        shared.cloud().serve_later(number, request, duration(seconds));
        return Err(Unanswered);
    }
    let stale = match &effect {
        Some(Effect::Stale { seconds }) => Some(duration(*seconds)),
        _ => None,
    };
    let answer = shared.cloud().serve(number, &request, stale);
    match effect {
        Some(Effect::Malformed) => Ok(Answer { body: answer.body.slice(..answer.body.len() / 2), ..answer }),
        Some(Effect::ClockSkew { issued, expires }) => Ok(super::keystone::skewed(answer, issued, expires)),
        Some(Effect::Microversion { value }) => Ok(answer.with_header("openstack-api-version", &value)),
        None | Some(Effect::Stale { .. }) => Ok(answer),
        Some(_) => instead(shared, &request, number, effect.as_ref(), reset).await,
    }
}

/// Whether the request reaches the service at all.
fn carries_out(effect: &Effect) -> bool {
    match effect {
        Effect::Answer { commit, .. }
        | Effect::Drop { commit }
        | Effect::Reset { commit }
        | Effect::Hang { commit } => *commit,
        _ => true,
    }
}

/// What comes instead of the service's answer.
async fn instead(
    shared: &Shared,
    request: &Request,
    number: u64,
    effect: Option<&Effect>,
    reset: &AtomicBool,
) -> Result<Answer, Unanswered> {
    if let Some(Effect::Answer { status, body, retry_after, .. }) = effect {
        let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut cloud = shared.cloud();
        cloud.answered(number, Some(status));
        let answer = match body {
            Some(body) => Answer::empty(status).with_body("application/json", body.clone()),
            None => cloud.refuse(request, status),
        };
        return Ok(match retry_after {
            Some(seconds) => answer.with_header("retry-after", &seconds.to_string()),
            None => answer,
        });
    }
    shared.cloud().answered(number, None);
    match effect {
        Some(Effect::Hang { .. }) => {
            shared.hung.send_modify(|hung| *hung += 1);
            // the connection ends with the client, or with the server
            std::future::pending::<()>().await;
        }
        Some(Effect::Reset { .. }) => reset.store(true, Ordering::Release),
        _ => {}
    }
    Err(Unanswered)
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

fn head(incoming: http::Request<Incoming>) -> (Request, Incoming) {
    let (parts, body) = incoming.into_parts();
    let query = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
    let (path, headers, method) = (parts.uri.path().to_owned(), parts.headers, parts.method);
    (Request { method, path, query, headers, body: Bytes::new(), upload: None, caller: None }, body)
}

async fn read<B>(body: B) -> Result<Bytes, Unanswered>
where
    B: hyper::body::Body<Data = Bytes, Error = hyper::Error>,
{
    let body = http_body_util::Limited::new(body, LONGEST_BODY);
    body.collect().await.map(http_body_util::Collected::to_bytes).map_err(|_| Unanswered)
}

/// Takes in a body that streams, unless the service refuses it: that is its answer.
async fn receive(
    request: &mut Request,
    mut body: Incoming,
    shared: &Shared,
    number: u64,
) -> Result<Option<Answer>, Unanswered> {
    // a statement of its own, since the lock lives as long as the statement
    let begun = shared.cloud().begin(request);
    if let Some(answer) = begun {
        shared.cloud().answered(number, Some(answer.status));
        return Ok(Some(answer));
    }
    // A client that leaves ends this future, which must not leave a half behind.
    let mut guard = Half { shared, request: Some(request) };
    let (mut md5, mut sha512, mut data, mut length) = (Md5::new(), Sha512::new(), Some(BytesMut::new()), 0);
    while let Some(frame) = body.frame().await {
        let Ok(chunk) = frame.map_err(|_| Unanswered)?.into_data() else { continue };
        length += chunk.len() as u64;
        md5.update(&chunk);
        sha512.update(&chunk);
        match &mut data {
            Some(data) if data.len() + chunk.len() <= shared.keep_data => data.extend_from_slice(&chunk),
            _ => data = None,
        }
    }
    if let Some(request) = guard.request.take() {
        let data = data.map(BytesMut::freeze);
        request.upload = Some(Upload { length, md5: hex(&md5.finalize()), sha512: hex(&sha512.finalize()), data });
    }
    Ok(None)
}

/// A body that is not complete yet.
struct Half<'a> {
    shared: &'a Shared,
    request: Option<&'a mut Request>,
}

impl Drop for Half<'_> {
    fn drop(&mut self) {
        if let Some(request) = &self.request {
            self.shared.cloud().broken(request);
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // a String takes whatever is written
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A connection that can end with a reset.
struct Connection {
    stream: TcpStream,
    reset: Arc<AtomicBool>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.reset.load(Ordering::Acquire) {
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
