//! One file on its way to the disk, over as many connections as it takes.

use std::io::SeekFrom;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use reqwest::{Response, StatusCode};
use tokio::fs::{File, OpenOptions};
use tokio::io::{AsyncSeekExt, AsyncWriteExt, BufWriter};
use tokio::time::sleep;
use tracing::info;

use super::answer::{Identity, Part};
use super::asking::Asking;
use super::{Download, Limits, failure};
use crate::source::{Digests, Hasher, shown};
use crate::{Error, Progress, Scratch, Workspace, header};

/// How much is collected before it is written to disk.
const WRITE_BUFFER: usize = 1 << 20;
/// How much room is taken at a time for a file of unknown length.
const ROOM: u64 = 16 << 20;
/// What counts as getting on.
const STEP: u64 = 1 << 20;
/// The longest pause before a continuation.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

pub(super) struct Transfer<'a> {
    asking: Asking<'a>,
    scratch: Scratch,
    file: BufWriter<File>,
    hasher: Hasher,
    /// Bytes written.
    done: u64,
    /// The length of the whole, when known.
    total: Option<u64>,
    identity: Identity,
    /// Where the redirects led to.
    url: String,
    response: Option<Response>,
    /// Whether it came over several connections.
    continued: bool,
    /// Whether it had to begin again already.
    began_again: bool,
    patience: Patience,
}

impl<'a> Transfer<'a> {
    /// Takes an answer with the whole file.
    pub(super) async fn begin(asking: Asking<'a>, response: Response, workspace: &Workspace) -> Result<Self, Error> {
        let (url, identity) = (shown(response.url()), Identity::of(&response));
        let scratch = workspace.scratch()?;
        // Not made anew: opening goes on in a thread when nobody waits any more, and the file is removed by then.
        let file = OpenOptions::new().write(true).open(scratch.path()).await.map_err(Error::writing(None))?;
        let transfer = Self {
            scratch,
            file: BufWriter::with_capacity(WRITE_BUFFER, file),
            hasher: Hasher::for_checksum(asking.source.checksum()),
            done: 0,
            total: identity.length,
            identity,
            url,
            response: Some(response),
            continued: false,
            began_again: false,
            patience: Patience::new(asking.limits),
            asking,
        };
        transfer.check_announced()?;
        Ok(transfer)
    }

    /// Receives everything; a connection that breaks is followed by another.
    pub(super) async fn run(&mut self, mut on_progress: impl FnMut(Progress) + Send) -> Result<(), Error> {
        while let Some(response) = self.response.take() {
            match self.receive(response, &mut on_progress).await {
                Err(error @ (Error::Truncated { .. } | Error::Timeout { .. })) => self.go_on(error).await?,
                result => result?,
            }
        }
        Ok(())
    }

    /// What arrived, and its digests.
    pub(super) async fn finish(mut self) -> Result<(Download, Digests), Error> {
        self.file.flush().await.map_err(Error::writing(None))?;
        if self.done == 0 {
            return Err(Error::Empty { url: self.url });
        }
        self.scratch.shrink_to(self.done);
        let vouched = !self.continued || self.identity.validator().is_some();
        let digests = self.hasher.finish();
        let download = Download {
            file: self.scratch,
            bytes: self.done,
            sha256: digests.sha256.clone(),
            final_url: self.url,
            identity: vouched.then_some(self.identity),
        };
        Ok((download, digests))
    }

    fn check_announced(&self) -> Result<(), Error> {
        let limit = self.asking.limits.max_bytes;
        match self.total {
            Some(0) => Err(Error::Empty { url: self.url.clone() }),
            Some(bytes) if bytes > limit => Err(Error::TooLarge { bytes, limit }),
            Some(bytes) => self.scratch.reserve(bytes),
            None => Ok(()),
        }
    }

    /// Writes a body to disk while hashing it, one chunk in memory at a time.
    async fn receive(
        &mut self,
        mut response: Response,
        on_progress: &mut (impl FnMut(Progress) + Send),
    ) -> Result<(), Error> {
        let limit = self.asking.limits.max_bytes;
        loop {
            let chunk = response.chunk().await.map_err(|error| failure::of_body(&self.url, self.done, &error))?;
            let Some(chunk) = chunk else { break };
            if self.done == 0 {
                header::refuse_early(&chunk)?;
            }
            let length = chunk.len() as u64;
            let after = self.done + length;
            if after > limit {
                return Err(Error::TooLarge { bytes: after, limit });
            }
            if self.total.is_none() {
                self.scratch.reserve(after.next_multiple_of(ROOM).min(limit))?;
            }
            self.hasher.update(&chunk);
            self.file.write_all(&chunk).await.map_err(Error::writing(Some(length)))?;
            self.done = after;
            on_progress(Progress { done: self.done, total: self.total });
        }
        match self.total {
            Some(total) if total != self.done => {
                let message = format!("{total} were announced");
                Err(Error::Truncated { url: self.url.clone(), received: self.done, message })
            }
            _ => Ok(()),
        }
    }

    /// Asks for the rest, after a pause and more than once if need be. Gives up with the last failure.
    async fn go_on(&mut self, broken: Error) -> Result<(), Error> {
        let mut broken = broken;
        loop {
            let Some(pause) = self.patience.next(self.done) else { return Err(broken) };
            info!(url = self.url, received = self.done, ?pause, error = %broken, "a transfer broke and is continued");
            sleep(pause).await;
            match self.ask_for_the_rest().await {
                Ok(true) => return Ok(()),
                Ok(false) => return Err(broken),
                Err(error) if error.is_passing() => broken = error,
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether there is an answer to go on with.
    async fn ask_for_the_rest(&mut self) -> Result<bool, Error> {
        let validator = self.identity.validator();
        // Only the file itself, or its checksum, can tell that two halves belong together.
        let continuable = self.done > 0 && (validator.is_some() || self.asking.source.checksum().is_some());
        if !continuable {
            let response = self.asking.first(None).await?;
            return self.begin_again(response).await;
        }
        let response = self.asking.rest(self.done, validator).await?;
        match response.status() {
            StatusCode::PARTIAL_CONTENT if self.fits(&response) => {
                self.continued = true;
                self.response = Some(response);
                Ok(true)
            }
            // The server has another file now, or does not know ranges.
            StatusCode::OK => self.begin_again(response).await,
            _ => {
                let response = self.asking.first(None).await?;
                self.begin_again(response).await
            }
        }
    }

    /// Whether a part is what follows, of the same file.
    fn fits(&mut self, response: &Response) -> bool {
        let Some(part) = Part::of(response) else { return false };
        let same_whole = self.total.is_none() || part.total.is_none() || self.total == part.total;
        let to_the_end = part.total.is_none_or(|total| part.end + 1 == total);
        let other = Identity::of(response);
        let same_tag = other.etag.is_none() || other.etag == self.identity.etag;
        let fits = part.start == self.done && same_whole && to_the_end && same_tag;
        if fits {
            self.total = self.total.or(part.total);
        }
        fits
    }

    /// Forgets what arrived, once: what changes or breaks off each time never comes to an end.
    async fn begin_again(&mut self, response: Response) -> Result<bool, Error> {
        let identity = Identity::of(&response);
        if self.began_again {
            let changed = !self.identity.is_same(&identity);
            return if changed { Err(Error::Changed { url: self.url.clone() }) } else { Ok(false) };
        }
        self.file.flush().await.map_err(Error::writing(None))?;
        let file = self.file.get_mut();
        file.set_len(0).await.map_err(Error::writing(None))?;
        file.seek(SeekFrom::Start(0)).await.map_err(Error::writing(None))?;
        self.hasher = Hasher::for_checksum(self.asking.source.checksum());
        (self.done, self.total, self.continued, self.began_again) = (0, identity.length, false, true);
        (self.identity, self.url) = (identity, shown(response.url()));
        self.check_announced()?;
        self.response = Some(response);
        Ok(true)
    }
}

/// How long to go on with a transfer that breaks.
struct Patience {
    policy: ExponentialBuilder,
    pauses: ExponentialBackoff,
    /// How far the transfer was when the pauses began to grow.
    mark: u64,
}

impl Patience {
    fn new(limits: &Limits) -> Self {
        let policy = ExponentialBuilder::default()
            .with_jitter()
            .with_min_delay(limits.pause)
            .with_max_delay(LONGEST_PAUSE)
            .with_max_times(limits.continuations);
        Self { policy, pauses: policy.build(), mark: 0 }
    }

    /// The next pause. They grow as long as the transfer does not get on, and then end.
    fn next(&mut self, done: u64) -> Option<Duration> {
        // Less than before is a transfer that began again.
        if done < self.mark || done - self.mark >= STEP {
            (self.pauses, self.mark) = (self.policy.build(), done);
        }
        self.pauses.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_the_transfer_gets_on_and_then_end() {
        let limits = Limits { continuations: 3, pause: Duration::from_secs(1), ..Limits::default() };
        let mut patience = Patience::new(&limits);
        let pauses: Vec<Duration> = (0..3).map(|_| patience.next(0).unwrap()).collect();
        for (pause, seconds) in pauses.iter().zip([1, 2, 4]) {
            let least = Duration::from_secs(seconds);
            assert!(*pause >= least && *pause < least * 2, "{pauses:?}");
        }
        let again = patience.next(STEP).unwrap();
        assert!(again < Duration::from_secs(2), "{again:?}");
        assert!(patience.next(STEP + 1).is_some() && patience.next(STEP + 2).is_some());
        assert_eq!(patience.next(2 * STEP - 1), None);
        assert!(patience.next(2 * STEP).is_some());
    }
}
