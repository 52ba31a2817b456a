//! Where something goes wrong in a life, and what.

use std::fmt;

use kupenstack_testkit::{
    sim::{Effect, Entry},
    tap::{self, Sentence},
};

/// A part of a life. What it takes is written down for each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Phase {
    /// An operator begins, and finds what was there before.
    Start,
    Create,
    Update,
    Delete,
}

impl Phase {
    pub(crate) const ALL: [Self; 4] = [Self::Start, Self::Create, Self::Update, Self::Delete];
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "start",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        })
    }
}

/// The type of the API server among the services.
const KUBERNETES: &str = "kubernetes";

/// A request as it comes in every life: the nth of its like in a phase.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Request {
    pub(crate) phase: Phase,
    pub(crate) service: &'static str,
    pub(crate) method: String,
    /// The path as its service documents it; for the API server, as the tap names it.
    pub(crate) what: String,
    /// Counted from 1.
    pub(crate) nth: u32,
}

impl Request {
    pub(crate) fn of_openstack(phase: Phase, entry: &Entry) -> Self {
        let (method, what) = (entry.method.clone(), entry.template.to_owned());
        Self { phase, service: entry.service, method, what, nth: 1 }
    }

    /// `stage` is the name that is another one in each life.
    pub(crate) fn of_kubernetes(phase: Phase, point: &tap::Point, stage: &str) -> Self {
        let (method, what) = (point.verb.clone(), point.what.replace(stage, "*"));
        Self { phase, service: KUBERNETES, method, what, nth: 1 }
    }

    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (self.service, &self.method, &self.what) == (other.service, &other.method, &other.what)
    }

    pub(crate) fn is_of_kubernetes(&self) -> bool {
        self.service == KUBERNETES
    }

    fn is_login(&self) -> bool {
        self.method == "POST" && self.what == "/v3/auth/tokens"
    }

    /// Whether it asks for a microversion.
    fn has_microversion(&self) -> bool {
        self.service == "compute"
    }

    /// Whether it tells of what was done. That goes beside the passes, and nothing depends on it.
    pub(crate) fn is_news(&self) -> bool {
        self.is_of_kubernetes() && self.what.contains("/events")
    }

    /// Whether it can leave something behind.
    pub(crate) fn is_write(&self) -> bool {
        !matches!(self.method.as_str(), "GET" | "HEAD" | "WATCH") && !self.is_login()
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { phase, service, method, what, nth } = self;
        write!(f, "{phase}: {service} {method} {what} #{nth}")
    }
}

/// How a request goes wrong.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    pub(crate) how: How,
    /// Whether the operator waits long before it tries again, or hears long afterwards that it has to.
    pub(crate) is_slow: bool,
    /// Requests that it makes a difference to.
    fits: fn(&Request) -> bool,
}

#[derive(Clone, Debug)]
pub(crate) enum How {
    /// What the simulated cloud does with so many requests.
    OpenStack(Effect, u32),
    /// What the tap does on which side of the API server.
    Kubernetes(tap::Phase, Sentence),
}

impl Fault {
    /// Whether the operator does not live to see what becomes of the request.
    pub(crate) fn is_deadly(&self) -> bool {
        matches!(self.how, How::OpenStack(Effect::Hang { .. }, _) | How::Kubernetes(_, Sentence::Operator))
    }

    /// Whether the request is carried out when nobody expects it any more.
    pub(crate) fn comes_late(&self) -> bool {
        matches!(self.how, How::OpenStack(Effect::CommitLater { .. }, _))
    }

    /// Whether the request is carried out and its answer lost.
    fn is_carried_out(&self) -> bool {
        let lost = matches!(
            self.how,
            How::OpenStack(Effect::Drop { commit: true }, _) | How::Kubernetes(tap::Phase::After, _)
        );
        lost || self.comes_late()
    }

    pub(crate) fn applies_to(&self, request: &Request) -> bool {
        matches!(self.how, How::Kubernetes(..)) == request.is_of_kubernetes() && (self.fits)(request)
    }
}

const fn openstack(name: &'static str, effect: Effect) -> Fault {
    Fault { name, how: How::OpenStack(effect, 1), is_slow: false, fits: |_| true }
}

const fn status(name: &'static str, status: u16) -> Fault {
    openstack(name, Effect::Answer { status, body: None, retry_after: None, commit: false })
}

const fn kubernetes(name: &'static str, phase: tap::Phase, sentence: Sentence) -> Fault {
    Fault { name, how: How::Kubernetes(phase, sentence), is_slow: false, fits: |_| true }
}

impl Fault {
    const fn only(mut self, fits: fn(&Request) -> bool) -> Self {
        self.fits = fits;
        self
    }

    const fn slow(mut self) -> Self {
        self.is_slow = true;
        self
    }

    const fn times(mut self, times: u32) -> Self {
        if let How::OpenStack(_, how_many) = &mut self.how {
            *how_many = times;
        }
        self
    }
}

/// Longer than a pass that failed waits before the next one.
const LATE: f64 = 2.5;
/// What a read shows then is what was there before the phase, and mostly before the life.
const STALE: f64 = 30.0;

/// Everything that can go wrong with a request. What differs only in whether the request was carried out comes to the
/// same for a read.
pub(crate) static FAULTS: &[Fault] = &[
    openstack("killed before", Effect::Hang { commit: false }),
    openstack("killed after", Effect::Hang { commit: true }).only(Request::is_write),
    status("500", 500),
    status("502", 502),
    status("503", 503),
    status("429", 429),
    status("409", 409),
    status("413", 413).slow(),
    status("403", 403).slow(),
    status("401", 401),
    status("401 storm", 401).times(6),
    openstack("drop", Effect::Drop { commit: false }),
    openstack("drop after commit", Effect::Drop { commit: true }).only(Request::is_write),
    openstack("late commit", Effect::CommitLater { seconds: LATE }).only(Request::is_write),
    openstack("delay", Effect::Delay { millis: 300 }),
    openstack("reset", Effect::Reset { commit: false }),
    openstack("malformed", Effect::Malformed),
    openstack("microversion", Effect::Microversion { value: String::new() }).only(Request::has_microversion),
    openstack("stale", Effect::Stale { seconds: STALE }).only(|request| request.method == "GET").slow(),
    openstack("clock behind", Effect::ClockSkew { issued: -3600, expires: -3600 }).only(Request::is_login),
    openstack("clock ahead", Effect::ClockSkew { issued: 3600, expires: 3600 }).only(Request::is_login),
    kubernetes("killed before", tap::Phase::Before, Sentence::Operator),
    kubernetes("killed after", tap::Phase::After, Sentence::Operator).only(Request::is_write),
    kubernetes("refused", tap::Phase::Before, Sentence::Refuse(503)),
    kubernetes("dropped", tap::Phase::Before, Sentence::Drop),
    kubernetes("conflict", tap::Phase::Before, Sentence::Refuse(409)).only(Request::is_write),
    kubernetes("answer lost", tap::Phase::After, Sentence::Drop).only(Request::is_write),
];

/// The API server dies and comes back, and nobody hears what became of the request.
pub(crate) static OUTAGES: [Fault; 2] = [
    kubernetes("API server restarted before", tap::Phase::Before, Sentence::ApiServer),
    kubernetes("API server restarted after", tap::Phase::After, Sentence::ApiServer),
];

/// A fault at a request.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) kind: &'static str,
    pub(crate) request: Request,
    pub(crate) fault: &'static Fault,
    /// Whether the operator is killed at its next request.
    pub(crate) then_killed: bool,
}

impl Point {
    /// Whether the operator dies right after a write of something that matters: which news are told depends on chance.
    pub(crate) fn is_death_after_a_write(&self) -> bool {
        self.fault.name == "killed after" && !self.request.is_news()
    }

    /// Whether the operator dies before or after a write, or a write is carried out that nobody knows of. To die before a
    /// read leaves what dying after the write before it left.
    pub(crate) fn may_leave_something(&self) -> bool {
        if self.then_killed {
            return self.request.is_write() && self.fault.name == "drop after commit";
        }
        self.request.is_write() && (self.fault.is_deadly() || self.fault.is_carried_out())
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, request, fault, then_killed } = self;
        let then = if *then_killed { ", then killed" } else { "" };
        write!(f, "{kind}: {request}: {}{then}", fault.name)
    }
}
