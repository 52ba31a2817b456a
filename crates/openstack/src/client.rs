//! The client: one user at one cloud.

use std::{fmt, sync::Arc, time::Duration};

use http::Method;
use url::Url;

use crate::{
    CloudConfig, Compute, ConfigError, Credentials, Error, ErrorKind, Identity, ImageService, Interface,
    NetworkService, Options, ProjectScope, TokenInfo,
    call::Call,
    catalog, service,
    session::{Session, Token},
    transport::{Answer, Transport},
};

/// A catalogue younger than this that lacks a service is believed: asking anew at every call would be a login each.
const CATALOG_TRUSTED: Duration = Duration::from_secs(10);

/// One user at one cloud. Cheap to clone; clones share the token.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    transport: Arc<Transport>,
    cloud: Arc<Cloud>,
    session: Session,
}

struct Cloud {
    identity_url: Url,
    region: Option<String>,
    interface: Interface,
}

impl Client {
    /// A client for a cloud; asks nothing of it yet.
    pub fn new(config: CloudConfig, options: Options) -> Result<Self, ConfigError> {
        let transport = Transport::new(config.ca_certificate.as_deref(), options)?;
        let cloud = Cloud { identity_url: config.identity_url()?, region: config.region, interface: config.interface };
        Ok(Self::assemble(Arc::new(transport), Arc::new(cloud), config.credentials))
    }

    /// Another user at the same cloud: an own token, the same connections, budget and observer.
    #[must_use]
    pub fn act_as(&self, credentials: Credentials) -> Self {
        Self::assemble(Arc::clone(&self.0.transport), Arc::clone(&self.0.cloud), credentials)
    }

    fn assemble(transport: Arc<Transport>, cloud: Arc<Cloud>, credentials: Credentials) -> Self {
        let session = Session::new(Arc::clone(&transport), cloud.identity_url.clone(), credentials);
        Self(Arc::new(Inner { transport, cloud, session }))
    }

    /// Asks Keystone for a new token even if one is held: the proof that it works and knows us.
    pub async fn authenticate(&self) -> Result<TokenInfo, Error> {
        self.0.session.renew().await.map(|token| token.info.clone())
    }

    /// The project it acts in. Asks Keystone only where the credentials name the project instead of giving its id.
    pub async fn project_id(&self) -> Result<Option<String>, Error> {
        match &self.0.session.credentials().project {
            Some(ProjectScope::Id(id)) => Ok(Some(id.clone())),
            _ => Ok(self.0.session.token().await?.info.project_id.clone()),
        }
    }

    /// The status of a GET without a token, below the address where the service answers for itself: the proof that
    /// an API is up, for example `probe("image", "/healthcheck")`. Any answer counts, and nothing is repeated.
    ///
    /// The address comes from the catalogue, except Keystone's, which needs no login.
    pub async fn probe(&self, service_type: &str, path: &str) -> Result<u16, Error> {
        let base = catalog::unversioned(self.endpoint(service_type).await?);
        let segments: Vec<_> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let url = service::append(base, &segments);
        let call = Call::new(service_type, Method::GET, url);
        match self.0.transport.attempt(&call, self.0.session.user(), None).await {
            Ok(answer) => Ok(answer.status.as_u16()),
            Err(error) => error.status().ok_or(error),
        }
    }

    /// Keystone: domains, projects, users, roles, services.
    pub fn identity(&self) -> Identity {
        Identity::new(self.clone())
    }

    /// Glance.
    pub fn image(&self) -> ImageService {
        ImageService::new(self.clone())
    }

    /// Nova.
    pub fn compute(&self) -> Compute {
        Compute::new(self.clone())
    }

    /// Neutron.
    pub fn network(&self) -> NetworkService {
        NetworkService::new(self.clone())
    }

    /// Whether Keystone refused the credentials when last asked.
    pub(crate) fn is_refused(&self) -> bool {
        self.0.session.is_refused()
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.0.transport
    }

    pub(crate) fn session(&self) -> &Session {
        &self.0.session
    }

    /// Sends a call with a token. A refused token is replaced once: it may have been revoked, or Keystone's keys lost.
    pub(crate) async fn send(&self, call: &Call) -> Result<Answer, Error> {
        let (token, user) = (self.0.session.token().await?, self.0.session.user());
        match self.0.transport.send(call, user, Some(&token.header)).await {
            Err(error) if error.kind() == ErrorKind::Unauthorized => {
                self.0.session.reject(&token);
                let token = self.0.session.token().await?;
                self.0.transport.send(call, user, Some(&token.header)).await
            }
            result => result,
        }
    }

    /// Where a service is. Identity is where we log in.
    pub(crate) async fn endpoint(&self, service_type: &str) -> Result<Url, Error> {
        if service_type == "identity" {
            return Ok(self.0.cloud.identity_url.clone());
        }
        let token = self.0.session.token().await?;
        if let Some(url) = self.in_catalog(&token, service_type) {
            return Ok(url);
        }
        // the catalogue is as old as the login: a service may have been registered since
        let found = match self.0.session.newer_than(&token, CATALOG_TRUSTED).await? {
            Some(token) => self.in_catalog(&token, service_type),
            None => None,
        };
        found.ok_or_else(|| Error::NoEndpoint {
            service_type: service_type.to_owned(),
            region: self.0.cloud.region.clone(),
            interface: self.0.cloud.interface,
        })
    }

    fn in_catalog(&self, token: &Token, service_type: &str) -> Option<Url> {
        let Cloud { region, interface, .. } = &*self.0.cloud;
        let url = token.catalog.find(service_type, *interface, region.as_deref())?;
        Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("identity_url", &self.0.cloud.identity_url.as_str())
            .field("username", &self.0.session.credentials().username)
            .finish_non_exhaustive()
    }
}
