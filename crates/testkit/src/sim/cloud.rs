//! The cloud: its services, and how a request finds its way to one.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use http::StatusCode;
use jiff::Timestamp;

use super::{
    SimOptions,
    clock::{Clock, earlier, later},
    fault::{Arrival, Effect, Faults},
    glance::Glance,
    http::{Answer, Outcome, Refusal, Request},
    ids::Ids,
    journal::{Entry, Journal},
    keystone::{Bootstrap, Keystone, unauthorized},
    neutron::Neutron,
    nova::Nova,
    quota::Quotas,
    service::{Access, AnyService, Call, Caller, Found, Peers, Service, Version},
};

/// Everything the cloud holds. A test may look at it and change it behind the services' backs.
pub struct Cloud {
    /// Keystone.
    pub keystone: Keystone,
    /// Glance.
    pub glance: Glance,
    /// Nova.
    pub nova: Nova,
    /// Neutron.
    pub neutron: Neutron,
    /// The faults in force.
    pub faults: Faults,
    /// What projects may have, unless Keystone's limits say otherwise.
    pub quotas: Quotas,
    /// What was asked so far.
    pub journal: Journal,
    options: SimOptions,
    clock: Arc<Clock>,
    ids: Ids,
    base: String,
    /// Requests whose answers are lost already, by when they are carried out and their number in the journal.
    late: BTreeMap<(Timestamp, u64), Request>,
}

/// What is decided about a request when it comes.
pub(super) struct Plan {
    pub(super) entry: Entry,
    pub(super) effects: Vec<Effect>,
}

/// A service with what a request to it needs.
struct Reached<'a> {
    service: &'a mut dyn AnyService,
    peers: Option<Peers<'a>>,
    ids: &'a mut Ids,
    base: &'a str,
}

/// The header of microversions.
const API_VERSION: &str = "openstack-api-version";

impl Cloud {
    pub(super) fn new(options: &SimOptions, clock: Arc<Clock>, base: String) -> Self {
        let mut ids = Ids::new(options.seed);
        Self {
            keystone: bootstrapped(options, clock.now(), &mut ids, &base),
            glance: Glance::new(options),
            nova: Nova::new(options),
            neutron: Neutron::new(options),
            faults: Faults::new(options.seed),
            quotas: Quotas::default(),
            journal: Journal::new(options.journal),
            options: options.clone(),
            clock,
            ids,
            base,
            late: BTreeMap::new(),
        }
    }

    /// Puts a Keystone in place of this one that has nothing but its bootstrap, as when its database was lost. Tokens of
    /// before stand for nothing any more.
    pub fn replace_keystone(&mut self) {
        let empty = bootstrapped(&self.options, self.clock.now(), &mut self.ids, &self.base);
        self.keystone.replaced(empty);
    }

    /// A service by its prefix, with those that it asks in its turn.
    fn service(&mut self, prefix: &str) -> Option<Reached<'_>> {
        let Self { keystone, glance, nova, neutron, ids, base, .. } = self;
        let (service, peers): (&mut dyn AnyService, _) = match prefix {
            Keystone::TYPE => (keystone, None),
            Glance::TYPE => (glance, None),
            Nova::TYPE => (nova, Some(Peers { glance, neutron })),
            Neutron::TYPE => (neutron, None),
            _ => return None,
        };
        Some(Reached { service, peers, ids, base })
    }

    /// Lets happen what has fallen due, in its order.
    pub(super) fn settle(&mut self) {
        let now = self.clock.now();
        while let Some(entry) = self.late.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((at, number), request) = entry.remove_entry();
            self.advance(at);
            let answer = self.carry_out(&request, at, None);
            self.note(number, None, &request, &answer);
        }
        self.advance(now);
    }

    /// In Neutron, nothing falls due.
    fn advance(&mut self, now: Timestamp) {
        Service::advance(&mut self.keystone, now);
        Service::advance(&mut self.glance, now);
        self.nova.pass_time(now, &mut self.neutron);
    }

    /// Whether a request's body is to be handed over as it comes.
    pub(super) fn is_streamed(&mut self, request: &Request) -> bool {
        let found = self.service(prefix(request)).map(|reached| find(reached.service, request));
        matches!(found, Some(Ok(Found { streamed: true, .. })))
    }

    /// Writes a request into the journal and draws its fate.
    pub(super) fn arrive(&mut self, request: &Request) -> Plan {
        self.settle();
        let at = self.clock.now();
        let found = self.service(prefix(request));
        let found = found.map(|Reached { service, .. }| (service.service_type(), find(service, request)));
        let (service, template) = match found {
            Some((service, Ok(found))) => (service, found.template),
            Some((service, Err(_))) => (service, ""),
            None => ("", ""),
        };
        let caller = request.header("x-auth-token").and_then(|token| self.keystone.authenticate(token, at).ok());
        let path = request.path.strip_prefix('/').and_then(|path| path.split_once('/'));
        let path = path.map_or_else(|| "/".to_owned(), |(_, path)| format!("/{path}"));
        let project_id = caller.as_ref().and_then(|caller| caller.project_id.clone());
        let query = request.query_with(&[]);
        let effects = self.faults.strike(&Arrival {
            service,
            method: request.method.as_str(),
            path: &path,
            template,
            query: &query,
            project_id: project_id.as_deref(),
            body: &request.body,
        });
        let mut entry = Entry {
            number: 0,
            at,
            service,
            method: request.method.to_string(),
            template,
            path,
            query,
            user_id: caller.map(|caller| caller.user_id),
            project_id,
            status: None,
            committed: false,
            fault: effects.last().map(Effect::name),
        };
        entry.number = self.journal.add(entry.clone());
        Plan { entry, effects }
    }

    /// Carries a request out and says so in the journal.
    pub(super) fn serve(&mut self, number: u64, request: &Request, stale: Option<Duration>) -> Answer {
        self.settle();
        let now = self.clock.now();
        let answer = self.carry_out(request, now, stale.map(|stale| earlier(now, stale)));
        self.note(number, Some(answer.status), request, &answer);
        answer
    }

    /// Carries a request out after so long.
    pub(super) fn serve_later(&mut self, number: u64, mut request: Request, after: Duration) {
        let now = self.clock.now();
        request.caller = self.authenticate(&request, now).ok();
        self.late.insert((later(now, after), number), request);
    }

    /// Says in the journal what was answered, when that was not the service.
    pub(super) fn answered(&mut self, number: u64, status: Option<StatusCode>) {
        if let Some(entry) = self.journal.entry(number) {
            entry.status = status.map(|status| status.as_u16());
        }
    }

    /// A refusal in a service's own shape.
    pub(super) fn refuse(&mut self, request: &Request, status: StatusCode) -> Answer {
        let refusal = match status {
            StatusCode::UNAUTHORIZED => unauthorized(),
            other => Refusal::new(other, other.canonical_reason().unwrap_or_default()),
        };
        match self.service(prefix(request)) {
            Some(reached) => reached.service.refuse(request, &refusal),
            None => Answer::empty(status),
        }
    }

    /// A body begins to stream in. An answer refuses it.
    pub(super) fn begin(&mut self, request: &mut Request) -> Option<Answer> {
        self.settle();
        let now = self.clock.now();
        request.caller = self.authenticate(request, now).ok();
        match self.with_call(request, now, None, |service, _, call| service.begin(call)) {
            Ok(()) => None,
            Err(refusal) => Some(self.refused(request, &refusal)),
        }
    }

    /// A body that streamed in has broken off.
    pub(super) fn broken(&mut self, request: &Request) {
        let now = self.clock.now();
        // it was let in before
        let _ = self.with_call(request, now, None, |service, _, call| {
            service.broken(call);
            Ok(())
        });
    }

    fn carry_out(&mut self, request: &Request, now: Timestamp, as_of: Option<Timestamp>) -> Answer {
        let outcome: Outcome = match self.with_call(request, now, as_of, |service, found, call| {
            let answer = service.handle(found, call)?;
            Ok((service.service_type(), call.microversion, answer))
        }) {
            Ok((service, version, answer)) => Ok(with_version(answer, service, version)),
            Err(refusal) => Err(refusal),
        };
        outcome.unwrap_or_else(|refusal| self.refused(request, &refusal))
    }

    fn with_call<T>(
        &mut self,
        request: &Request,
        now: Timestamp,
        as_of: Option<Timestamp>,
        work: impl FnOnce(&mut dyn AnyService, &Found, &mut Call<'_>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let authenticated = self.authenticate(request, now);
        // what only reads is limited by none
        let quotas = if reads(request) { Quotas::default() } else { self.quotas.under(&self.keystone) };
        let Some(Reached { service, peers, ids, base }) = self.service(prefix(request)) else {
            return Err(Refusal::not_found("Not Found"));
        };
        let found = find(service, request)?;
        let caller = match (found.access, authenticated) {
            (Access::Open, _) => Caller::default(),
            (Access::Token, Ok(caller)) => caller,
            (Access::Token, Err(refusal)) if service.service_type() == Keystone::TYPE => return Err(refusal),
            // the middleware in front of the other services has one answer, whatever is wrong with a token
            (Access::Token, Err(_)) => return Err(unauthorized()),
        };
        let asked = request.header(API_VERSION);
        let microversions = service.microversions();
        let microversion = microversions.map(|known| known.negotiate(service.service_type(), asked)).transpose()?;
        let (template, params) = (found.template, found.params.clone());
        let quotas = &quotas;
        let mut call = Call { request, template, params, caller, now, as_of, base, microversion, ids, quotas, peers };
        work(service, &found, &mut call)
    }

    fn authenticate(&self, request: &Request, now: Timestamp) -> Result<Caller, Refusal> {
        match (&request.caller, request.header("x-auth-token")) {
            (Some(caller), _) => Ok(caller.clone()),
            (None, Some(token)) => self.keystone.authenticate(token, now),
            (None, None) => Err(unauthorized()),
        }
    }

    fn refused(&mut self, request: &Request, refusal: &Refusal) -> Answer {
        match self.service(prefix(request)) {
            Some(reached) => reached.service.refuse(request, refusal),
            None => Answer::empty(refusal.status),
        }
    }

    fn note(&mut self, number: u64, status: Option<StatusCode>, request: &Request, answer: &Answer) {
        if let Some(entry) = self.journal.entry(number) {
            entry.status = status.map(|status| status.as_u16());
            entry.committed = !reads(request) && answer.status.is_success();
        }
    }
}

fn bootstrapped(options: &SimOptions, now: Timestamp, ids: &mut Ids, base: &str) -> Keystone {
    let services =
        [endpoint::<Keystone>(base), endpoint::<Glance>(base), endpoint::<Nova>(base), endpoint::<Neutron>(base)];
    let bootstrap = Bootstrap { password: &options.admin_password, region: &options.region, services: &services };
    Keystone::new(options, now, ids, &bootstrap)
}

fn endpoint<S: Service>(base: &str) -> (&'static str, &'static str, String) {
    (S::TYPE, S::NAME, format!("{base}/{}{}", S::TYPE, S::ENDPOINT_PATH))
}

fn prefix(request: &Request) -> &str {
    request.path.split('/').find(|segment| !segment.is_empty()).unwrap_or_default()
}

fn reads(request: &Request) -> bool {
    matches!(request.method.as_str(), "GET" | "HEAD")
}

/// A HEAD is a GET without a body, for those that do not say otherwise.
fn find(service: &dyn AnyService, request: &Request) -> Result<Found, Refusal> {
    let segments = request.segments();
    let found = service.find(request.method.as_str(), &segments);
    if found.is_err() && request.method == http::Method::HEAD { service.find("GET", &segments) } else { found }
}

fn with_version(answer: Answer, service: &str, version: Option<Version>) -> Answer {
    let Some((major, minor)) = version else { return answer };
    answer.with_header(API_VERSION, &format!("{service} {major}.{minor}")).with_header("vary", "OpenStack-API-Version")
}
