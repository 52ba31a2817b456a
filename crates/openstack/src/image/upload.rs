//! The data path of an upload.

use std::{
    convert::Infallible,
    io,
    ops::ControlFlow,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt, Stream, StreamExt, stream::BoxStream};
use http::header;
use reqwest::Body;
use tokio::{
    sync::{oneshot, watch},
    time::{Instant, sleep},
};

use crate::{
    Client, Error, ErrorKind, Options,
    call::Call,
    transport::{Answer, read},
};

/// Where an upload is. Every notification is a sign of life.
#[derive(Debug, Clone)]
enum Phase {
    /// The HTTP library connects, or has a chunk to send.
    Sending,
    /// The library waits for the source's next chunk.
    Reading,
    /// All data has been handed over.
    Sent,
    /// The source failed.
    Failed(Arc<io::Error>),
}

/// Sends the data, once.
pub(super) async fn upload<S>(client: &Client, call: &Call, length: Option<u64>, data: S) -> Result<(), Error>
where
    S: Stream<Item = io::Result<Bytes>> + Send + 'static,
{
    let token = client.session().token().await?;
    let transport = client.transport();
    transport.admit(call).await?;
    let (phase, progress) = watch::channel(Phase::Sending);
    // The HTTP library goes on sending after an early answer, and would do so without us: dropping this stops it.
    let (_interest, interest) = oneshot::channel::<Infallible>();
    let body = Body::wrap_stream(Data::new(data.boxed(), length, phase, interest));
    let mut request = transport
        .http
        .put(call.url.clone())
        .headers(call.headers.clone())
        .header("x-auth-token", &token.header)
        .header(header::CONTENT_TYPE, "application/octet-stream")
        .body(body);
    // Nothing would be asked for after a length of 0, not even whether the source ends well.
    if let Some(length) = length.filter(|length| *length > 0) {
        request = request.header(header::CONTENT_LENGTH, length);
    }
    let exchange = async {
        let response = request.send().await.map_err(|error| Error::transport(&call.name, error))?;
        read(&call.name, &call.secrets, response).await
    };
    let started = Instant::now();
    let result = watched(exchange, progress, call, &transport.options).await;
    transport.observe(&call.name, started, result.as_ref().err());
    if result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Unauthorized) {
        // The data can't be read again here, but the caller's next try shall not meet the same token.
        client.session().reject(&token);
    }
    result
}

/// Waits for the answer for as long as the data moves on.
async fn watched(
    exchange: impl Future<Output = Result<Answer, Error>>,
    mut progress: watch::Receiver<Phase>,
    call: &Call,
    options: &Options,
) -> Result<(), Error> {
    let mut exchange = std::pin::pin!(exchange);
    let mut moving = true;
    loop {
        let limit = match &*progress.borrow_and_update() {
            Phase::Reading | Phase::Sending if moving => options.upload_idle_timeout,
            _ => options.upload_answer_timeout,
        };
        tokio::select! {
            biased;
            result = &mut exchange => return outcome(result, &progress.borrow(), call),
            alive = progress.changed(), if moving => moving = alive.is_ok(),
            () = sleep(limit) => return Err(stalled(&progress.borrow(), limit, call)),
        }
    }
}

/// What an answer, or its absence, means in the light of how far the data got.
fn outcome(result: Result<Answer, Error>, phase: &Phase, call: &Call) -> Result<(), Error> {
    match (result, phase) {
        (_, Phase::Failed(error)) => Err(Error::Source(Arc::clone(error))),
        (Ok(_), Phase::Sent) => Ok(()),
        (Ok(_), _) => Err(Error::malformed(&call.name, "success before all data was sent")),
        (Err(error), _) => Err(error),
    }
}

fn stalled(phase: &Phase, limit: Duration, call: &Call) -> Error {
    match phase {
        Phase::Failed(error) => Error::Source(Arc::clone(error)),
        Phase::Reading => {
            let error = io::Error::new(io::ErrorKind::TimedOut, format!("no data within {limit:?}"));
            Error::Source(Arc::new(error))
        }
        Phase::Sending | Phase::Sent => Error::Timeout { call: Arc::clone(&call.name), limit },
    }
}

/// The source, with its length checked and its progress told.
struct Data {
    source: BoxStream<'static, io::Result<Bytes>>,
    phase: watch::Sender<Phase>,
    length: Option<u64>,
    taken: u64,
    /// The chunk that completes the announced length. Nobody asks for more after it, so it is kept until the source
    /// has ended well: a source that checks a digest tells only then.
    last: Option<Bytes>,
    /// Ends when the upload is over for the caller, whatever the HTTP library still wants to send.
    interest: oneshot::Receiver<Infallible>,
}

impl Data {
    fn new(
        source: BoxStream<'static, io::Result<Bytes>>,
        length: Option<u64>,
        phase: watch::Sender<Phase>,
        interest: oneshot::Receiver<Infallible>,
    ) -> Self {
        Self { source, phase, length, taken: 0, last: None, interest }
    }

    /// What to send for what the source yielded, or that it is to be asked again.
    fn account(&mut self, item: Option<io::Result<Bytes>>) -> ControlFlow<Option<io::Result<Bytes>>> {
        let chunk = match item {
            Some(Ok(chunk)) => chunk,
            Some(Err(error)) => return self.fail(error),
            None => return self.end(),
        };
        self.taken = self.taken.saturating_add(chunk.len() as u64);
        match self.length {
            Some(length) if self.taken > length => {
                let problem = format!("more than the announced {length} bytes");
                self.fail(io::Error::new(io::ErrorKind::InvalidData, problem))
            }
            Some(length) if self.taken == length && !chunk.is_empty() => {
                self.last = Some(chunk);
                ControlFlow::Continue(())
            }
            _ if chunk.is_empty() => ControlFlow::Continue(()),
            _ => {
                self.phase.send_replace(Phase::Sending);
                ControlFlow::Break(Some(Ok(chunk)))
            }
        }
    }

    fn end(&mut self) -> ControlFlow<Option<io::Result<Bytes>>> {
        if let Some(length) = self.length.filter(|length| self.taken < *length) {
            let problem = format!("{} of the announced {length} bytes", self.taken);
            return self.fail(io::Error::new(io::ErrorKind::UnexpectedEof, problem));
        }
        self.phase.send_replace(Phase::Sent);
        ControlFlow::Break(self.last.take().map(Ok))
    }

    /// Keeps the error for the caller; the HTTP library only needs to know that it must break off.
    fn fail(&self, error: io::Error) -> ControlFlow<Option<io::Result<Bytes>>> {
        let kind = error.kind();
        self.phase.send_replace(Phase::Failed(Arc::new(error)));
        ControlFlow::Break(Some(Err(kind.into())))
    }

    /// The library wants more and the source has none: if nothing moves from here on, it is the source that stalls.
    fn wait_for_source(&self) {
        self.phase.send_if_modified(|phase| {
            let is_news = matches!(phase, Phase::Sending);
            if is_news {
                *phase = Phase::Reading;
            }
            is_news
        });
    }
}

impl Stream for Data {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if matches!(*self.phase.borrow(), Phase::Sent | Phase::Failed(_)) {
            return Poll::Ready(None);
        }
        if self.interest.poll_unpin(context).is_ready() {
            // An error, not an end: an end would make what was sent look complete.
            return Poll::Ready(self.fail(io::ErrorKind::ConnectionAborted.into()).break_value().flatten());
        }
        loop {
            let Poll::Ready(item) = self.source.poll_next_unpin(context) else {
                self.wait_for_source();
                return Poll::Pending;
            };
            if let ControlFlow::Break(item) = self.account(item) {
                return Poll::Ready(item);
            }
        }
    }
}
