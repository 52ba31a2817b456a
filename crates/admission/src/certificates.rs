//! The certificate that is served, which another one takes the place of while connections are open.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use secrecy::{ExposeSecret, SecretString};

/// Why a certificate can't be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("it is not PEM: {0}")]
    Pem(#[from] rustls::pki_types::pem::Error),
    #[error("{0}")]
    Tls(#[from] rustls::Error),
}

/// What new connections get; nothing at first.
#[derive(Debug, Default)]
pub(crate) struct Served(RwLock<Option<Arc<CertifiedKey>>>);

impl Served {
    /// Serves this chain from now on. Returns whether it is another one than before.
    pub(crate) fn set(&self, chain: &str, key: &SecretString) -> Result<bool, Unusable> {
        let certified = certified(chain, key)?;
        let mut served = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let changed = served.as_ref().is_none_or(|before| before.cert != certified.cert);
        *served = Some(Arc::new(certified));
        Ok(changed)
    }
}

/// A chain with its key, which belong together.
fn certified(chain: &str, key: &SecretString) -> Result<CertifiedKey, Unusable> {
    let chain = CertificateDer::pem_slice_iter(chain.as_bytes()).collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(key.expose_secret().as_bytes())?;
    let certified = CertifiedKey::new(chain, ring::sign::any_supported_type(&key)?);
    certified.keys_match()?;
    Ok(certified)
}

impl ResolvesServerCert for Served {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// TLS with what is served at the time of each handshake.
pub(crate) fn tls(served: &Arc<Served>) -> Result<Arc<ServerConfig>, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::clone(served) as Arc<dyn ResolvesServerCert>);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
