//! The lease that lets one of several replicas work, and its standbys take over.
//!
//! A `coordination.k8s.io/v1` Lease names its holder. [`Candidate::acquire`] waits for it, [`Held`] keeps it, and
//! [`Held::guard`] runs work that ends with it.
//!
//! # When a lease may be taken
//!
//! - *Nobody's*: at once. It is new, as the operator's chart brings it, or released by its holder.
//! - *Somebody's, or absent*: when **we** have seen no change of it for its duration, by our own clock. No time that
//!   another machine wrote is ever read, so no clock can be wrong. An absent lease counts as held, because somebody
//!   who deletes it does not stop its holder, who makes it again; so does one that was emptied by hand.
//!
//! Every write carries the `resourceVersion` (or is a create), so of several writers one wins, and the others look
//! again. A lease is watched; a look every now and then replaces a watch that is broken.
//!
//! # Why two never work at once
//!
//! With the [default terms](Terms):
//!
//! | seconds | |
//! | --- | --- |
//! | 0 | the holder sends a renewal that succeeds; the lease changes then or later |
//! | 2 to 2.4 | the next one, which fails, and more of them |
//! | 10 | the holder may not trust the lease any more: its work is dropped, programs it ran are killed |
//! | 14 | work that is not gone by now is ended with the process, by a thread that waits for nothing else |
//! | 15 | the earliest moment for a standby, which has seen the change at 0 or later, to take the lease |
//!
//! The last second is for clocks that run at different rates. The clock is the one that counts while a machine sleeps.
//! It is asked before *every* poll of the work: a process that was frozen and goes on finds its work dropped before it
//! sends another request. What was sent before is out of reach of any lease, which is why every create is one that can
//! succeed only once, and every other write one that can be repeated.
//!
//! A holder that lost its lease does not wait for the next one within the same process: the program ends, and
//! Kubernetes starts it again with nothing remembered. That is one way to begin instead of two, the kernel kills
//! whatever the process left running in its container, and the restart is counted where people look.
//!
//! # Why not a library
//!
//! There are some for `kube`. `kube-leader-election` and `kube-lease-manager` compare timestamps of different machines,
//! the latter with a tolerance to be configured; `kube-coordinate` follows client-go. All of them tell the program who
//! leads, and leave it to the program to look at that before it does anything. What is needed here is the other way
//! round: work that cannot go on without the lease, and takes over as soon as it is released.

mod belief;
mod clock;
mod held;
mod record;
mod sights;
mod write;

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};

pub use belief::Loss;
pub use held::Held;

use self::{
    belief::Belief,
    clock::{Moment, now, sleep_until},
    record::Observer,
    sights::Sights,
    write::{Refusal, Writer},
};
use crate::pace::jittered;

/// How often a write is tried that meets nothing but writers of labels and the like.
const TRIES: usize = 20;

/// How long is what. `renew_deadline + stop_grace` has to be less than `duration`, by what clocks of two machines may
/// differ in that time.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// How long a lease has to be unchanged before another may take it.
    pub duration: Duration,
    /// How often the holder renews it; a little jitter is added.
    pub renew_every: Duration,
    /// How long after the last successful renewal the holder still works.
    pub renew_deadline: Duration,
    /// How long work may take to stop after that.
    pub stop_grace: Duration,
}

impl Default for Terms {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { duration: seconds(15), renew_every: seconds(2), renew_deadline: seconds(10), stop_grace: seconds(4) }
    }
}

impl Terms {
    /// How long one request may take: several fit before the deadline.
    fn request_limit(&self) -> Duration {
        self.renew_deadline / 4
    }
}

/// Somebody who wants a lease.
pub struct Candidate {
    api: Api<Lease>,
    name: String,
    identity: String,
    terms: Terms,
}

impl Candidate {
    /// A candidate for the lease `name` in `namespace`. `called` is what people know the process by, such as its pod's
    /// name; something is added that makes the identity this process's own, as a restarted one is somebody else.
    pub fn new(client: Client, namespace: &str, name: &str, called: &str, terms: Terms) -> Self {
        let identity = format!("{called}_{:08x}", rand::random::<u32>());
        Self { api: Api::namespaced(client, namespace), name: name.to_owned(), identity, terms }
    }

    /// Who the lease says holds it when this candidate does.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Waits until the lease is ours, however long it takes. `seen` is called whenever the lease could be read. Must be
    /// called within a tokio runtime, which then keeps it renewed.
    pub async fn acquire(self, seen: impl Fn()) -> Held {
        let mut sights = Sights::new(self.api.clone(), &self.name, self.terms);
        let mut observer = Observer::new(&self.identity, self.terms.duration);
        let mut trouble = Trouble::new(&self.name);
        loop {
            let free_at = observer.free_at();
            tokio::select! {
                sight = sights.next() => match sight {
                    Ok(lease) => {
                        trouble.over();
                        seen();
                        if observer.note(lease, now()) {
                            self.tell(observer.holder());
                        }
                    }
                    Err(error) => trouble.tell(&error),
                },
                () = until(free_at) => match self.take(observer.lease()).await {
                    Ok((writer, belief)) => return Held::new(writer, sights, belief),
                    Err(refusal) => {
                        if let Refusal::Failed(error) = refusal {
                            trouble.tell(&error);
                        }
                        // whatever is there now: the belief that it is free is used up
                        observer.doubt();
                        sights.look_again();
                    }
                },
            }
        }
    }

    /// Takes the lease if it still says what it said in `lease`. A conflict with somebody who writes something else of
    /// it, such as labels, does not count.
    async fn take(&self, lease: Option<&Lease>) -> Result<(Writer, Belief), Refusal> {
        let mut writer = Writer::new(self.api.clone(), &self.name, &self.identity, self.terms, lease.cloned());
        for _ in 0..TRIES {
            let sent = now();
            match writer.write().await {
                Ok(()) => {
                    tracing::info!(lease = self.name, identity = self.identity, "leading");
                    return Ok((writer, Belief::new(sent, self.terms)));
                }
                Err(Refusal::Conflict) => drop(writer.read_again().await?),
                Err(refusal) => return Err(refusal),
            }
            if record::spec(writer.base()) != record::spec(lease) {
                break;
            }
        }
        Err(Refusal::Conflict)
    }

    fn tell(&self, holder: Option<&str>) {
        let holder = holder.unwrap_or("nobody");
        tracing::info!(lease = self.name, identity = self.identity, holder, "standing by");
    }
}

async fn until(moment: Option<Moment>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Tells once of a streak of failures.
struct Trouble<'a> {
    lease: &'a str,
    told: bool,
}

impl<'a> Trouble<'a> {
    fn new(lease: &'a str) -> Self {
        Self { lease, told: false }
    }

    fn tell(&mut self, error: &kube::Error) {
        if !self.told {
            let lease = self.lease;
            tracing::warn!(lease, %error, "the lease can't be read or written; it is tried again until it can");
        }
        self.told = true;
    }

    fn over(&mut self) {
        self.told = false;
    }
}

/// A pause before something that failed is tried again.
fn pause(terms: &Terms) -> Duration {
    jittered(terms.renew_every / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_has_stopped_before_another_can_start() {
        let terms = Terms::default();
        let stopped = terms.renew_deadline + terms.stop_grace;
        assert!(stopped + Duration::from_secs(1) <= terms.duration);
        // at least two renewals may fail
        assert!(terms.renew_deadline > terms.renew_every.mul_f64(1.2) * 3);
    }

    #[tokio::test]
    async fn a_restarted_process_is_somebody_else() {
        kupenstack_testkit::install_tls_provider();
        let client = Client::try_from(kube::Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        let identity = || Candidate::new(client.clone(), "ns", "lease", "pod-1", Terms::default()).identity;
        assert_ne!(identity(), identity());
        assert!(identity().starts_with("pod-1_"));
    }
}
