//! The certificate that is served, which another one takes the place of while connections are open.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::{
    DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, UnixTime, pem::PemObject},
    server::{
        ClientHello, ResolvesServerCert,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
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

/// Takes any certificate of a client's, or none, and has it prove that it holds the key. What a certificate is worth is
/// decided by each request that needs one: an API server may well show another one when it asks for a review.
#[derive(Debug)]
struct Holder(WebPkiSupportedAlgorithms);

impl ClientCertVerifier for Holder {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

/// TLS with what is served at the time of each handshake. Clients are asked for a certificate only if `asks`.
pub(crate) fn tls(served: &Arc<Served>, asks: bool) -> Result<Arc<ServerConfig>, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let holder = Holder(provider.signature_verification_algorithms);
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let builder =
        if asks { builder.with_client_cert_verifier(Arc::new(holder)) } else { builder.with_no_client_auth() };
    let mut config = builder.with_cert_resolver(Arc::clone(served) as Arc<dyn ResolvesServerCert>);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
