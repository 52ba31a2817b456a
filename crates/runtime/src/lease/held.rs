//! Holding the lease: renewing it, working while it is held, giving it back.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{Arc, Condvar, Mutex, PoisonError},
    task::Poll,
    thread,
    time::Duration,
};

use tokio::{task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    Trouble,
    belief::{Belief, Loss},
    clock::{Moment, now, sleep_until},
    pause,
    sights::Sights,
    write::{Holder, Refusal, Writer},
};
use crate::pace::jittered;

/// How long giving the lease back may take; when it fails, a standby waits for its end instead.
const RELEASE_LIMIT: Duration = Duration::from_secs(2);

/// The lease, held and renewed until this is dropped. Dropping it does not give the lease back.
pub struct Held {
    belief: Arc<Belief>,
    let_go: CancellationToken,
    keeper: JoinHandle<Writer>,
    enforcement: Option<Arc<Enforcement>>,
}

impl Held {
    pub(super) fn new(writer: Writer, sights: Sights, belief: Belief) -> Self {
        let (belief, let_go) = (Arc::new(belief), CancellationToken::new());
        let keeper = Keeper { writer, sights, belief: Arc::clone(&belief), let_go: let_go.clone() };
        Self { belief, let_go, keeper: tokio::spawn(keeper.keep()), enforcement: None }
    }

    /// Runs `work` while the lease is held; `None` when it was lost first. The work is dropped by then. It is not
    /// polled once more after the lease has expired, whatever kept this process from noticing earlier.
    pub fn guard<W: Future>(&self, work: W) -> impl Future<Output = Option<W::Output>> + use<W> {
        guarded(Arc::clone(&self.belief), work)
    }

    /// Waits until the lease is lost, and says why.
    pub async fn lost(&self) -> Loss {
        self.belief.lost().cancelled().await;
        self.belief.loss().unwrap_or(Loss::Expired)
    }

    /// Has `act` called, by a thread of its own, when this value is still there after work had to be gone: something
    /// keeps work from being dropped, and only the end of the process is left. Fails when no thread can be started.
    pub fn enforce(&mut self, act: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let enforcement = Arc::new(Enforcement::default());
        let (belief, watched) = (Arc::clone(&self.belief), Arc::clone(&enforcement));
        thread::Builder::new().name("lease".to_owned()).spawn(move || {
            if watched.overrun(|| belief.work_ends()) {
                act();
            }
        })?;
        self.enforcement = Some(enforcement);
        Ok(())
    }

    /// Gives the lease back, so that a standby takes over at once. To be called when all work has ended, also after
    /// the lease was lost by expiry: it may still bear our name.
    pub async fn release(mut self) {
        self.work_is_over();
        self.let_go.cancel();
        let released = timeout(RELEASE_LIMIT, async {
            if let Ok(writer) = (&mut self.keeper).await {
                give_back(writer).await;
            }
        });
        if released.await.is_err() {
            tracing::warn!("the lease could not be released; a standby takes it when it expires");
        }
    }

    fn work_is_over(&self) {
        if let Some(enforcement) = &self.enforcement {
            enforcement.end();
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.keeper.abort();
        self.work_is_over();
    }
}

async fn guarded<W: Future>(belief: Arc<Belief>, work: W) -> Option<W::Output> {
    let mut work = pin!(work);
    let mut lost = pin!(belief.lost().cancelled());
    poll_fn(|context| {
        if !belief.holds() || lost.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        work.as_mut().poll(context).map(Some)
    })
    .await
}

async fn give_back(mut writer: Writer) {
    loop {
        match writer.write_free().await {
            Ok(()) => return tracing::info!(lease = writer.name(), "released"),
            Err(Refusal::Conflict) => {}
            Err(Refusal::Failed(error)) => tracing::debug!(%error, "release"),
        }
        match writer.read_again().await {
            Ok(Holder::Us) => {}
            Ok(Holder::Nobody | Holder::Other(_)) => return,
            Err(error) => tracing::debug!(%error, "release"),
        }
    }
}

/// Renews the lease until it is lost or let go.
struct Keeper {
    writer: Writer,
    sights: Sights,
    belief: Arc<Belief>,
    let_go: CancellationToken,
}

impl Keeper {
    async fn keep(mut self) -> Writer {
        let name = self.writer.name().to_owned();
        let mut trouble = Trouble::new(&name);
        let mut next = self.in_time();
        while self.belief.holds() {
            let let_go = self.let_go.clone();
            tokio::select! {
                () = let_go.cancelled() => return self.writer,
                () = sleep_until(next) => {}
                // what others do to the lease is seen at once; our own renewals are seen too
                sight = self.sights.next() => match sight {
                    Ok(lease) if !self.writer.is_ours(lease.as_ref()) => {}
                    Ok(_) | Err(_) => continue,
                },
            }
            let ends = self.belief.until();
            let renewed = tokio::select! {
                () = let_go.cancelled() => return self.writer,
                () = sleep_until(ends) => continue,
                renewed = self.renew() => renewed,
            };
            next = match renewed {
                Ok(()) => {
                    trouble.over();
                    self.in_time()
                }
                Err(error) => {
                    trouble.tell(&error);
                    (now() + pause(self.writer.terms())).min(ends)
                }
            };
        }
        if let Some(loss) = self.belief.loss() {
            tracing::error!(lease = name, %loss, "lost the lease");
        }
        self.writer
    }

    fn in_time(&self) -> Moment {
        now() + jittered(self.writer.terms().renew_every)
    }

    /// Renews the lease, over any number of conflicts with writers who leave it ours. Ends without a renewal when the
    /// lease is lost.
    async fn renew(&mut self) -> kube::Result<()> {
        while self.belief.holds() {
            let sent = now();
            match self.writer.write().await {
                Ok(()) => {
                    self.belief.renewed(sent);
                    return Ok(());
                }
                // if it was carried out all the same, the next one meets a conflict
                Err(Refusal::Failed(error)) => return Err(error),
                Err(Refusal::Conflict) => {}
            }
            if let Holder::Other(by) = self.writer.read_again().await? {
                self.belief.taken(by);
            }
        }
        Ok(())
    }
}

/// Whether work is over, for the thread that waits for it.
#[derive(Default)]
struct Enforcement {
    over: Mutex<bool>,
    told: Condvar,
}

impl Enforcement {
    fn end(&self) {
        *self.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.told.notify_all();
    }

    /// Waits until work is over, or `work_ends` has passed, which may be put off meanwhile. Whether it was the latter.
    fn overrun(&self, work_ends: impl Fn() -> Moment) -> bool {
        let mut over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        while !*over {
            let ends = work_ends();
            if ends.has_passed() {
                return true;
            }
            over = self.told.wait_timeout(over, ends.left()).unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{super::Terms, *};

    /// Longer than a busy machine keeps a thread from going on.
    const MOMENT: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn work_is_not_polled_once_more_after_the_lease_has_expired() {
        let belief = Arc::new(Belief::new(now(), Terms { renew_deadline: MOMENT, ..Terms::default() }));
        let polls = AtomicUsize::new(0);
        // stands still at its first poll, as a frozen process does, and has something to do right afterwards
        let work = poll_fn(|context| {
            if polls.fetch_add(1, Ordering::Relaxed) > 0 {
                return Poll::Ready(());
            }
            thread::sleep(MOMENT);
            context.waker().wake_by_ref();
            Poll::Pending
        });
        assert_eq!(guarded(belief, work).await, None);
        assert_eq!(polls.into_inner(), 1);
    }

    #[tokio::test]
    async fn work_that_waits_is_dropped_when_somebody_else_holds_the_lease() {
        let belief = Arc::new(Belief::new(now(), Terms::default()));
        let (taken, dropped) = (Arc::clone(&belief), CancellationToken::new());
        let work = dropped.clone().drop_guard();
        let guarded = guarded(belief, async move {
            let _work = work;
            std::future::pending::<()>().await;
        });
        let take = async {
            tokio::task::yield_now().await;
            assert!(!dropped.is_cancelled());
            taken.taken("another".to_owned());
        };
        assert_eq!(tokio::join!(guarded, take).0, None);
        assert!(dropped.is_cancelled());
    }

    #[test]
    fn work_that_is_over_does_not_end_the_process() {
        let enforcement = Arc::new(Enforcement::default());
        let watched = Arc::clone(&enforcement);
        let watch = thread::spawn(move || watched.overrun(|| now() + Duration::from_mins(1)));
        enforcement.end();
        assert!(!watch.join().unwrap());
    }

    #[test]
    fn work_that_stays_ends_the_process_when_its_time_is_over() {
        let begun = now();
        let asked = AtomicUsize::new(0);
        // the lease is renewed once meanwhile
        let ends = || begun + if asked.fetch_add(1, Ordering::Relaxed) == 0 { MOMENT } else { MOMENT * 2 };
        assert!(Enforcement::default().overrun(ends));
        assert!(now() >= begun + MOMENT * 2);
    }
}
