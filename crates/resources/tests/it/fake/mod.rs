//! A Keystone and a Glance that remember, with faults on demand. Only what our controllers use, with the constraints
//! that they rely on: unique names, identifiers that are never given twice, roles, and who may see what.

mod glance;
mod keystone;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::broadcast;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate, matchers::any};

pub(crate) use self::{
    glance::{Glance, Stored},
    keystone::Keystone,
};

/// The administrator's password.
pub(crate) const ADMIN_PASSWORD: &str = "admin-password";

/// What goes wrong, once, with the next request that fits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fault {
    /// The request is carried out, and its answer is a 503.
    AnswerLost,
    /// The request is not carried out, and its answer is this.
    Refused(u16, &'static str),
}

/// One request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) keystone: Keystone,
    pub(crate) glance: Glance,
    faults: Vec<(String, String, Fault)>,
    journal: Vec<Seen>,
    down: bool,
}

/// The cloud.
pub(crate) struct Fake {
    server: MockServer,
    shared: Shared,
}

#[derive(Clone)]
struct Shared {
    state: Arc<Mutex<State>>,
    arrivals: broadcast::Sender<Seen>,
}

impl Fake {
    pub(crate) async fn start() -> Self {
        let server = MockServer::start().await;
        let state = State { keystone: Keystone::bootstrapped(&server.uri()), ..State::default() };
        let shared = Shared { state: Arc::new(Mutex::new(state)), arrivals: broadcast::channel(1024).0 };
        Mock::given(any()).respond_with(shared.clone()).mount(&server).await;
        Self { server, shared }
    }

    pub(crate) fn auth_url(&self) -> String {
        format!("{}/v3", self.server.uri())
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }

    /// Lets the next request that has this method, and this text in its path or body, go wrong.
    pub(crate) fn fail_next(&self, method: &str, text: &str, fault: Fault) {
        self.state().faults.push((method.to_owned(), text.to_owned(), fault));
    }

    /// From now on every request is answered with 503, or no longer.
    pub(crate) fn set_down(&self, down: bool) {
        self.state().down = down;
    }

    /// Every request as it comes, before it is carried out.
    pub(crate) fn arrivals(&self) -> broadcast::Receiver<Seen> {
        self.shared.arrivals.subscribe()
    }

    /// How many requests of this method had this text in their path.
    pub(crate) fn count(&self, method: &str, text: &str) -> usize {
        self.state().journal.iter().filter(|seen| seen.method == method && seen.path.contains(text)).count()
    }

    /// How many requests could have changed something, logins left out.
    pub(crate) fn writes(&self) -> usize {
        let writes =
            |seen: &&Seen| !matches!(seen.method.as_str(), "GET" | "HEAD") && !seen.path.contains("/auth/tokens");
        self.state().journal.iter().filter(writes).count()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Respond for Shared {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let mut state = self.state();
        let (method, path) = (request.method.to_string(), request.url.path().to_owned());
        let seen = Seen { method, path };
        state.journal.push(seen.clone());
        // nobody listening is fine
        let _ = self.arrivals.send(seen);
        if state.down {
            return refusal(503, "down for maintenance");
        }
        match state.take_fault(request) {
            Some(Fault::Refused(status, message)) => refusal(status, message),
            Some(Fault::AnswerLost) => {
                state.carry_out(request);
                refusal(503, "the answer was lost")
            }
            None => state.carry_out(request),
        }
    }
}

impl State {
    fn carry_out(&mut self, request: &Request) -> ResponseTemplate {
        let path: Vec<&str> = request.url.path_segments().map(Iterator::collect).unwrap_or_default();
        match path.as_slice() {
            ["v3", rest @ ..] => self.keystone.answer(request, rest),
            ["v2", "images", rest @ ..] => match self.keystone.caller(request) {
                Some(caller) => self.glance.answer(&caller, request, rest),
                None => refusal(401, "unauthorized"),
            },
            _ => refusal(404, "no such API"),
        }
    }

    fn take_fault(&mut self, request: &Request) -> Option<Fault> {
        let body = String::from_utf8_lossy(&request.body);
        let fits = |(method, text, _): &(String, String, Fault)| {
            request.method.as_str() == method && (request.url.path().contains(text) || body.contains(text.as_str()))
        };
        let index = self.faults.iter().position(fits)?;
        Some(self.faults.remove(index).2)
    }
}

pub(crate) fn refusal(status: u16, message: &str) -> ResponseTemplate {
    ResponseTemplate::new(status).set_body_json(json!({"error": {"code": status, "message": message}}))
}

fn ok(status: u16, body: Value) -> ResponseTemplate {
    ResponseTemplate::new(status).set_body_json(body)
}

fn query(request: &Request, key: &str) -> Option<String> {
    request.url.query_pairs().find(|(k, _)| k == key).map(|(_, value)| value.into_owned())
}

fn body(request: &Request) -> Value {
    request.body_json().unwrap_or_default()
}
