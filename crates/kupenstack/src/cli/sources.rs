//! Flags about the sources of images.

use std::{net::IpAddr, path::PathBuf};

use clap::Args;
use ipnet::IpNet;
use kupenstack_resources::{FetchSettings, Guard, Proxies};
use tokio::net::lookup_host;

/// Proxies are taken from `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`: they may carry passwords.
#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    /// Ranges of addresses to fetch images from in spite of everything that denies them, separated by commas
    #[arg(long, value_delimiter = ',', value_parser = range)]
    image_sources_allow: Vec<IpNet>,
    /// Ranges of addresses not to fetch images from, separated by commas
    #[arg(long, value_delimiter = ',', value_parser = range)]
    image_sources_deny: Vec<IpNet>,
    /// File with certificates (PEM) of authorities to trust beside the system's
    #[arg(long)]
    image_sources_ca: Option<PathBuf>,
    /// Host of the Kubernetes API server, from where no images are fetched
    #[arg(long, env = "KUBERNETES_SERVICE_HOST")]
    api_server_host: Option<String>,
}

impl SourceArgs {
    pub(crate) async fn settings(&self) -> FetchSettings {
        let guard = Guard::new(self.image_sources_allow.clone(), self.image_sources_deny.clone());
        let servers = self.api_servers().await;
        let protect = |guard: Guard, address| guard.protecting(address, "the Kubernetes API server");
        FetchSettings {
            guard: servers.into_iter().fold(guard, protect),
            proxies: Proxies::from_env(),
            ca_bundle: self.image_sources_ca.clone(),
            ..FetchSettings::default()
        }
    }

    /// Some clusters name their API server instead of giving its address.
    async fn api_servers(&self) -> Vec<IpAddr> {
        let Some(host) = self.api_server_host.as_deref().filter(|host| !host.is_empty()) else { return Vec::new() };
        match lookup_host((host, 443)).await {
            Ok(addresses) => addresses.map(|address| address.ip()).collect(),
            Err(error) => {
                tracing::warn!(host, %error, "the API server's address is not known, images are not kept from it");
                Vec::new()
            }
        }
    }
}

/// A range, or one address.
fn range(text: &str) -> Result<IpNet, String> {
    let address = || text.parse::<IpAddr>().map(IpNet::from);
    text.parse().or_else(|_| address()).map_err(|_| "neither a range such as 10.0.0.0/8 nor an address".to_owned())
}

/// A number of bytes as Kubernetes writes it.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 9] = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("Ti", 1 << 40),
        ("k", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
        ("", 1),
    ];
    let unit = |&(suffix, unit): &(&str, u64)| Some((text.strip_suffix(suffix)?, unit));
    let (number, unit) = UNITS.iter().find_map(unit).unwrap_or((text, 1));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let parse = || -> Option<u64> {
        let part = if fraction.is_empty() {
            0
        } else {
            let scale = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
            u64::try_from(u128::from(fraction.parse::<u64>().ok()?) * u128::from(unit) / u128::from(scale)).ok()?
        };
        whole.parse::<u64>().ok()?.checked_mul(unit)?.checked_add(part)
    };
    parse().ok_or_else(|| "not a number of bytes such as 20Gi".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_kubernetes_writes_them() {
        for (text, expected) in [
            ("0", 0),
            ("5000", 5000),
            ("20Gi", 20 << 30),
            ("1.5Ki", 1536),
            ("2k", 2000),
            ("0.25T", 250_000_000_000),
            ("7Mi", 7 << 20),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for wrong in ["", "Gi", "much", "-1", "1.Zi", "20 Gi", "20000000000Ti", "1.00000000000000000000001Gi"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_range_may_be_one_address() {
        assert_eq!(range("10.0.0.0/8"), Ok("10.0.0.0/8".parse().unwrap()));
        assert_eq!(range("10.0.0.1"), Ok("10.0.0.1/32".parse().unwrap()));
        assert_eq!(range("fd00::1"), Ok("fd00::1/128".parse().unwrap()));
        assert!(range("cluster.local").is_err() && range("10.0.0.0/33").is_err());
    }

    #[tokio::test]
    async fn the_api_server_is_known_by_address_or_by_name() {
        let args = |host: Option<&str>| SourceArgs {
            image_sources_allow: Vec::new(),
            image_sources_deny: Vec::new(),
            image_sources_ca: None,
            api_server_host: host.map(str::to_owned),
        };
        let address: IpAddr = "10.96.0.1".parse().unwrap();
        assert_eq!(args(Some("10.96.0.1")).api_servers().await, [address]);
        assert!(args(Some("localhost")).api_servers().await.iter().any(IpAddr::is_loopback));
        for host in [None, Some(""), Some("no-such-host.invalid")] {
            assert!(args(host).api_servers().await.is_empty());
        }
    }
}
