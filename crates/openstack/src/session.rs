//! One user's token: obtained once, shared by all calls, renewed in time.

use std::{
    fmt,
    sync::{
        Arc, Mutex as StdMutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use http::{HeaderValue, Method};
use jiff::Timestamp;
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    sync::{Mutex, MutexGuard},
    time::Instant,
};
use url::Url;

use crate::{
    Credentials, DomainRef, Error, ErrorKind, ProjectScope,
    budget::User,
    call::Call,
    catalog::Catalog,
    service,
    transport::{Answer, Transport},
};

/// What Keystone says about a token, apart from the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenInfo {
    /// Our user.
    pub user_id: String,
    /// The project we act in.
    pub project_id: Option<String>,
    /// When the token ends, by Keystone's clock.
    pub expires_at: Timestamp,
}

pub(crate) struct Token {
    /// Marked sensitive, so that neither we nor the HTTP library print it.
    pub(crate) header: HeaderValue,
    pub(crate) info: TokenInfo,
    pub(crate) catalog: Catalog,
    obtained: Instant,
    life: Duration,
}

#[derive(PartialEq, Eq)]
enum Age {
    Fresh,
    /// Still good, but it is time for a new one.
    Ageing,
    Expired,
}

impl Token {
    /// By our own monotonic clock, so that neither a skewed nor a stepped one matters.
    fn age(&self) -> Age {
        let age = self.obtained.elapsed();
        if age >= self.life {
            Age::Expired
        } else if age >= self.life.mul_f64(0.8) {
            Age::Ageing
        } else {
            Age::Fresh
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("info", &self.info).finish_non_exhaustive()
    }
}

/// Keeps one user's token.
pub(crate) struct Session {
    transport: Arc<Transport>,
    identity_url: Url,
    credentials: Credentials,
    user: User,
    held: StdMutex<Option<Arc<Token>>>,
    /// Whoever holds it asks Keystone; the others wait for that answer.
    turn: Mutex<LastTurn>,
    turns: AtomicU64,
    refused: AtomicBool,
}

#[derive(Default)]
struct LastTurn {
    result: Option<Result<Arc<Token>, Error>>,
    /// No early renewal before this, so that an ailing Keystone is not asked on every call.
    not_before: Option<Instant>,
}

impl Session {
    pub(crate) fn new(transport: Arc<Transport>, identity_url: Url, credentials: Credentials) -> Self {
        Self {
            transport,
            identity_url,
            credentials,
            user: User::new(),
            held: StdMutex::default(),
            turn: Mutex::default(),
            turns: AtomicU64::new(0),
            refused: AtomicBool::new(false),
        }
    }

    pub(crate) fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Whose turn it is when a request waits.
    pub(crate) fn user(&self) -> User {
        self.user
    }

    /// Whether Keystone refused the credentials when last asked.
    pub(crate) fn is_refused(&self) -> bool {
        self.refused.load(Ordering::Acquire)
    }

    /// A valid token. However many calls want one, one asks.
    pub(crate) async fn token(&self) -> Result<Arc<Token>, Error> {
        let seen = self.turns.load(Ordering::Acquire);
        if let Some(token) = self.held() {
            match token.age() {
                Age::Fresh => return Ok(token),
                Age::Ageing => return self.renew_early(token).await,
                Age::Expired => {}
            }
        }
        let turn = self.turn.lock().await;
        if self.turns.load(Ordering::Acquire) > seen
            && let Some(result) = &turn.result
        {
            return result.clone();
        }
        self.ask(turn).await
    }

    /// A new token even if one is held.
    pub(crate) async fn renew(&self) -> Result<Arc<Token>, Error> {
        let turn = self.turn.lock().await;
        self.ask(turn).await
    }

    /// A token instead of this one, if this one is older than `age`.
    pub(crate) async fn newer_than(&self, token: &Arc<Token>, age: Duration) -> Result<Option<Arc<Token>>, Error> {
        if token.obtained.elapsed() <= age {
            return Ok(None);
        }
        self.reject(token);
        self.token().await.map(Some)
    }

    /// Forgets a token that a service refused, unless a newer one is held already.
    pub(crate) fn reject(&self, token: &Arc<Token>) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.as_ref().is_some_and(|held| Arc::ptr_eq(held, token)) {
            *held = None;
        }
    }

    /// One call renews; the others go on with the old token, and so does this one if Keystone is out of order.
    async fn renew_early(&self, token: Arc<Token>) -> Result<Arc<Token>, Error> {
        let Ok(mut turn) = self.turn.try_lock() else {
            return Ok(token);
        };
        if turn.not_before.is_some_and(|not_before| Instant::now() < not_before) {
            return Ok(token);
        }
        turn.not_before = Some(Instant::now() + token.life.mul_f64(0.05));
        match self.ask(turn).await {
            Err(error) if error.kind() != ErrorKind::Unauthorized => Ok(token),
            result => result,
        }
    }

    async fn ask(&self, mut turn: MutexGuard<'_, LastTurn>) -> Result<Arc<Token>, Error> {
        let result = self.request().await.map(Arc::new);
        let refused = result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Unauthorized);
        self.refused.store(refused, Ordering::Release);
        if refused {
            self.hold(None);
        } else if let Ok(token) = &result {
            self.hold(Some(Arc::clone(token)));
        }
        turn.result = Some(result.clone());
        self.turns.fetch_add(1, Ordering::Release);
        result
    }

    async fn request(&self) -> Result<Token, Error> {
        let url = service::append(self.identity_url.clone(), &["auth", "tokens"]);
        let call =
            Call::new("identity", Method::POST, url).json(&login(&self.credentials)).secret(&self.credentials.password);
        let answer = self.transport.send(&call, self.user, None).await?;
        token(&answer)
    }

    fn held(&self) -> Option<Arc<Token>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn hold(&self, token: Option<Arc<Token>>) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = token;
    }
}

/// The body of a password login.
fn login(credentials: &Credentials) -> Value {
    let mut auth = json!({
        "identity": {
            "methods": ["password"],
            "password": {"user": {
                "name": credentials.username,
                "domain": domain(&credentials.user_domain),
                "password": credentials.password.expose_secret(),
            }},
        },
    });
    match &credentials.project {
        Some(ProjectScope::Id(id)) => auth["scope"] = json!({"project": {"id": id}}),
        Some(ProjectScope::Name { name, domain: of }) => {
            auth["scope"] = json!({"project": {"name": name, "domain": domain(of)}});
        }
        // Without this, Keystone would take the user's default project.
        None => auth["scope"] = json!("unscoped"),
    }
    json!({"auth": auth})
}

fn domain(domain: &DomainRef) -> Value {
    match domain {
        DomainRef::Name(name) => json!({"name": name}),
        DomainRef::Id(id) => json!({"id": id}),
    }
}

#[derive(Deserialize)]
struct TokenBody {
    user: Reference,
    project: Option<Reference>,
    issued_at: Timestamp,
    expires_at: Timestamp,
    #[serde(default)]
    catalog: Catalog,
}

#[derive(Deserialize)]
struct Reference {
    id: String,
}

fn token(answer: &Answer) -> Result<Token, Error> {
    let body: TokenBody = answer.member("token")?;
    let Some(mut header) = answer.headers.get("x-subject-token").cloned() else {
        return Err(answer.malformed("no X-Subject-Token"));
    };
    header.set_sensitive(true);
    let Ok(life) = Duration::try_from(body.expires_at.duration_since(body.issued_at)) else {
        return Err(answer.malformed("the token ends before it begins"));
    };
    Ok(Token {
        header,
        info: TokenInfo {
            user_id: body.user.id,
            project_id: body.project.map(|project| project.id),
            expires_at: body.expires_at,
        },
        catalog: body.catalog,
        obtained: Instant::now(),
        life,
    })
}
