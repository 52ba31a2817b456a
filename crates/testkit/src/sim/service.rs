//! What a simulated service is: a table of routes, each with its handler, and the service's own way to refuse.

use jiff::Timestamp;

use super::{
    glance::Glance,
    http::{Answer, Outcome, Refusal, Request},
    ids::Ids,
    neutron::Neutron,
    quota::Quotas,
};

/// A service of the cloud. One file or folder each: state, routes, handlers.
pub trait Service: Send + Sized + 'static {
    /// The type in the catalogue, such as `image`; also the prefix of its paths.
    const TYPE: &'static str;
    /// The name in the catalogue, such as `glance`.
    const NAME: &'static str;
    /// What its endpoint has after the prefix, such as `/v2.1`.
    const ENDPOINT_PATH: &'static str = "";
    /// The microversions it speaks, for services that have them.
    const MICROVERSIONS: Option<Microversions> = None;
    /// What it answers.
    const ROUTES: &'static [Route<Self>];

    /// How it words a refusal.
    fn refuse(&self, request: &Request, refusal: &Refusal) -> Answer;

    /// Lets happen what has fallen due. Called before every look at the service.
    fn advance(&mut self, now: Timestamp) {
        let _ = now;
    }

    /// A body begins to stream in.
    fn begin(&mut self, call: &mut Call<'_>) -> Result<(), Refusal> {
        let _ = call;
        Ok(())
    }

    /// The stream broke before its end.
    fn broken(&mut self, call: &mut Call<'_>) {
        let _ = call;
    }
}

/// One method on one path.
pub struct Route<S> {
    /// The verb.
    pub method: &'static str,
    /// The path below the prefix; `{…}` stands for one segment.
    pub template: &'static str,
    /// Whether it takes a token.
    pub access: Access,
    /// Whether the body is handed over as it comes: it may be large, and may break.
    pub streamed: bool,
    /// What it does.
    pub handler: fn(&mut S, &mut Call<'_>) -> Outcome,
}

/// Who may come as far as a route's handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everyone.
    Open,
    /// Whoever has a valid token.
    Token,
}

impl<S> Route<S> {
    /// A route that takes a token.
    pub const fn new(
        method: &'static str,
        template: &'static str,
        handler: fn(&mut S, &mut Call<'_>) -> Outcome,
    ) -> Self {
        Self { method, template, access: Access::Token, streamed: false, handler }
    }

    /// The same for everyone.
    #[must_use]
    pub const fn open(mut self) -> Self {
        self.access = Access::Open;
        self
    }

    /// The same with a body that streams.
    #[must_use]
    pub const fn streamed(mut self) -> Self {
        self.streamed = true;
        self
    }

    fn params(&self, segments: &[String]) -> Option<Vec<String>> {
        let mut params = Vec::new();
        let mut given = segments.iter();
        for wanted in self.template.split('/').filter(|wanted| !wanted.is_empty()) {
            let given = given.next()?;
            if wanted.starts_with('{') {
                params.push(given.clone());
            } else if wanted != given {
                return None;
            }
        }
        given.next().is_none().then_some(params)
    }
}

/// Whoever holds a token.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// The token.
    pub token: String,
    /// The user's id.
    pub user_id: String,
    /// The project the token is for.
    pub project_id: Option<String>,
    /// The domain of that project, or the one the token is for.
    pub domain_id: Option<String>,
    /// The names of the roles, implied ones included.
    pub roles: Vec<String>,
}

impl Caller {
    /// Whether one of the roles has this name.
    pub fn has_role(&self, name: &str) -> bool {
        self.roles.iter().any(|role| role == name)
    }

    /// Whether the policies take it for an administrator.
    pub fn is_admin(&self) -> bool {
        self.has_role("admin")
    }

    /// The project, or nothing.
    pub fn project(&self) -> &str {
        self.project_id.as_deref().unwrap_or_default()
    }
}

/// A request on its way through a handler.
pub struct Call<'a> {
    /// The request.
    pub request: &'a Request,
    /// The path as its service documents it.
    pub template: &'static str,
    /// The segments that the template leaves open.
    pub params: Vec<String>,
    /// Who asks; nobody on an open route.
    pub caller: Caller,
    /// The time.
    pub now: Timestamp,
    /// The time that reads are to see instead.
    pub as_of: Option<Timestamp>,
    /// Where the cloud is, such as `http://127.0.0.1:1234`.
    pub base: &'a str,
    /// The microversion that was agreed on.
    pub microversion: Option<Version>,
    /// A source of identifiers.
    pub ids: &'a mut Ids,
    /// What projects may have.
    pub quotas: &'a Quotas,
    pub(super) peers: Option<Peers<'a>>,
}

/// The services that the called one asks in its turn, if it asks any.
pub(super) struct Peers<'a> {
    pub(super) glance: &'a Glance,
    pub(super) neutron: &'a mut Neutron,
}

impl Call<'_> {
    /// A segment that the template leaves open.
    pub fn param(&self, index: usize) -> &str {
        self.params.get(index).map(String::as_str).unwrap_or_default()
    }
}

/// A version such as 2.90.
pub type Version = (u32, u32);

/// The microversions of a service.
#[derive(Debug, Clone, Copy)]
pub struct Microversions {
    /// The oldest, which it speaks to whoever asks for none.
    pub oldest: Version,
    /// The newest.
    pub newest: Version,
}

impl Microversions {
    /// What a request's `OpenStack-API-Version` comes to for a service of this type.
    pub fn negotiate(self, service_type: &str, header: Option<&str>) -> Result<Version, Refusal> {
        let asked = header.into_iter().flat_map(|header| header.split(',')).find_map(|one| {
            let (service, version) = one.trim().split_once(' ')?;
            (service == service_type).then_some(version.trim())
        });
        let version = match asked {
            None => return Ok(self.oldest),
            Some("latest") => return Ok(self.newest),
            Some(version) => version,
        };
        let parsed =
            version.split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        match parsed {
            Some(parsed) if (self.oldest..=self.newest).contains(&parsed) => Ok(parsed),
            Some(_) => Err(Refusal::new(
                http::StatusCode::NOT_ACCEPTABLE,
                format!(
                    "Version {version} is not supported by the API. Minimum is {}.{} and maximum is {}.{}.",
                    self.oldest.0, self.oldest.1, self.newest.0, self.newest.1
                ),
            )),
            None => Err(Refusal::bad_request(format!(
                "API Version String {version} is of invalid format. Must be of format MajorNum.MinorNum."
            ))),
        }
    }
}

/// What is said of a path that no route has.
pub(super) const NO_SUCH_PATH: &str = "The resource could not be found.";

/// A route that was found.
pub(super) struct Found {
    index: usize,
    pub(super) template: &'static str,
    pub(super) params: Vec<String>,
    pub(super) access: Access,
    pub(super) streamed: bool,
}

/// A [`Service`] whatever its type.
pub(super) trait AnyService: Send {
    fn service_type(&self) -> &'static str;
    fn microversions(&self) -> Option<Microversions>;
    fn find(&self, method: &str, segments: &[String]) -> Result<Found, Refusal>;
    fn handle(&mut self, found: &Found, call: &mut Call<'_>) -> Outcome;
    fn refuse(&self, request: &Request, refusal: &Refusal) -> Answer;
    fn begin(&mut self, call: &mut Call<'_>) -> Result<(), Refusal>;
    fn broken(&mut self, call: &mut Call<'_>);
}

impl<S: Service> AnyService for S {
    fn service_type(&self) -> &'static str {
        S::TYPE
    }

    fn microversions(&self) -> Option<Microversions> {
        S::MICROVERSIONS
    }

    fn find(&self, method: &str, segments: &[String]) -> Result<Found, Refusal> {
        let mut known = false;
        for (index, route) in S::ROUTES.iter().enumerate() {
            let Some(params) = route.params(segments) else { continue };
            known = true;
            if route.method == method {
                let Route { template, access, streamed, .. } = *route;
                return Ok(Found { index, template, params, access, streamed });
            }
        }
        Err(if known {
            Refusal::new(http::StatusCode::METHOD_NOT_ALLOWED, "The method is not allowed for the requested URL.")
        } else {
            Refusal::not_found(NO_SUCH_PATH)
        })
    }

    fn handle(&mut self, found: &Found, call: &mut Call<'_>) -> Outcome {
        (S::ROUTES[found.index].handler)(self, call)
    }

    fn refuse(&self, request: &Request, refusal: &Refusal) -> Answer {
        Service::refuse(self, request, refusal)
    }

    fn begin(&mut self, call: &mut Call<'_>) -> Result<(), Refusal> {
        Service::begin(self, call)
    }

    fn broken(&mut self, call: &mut Call<'_>) {
        Service::broken(self, call);
    }
}

#[cfg(test)]
mod tests {
    use super::Microversions;

    #[test]
    fn microversions_are_agreed_on() {
        let versions = Microversions { oldest: (2, 1), newest: (2, 100) };
        let agreed = |header| versions.negotiate("compute", header).map_err(|refusal| refusal.status.as_u16());
        assert_eq!(agreed(None), Ok((2, 1)));
        assert_eq!(agreed(Some("volume 3.70")), Ok((2, 1)));
        assert_eq!(agreed(Some("volume 3.70, compute 2.90")), Ok((2, 90)));
        assert_eq!(agreed(Some("compute latest")), Ok((2, 100)));
        assert_eq!(agreed(Some("compute 2.101")), Err(406));
        assert_eq!(agreed(Some("compute two")), Err(400));
    }
}
