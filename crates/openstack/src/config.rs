//! Where a cloud is, and who we are there.

use std::{fmt, str::FromStr};

use secrecy::SecretString;
use strum::{Display, IntoStaticStr};
use url::Url;

mod clouds_yaml;

/// A cloud and the user to be there: what a `clouds.yaml` entry holds.
#[derive(Debug, Clone)]
pub struct CloudConfig {
    /// Keystone's address, with or without `/v3`. All identity calls go there, so that they do not depend on the
    /// catalogue that they may have to mend.
    pub auth_url: Url,
    /// Who we are.
    pub credentials: Credentials,
    /// The region whose endpoints are used; none takes the catalogue's first that fits.
    pub region: Option<String>,
    /// Which of a service's endpoints is used.
    pub interface: Interface,
    /// A PEM bundle to trust beside the system's certificates.
    pub ca_certificate: Option<Vec<u8>>,
}

/// A Keystone user with a password, and the project to act in.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// The user's name.
    pub username: String,
    /// The user's password.
    pub password: SecretString,
    /// The domain the user belongs to.
    pub user_domain: DomainRef,
    /// The project to act in; without one the token carries no catalogue, and only identity calls work.
    pub project: Option<ProjectScope>,
}

/// A domain by name or by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DomainRef {
    /// By name.
    Name(String),
    /// By id.
    Id(String),
}

impl Default for DomainRef {
    /// The domain that every Keystone starts with.
    fn default() -> Self {
        Self::Id("default".to_owned())
    }
}

/// A project by id, or by its name within a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectScope {
    /// By id.
    Id(String),
    /// By name.
    Name {
        /// The project's name.
        name: String,
        /// Its domain.
        domain: DomainRef,
    },
}

/// Which of a service's endpoints is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Display, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Interface {
    /// For clients inside the cloud's own network, as the operator is.
    #[default]
    Internal,
    /// For everyone.
    Public,
    /// For administrators; modern services have none of their own.
    Admin,
}

impl FromStr for Interface {
    type Err = UnknownInterface;

    /// Also reads the old spelling, `publicURL`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.trim_end_matches("URL") {
            "internal" => Ok(Self::Internal),
            "public" => Ok(Self::Public),
            "admin" => Ok(Self::Admin),
            _ => Err(UnknownInterface),
        }
    }
}

/// Not the name of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not one of internal, public, admin")]
pub struct UnknownInterface;

impl CloudConfig {
    /// Reads one cloud of a `clouds.yaml`.
    ///
    /// As the common tools do, it takes the public interface where none is named. Only password authentication is
    /// known. `cacert` names a file, which is not read here: set [`CloudConfig::ca_certificate`] instead.
    pub fn from_clouds_yaml(yaml: &str, cloud: &str) -> Result<Self, ConfigError> {
        clouds_yaml::read(yaml, cloud)
    }

    /// A `clouds.yaml` with this one cloud in it, for users' tools. `cacert` is left out for the same reason.
    pub fn to_clouds_yaml(&self, cloud: &str) -> Result<SecretString, ConfigError> {
        clouds_yaml::write(self, cloud)
    }

    /// The same with an application credential in place of the user: it names user and project itself.
    pub fn to_clouds_yaml_with(
        &self,
        id: &str,
        secret: &SecretString,
        cloud: &str,
    ) -> Result<SecretString, ConfigError> {
        clouds_yaml::write_with(self, id, secret, cloud)
    }

    /// The address with its version, fit to append paths to.
    pub(crate) fn identity_url(&self) -> Result<Url, ConfigError> {
        let invalid = |problem: &str| ConfigError::Invalid { field: "auth_url", problem: problem.to_owned() };
        let mut url = self.auth_url.clone();
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid("not an http or https URL"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid("holds credentials"));
        }
        url.set_query(None);
        url.set_fragment(None);
        Ok(crate::catalog::versioned(url, "v3"))
    }
}

/// Why a configuration can't be used. Never shows the text it was read from, which holds a password.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Not YAML, or not of the expected shape.
    #[error("malformed clouds.yaml{}", At(*line))]
    Malformed {
        /// Where, if known, counted from 1.
        line: Option<u64>,
    },
    /// The file has no such cloud.
    #[error("no cloud {0:?} in clouds.yaml")]
    NoSuchCloud(String),
    /// A field is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A field makes no sense.
    #[error("{field}: {problem}")]
    Invalid {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// A field asks for what this client does not do.
    #[error("{field} {value:?} is not supported")]
    Unsupported {
        /// The field.
        field: &'static str,
        /// Its value.
        value: String,
    },
    /// The CA bundle is not PEM.
    #[error("the CA certificate is not a PEM bundle")]
    Certificate,
    /// The process has not installed a rustls crypto provider.
    #[error("no rustls crypto provider is installed")]
    NoCryptoProvider,
    /// The HTTP client can't be built, for example because the system trusts no certificate at all.
    #[error("http client")]
    Http(#[source] reqwest::Error),
}

struct At(Option<u64>);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(line) => write!(f, ", line {line}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
