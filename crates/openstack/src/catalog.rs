//! The service catalogue that comes with a token.

use serde::Deserialize;
use url::Url;

use crate::Interface;

/// Where the services are.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Catalog(Vec<CatalogService>);

#[derive(Debug, Deserialize)]
struct CatalogService {
    #[serde(rename = "type")]
    service_type: String,
    #[serde(default)]
    endpoints: Vec<CatalogEndpoint>,
}

#[derive(Debug, Deserialize)]
struct CatalogEndpoint {
    interface: String,
    region_id: Option<String>,
    url: String,
}

/// Official service types and what clouds still call them, the best first.
const ALIASES: [(&str, &[&str]); 5] = [
    ("block-storage", &["volumev3", "block-store", "volume"]),
    ("key-manager", &["keymanager"]),
    ("load-balancer", &["loadbalancer"]),
    ("shared-file-system", &["sharev2", "share"]),
    ("container-infrastructure-management", &["container-infra"]),
];

impl Catalog {
    /// The URL as the catalogue has it; an official type finds its aliases too.
    pub(crate) fn find(&self, service_type: &str, interface: Interface, region: Option<&str>) -> Option<&str> {
        let aliases = ALIASES.iter().find(|(official, _)| *official == service_type).map_or(&[][..], |(_, old)| *old);
        let interface = interface.into();
        std::iter::once(&service_type)
            .chain(aliases)
            .find_map(|name| self.endpoint(name, interface, region))
            .map(|endpoint| endpoint.url.as_str())
    }

    fn endpoint(&self, name: &str, interface: &str, region: Option<&str>) -> Option<&CatalogEndpoint> {
        let wanted = |endpoint: &&CatalogEndpoint| {
            endpoint.interface == interface && region.is_none_or(|region| endpoint.region_id.as_deref() == Some(region))
        };
        self.0
            .iter()
            .filter(|service| service.service_type == name)
            .find_map(|service| service.endpoints.iter().find(wanted))
    }
}

/// The URL ending in a version: some catalogues have it, some do not.
pub(crate) fn versioned(mut url: Url, version: &str) -> Url {
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty();
    }
    if !ends_in_a_version(&url)
        && let Ok(mut segments) = url.path_segments_mut()
    {
        segments.push(version);
    }
    url
}

/// The URL where a service answers for itself rather than for one version of its API.
pub(crate) fn unversioned(mut url: Url) -> Url {
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty();
    }
    if ends_in_a_version(&url)
        && let Ok(mut segments) = url.path_segments_mut()
    {
        segments.pop();
    }
    url
}

fn ends_in_a_version(url: &Url) -> bool {
    let last = url.path_segments().and_then(|mut segments| segments.next_back()).unwrap_or_default();
    last.strip_prefix('v').is_some_and(|number| number.starts_with(|digit: char| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests;
