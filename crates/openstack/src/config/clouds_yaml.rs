//! The `clouds.yaml` format.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use url::Url;

use super::{CloudConfig, ConfigError, Credentials, DomainRef, Interface, ProjectScope};

#[derive(Deserialize, Serialize)]
struct File {
    clouds: BTreeMap<String, Cloud>,
}

#[derive(Deserialize, Serialize)]
struct Cloud {
    #[serde(default)]
    auth: Login,
    #[serde(skip_serializing_if = "Option::is_none")]
    auth_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    region_name: Option<String>,
    #[serde(alias = "endpoint_type", skip_serializing_if = "Option::is_none")]
    interface: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verify: Option<bool>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Login {
    auth_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    username: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    password: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_domain_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_domain_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project_domain_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project_domain_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_scope: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    application_credential_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    application_credential_secret: Option<String>,
}

pub(super) fn read(yaml: &str, name: &str) -> Result<CloudConfig, ConfigError> {
    let mut file: File = serde_saphyr::from_str(yaml)
        // The error itself quotes the text around the mistake.
        .map_err(|error| ConfigError::Malformed { line: error.location().map(|at| at.line()) })?;
    let cloud = file.clouds.remove(name).ok_or_else(|| ConfigError::NoSuchCloud(name.to_owned()))?;
    cloud.refuse_what_is_not_supported()?;
    let url = cloud.auth.auth_url.as_deref().ok_or(ConfigError::Missing("auth_url"))?;
    let auth_url =
        Url::parse(url).map_err(|error| ConfigError::Invalid { field: "auth_url", problem: error.to_string() })?;
    let interface = match &cloud.interface {
        None => Interface::Public,
        Some(text) => text.parse().map_err(|error: super::UnknownInterface| ConfigError::Invalid {
            field: "interface",
            problem: error.to_string(),
        })?,
    };
    let credentials = cloud.auth.credentials()?;
    Ok(CloudConfig { auth_url, credentials, region: cloud.region_name, interface, ca_certificate: None })
}

pub(super) fn write(config: &CloudConfig, name: &str) -> Result<SecretString, ConfigError> {
    file(config, Login::from(config), None, name)
}

pub(super) fn write_with(
    config: &CloudConfig,
    id: &str,
    secret: &SecretString,
    name: &str,
) -> Result<SecretString, ConfigError> {
    let auth = Login {
        auth_url: Some(config.auth_url.to_string()),
        application_credential_id: Some(id.to_owned()),
        application_credential_secret: Some(secret.expose_secret().to_owned()),
        ..Login::default()
    };
    file(config, auth, Some("v3applicationcredential"), name)
}

fn file(config: &CloudConfig, auth: Login, auth_type: Option<&str>, name: &str) -> Result<SecretString, ConfigError> {
    let cloud = Cloud {
        auth,
        auth_type: auth_type.map(ToOwned::to_owned),
        region_name: config.region.clone(),
        interface: Some(config.interface.to_string()),
        verify: None,
    };
    let file = File { clouds: BTreeMap::from([(name.to_owned(), cloud)]) };
    let yaml = serde_saphyr::to_string(&file).map_err(|_| ConfigError::Malformed { line: None })?;
    Ok(yaml.into())
}

impl Cloud {
    fn refuse_what_is_not_supported(&self) -> Result<(), ConfigError> {
        if let Some(value) = self.auth_type.as_deref().filter(|kind| !matches!(*kind, "password" | "v3password")) {
            return Err(ConfigError::Unsupported { field: "auth_type", value: value.to_owned() });
        }
        if let Some(value) = &self.auth.system_scope {
            return Err(ConfigError::Unsupported { field: "system_scope", value: value.clone() });
        }
        if self.verify == Some(false) {
            return Err(ConfigError::Unsupported { field: "verify", value: "false".to_owned() });
        }
        Ok(())
    }
}

impl Login {
    fn credentials(self) -> Result<Credentials, ConfigError> {
        let project = match (self.project_id, self.project_name) {
            (Some(id), _) => Some(ProjectScope::Id(id)),
            (None, Some(name)) => {
                let domain = domain(self.project_domain_id, self.project_domain_name);
                Some(ProjectScope::Name { name, domain })
            }
            (None, None) => None,
        };
        Ok(Credentials {
            username: self.username.ok_or(ConfigError::Missing("username"))?,
            password: self.password.ok_or(ConfigError::Missing("password"))?.into(),
            user_domain: domain(self.user_domain_id, self.user_domain_name),
            project,
        })
    }
}

fn domain(id: Option<String>, name: Option<String>) -> DomainRef {
    match (id, name) {
        (Some(id), _) => DomainRef::Id(id),
        (None, Some(name)) => DomainRef::Name(name),
        (None, None) => DomainRef::default(),
    }
}

impl From<&CloudConfig> for Login {
    fn from(config: &CloudConfig) -> Self {
        let credentials = &config.credentials;
        let mut auth = Self {
            auth_url: Some(config.auth_url.to_string()),
            username: Some(credentials.username.clone()),
            password: Some(credentials.password.expose_secret().to_owned()),
            ..Self::default()
        };
        (auth.user_domain_id, auth.user_domain_name) = id_and_name(&credentials.user_domain);
        match &credentials.project {
            Some(ProjectScope::Id(id)) => auth.project_id = Some(id.clone()),
            Some(ProjectScope::Name { name, domain }) => {
                auth.project_name = Some(name.clone());
                (auth.project_domain_id, auth.project_domain_name) = id_and_name(domain);
            }
            None => {}
        }
        auth
    }
}

fn id_and_name(domain: &DomainRef) -> (Option<String>, Option<String>) {
    match domain {
        DomainRef::Id(id) => (Some(id.clone()), None),
        DomainRef::Name(name) => (None, Some(name.clone())),
    }
}
