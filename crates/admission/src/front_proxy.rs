//! Who asks, behind an API server that passes requests on: only a certificate of the API server's makes a header worth
//! anything.

use std::{collections::BTreeMap, sync::Arc};

use http::{HeaderMap, HeaderName};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, runtime::watcher};
use kupenstack_runtime::{Context, ObjectRef, Shared};
use percent_encoding::percent_decode_str;
use rustls::{
    RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, UnixTime, pem::PemObject},
    server::WebPkiClientVerifier,
};

/// Where every API server tells how it makes itself known.
const NAMESPACE: &str = "kube-system";
const OBJECT: &str = "extension-apiserver-authentication";
/// Its keys: authorities in PEM, and names (a list in JSON) of which one has to be in the certificate.
const AUTHORITIES: &str = "requestheader-client-ca-file";
const NAMES: &str = "requestheader-allowed-names";
/// The headers that API servers write, and remove from what users send, whatever else the object tells.
const USER: HeaderName = HeaderName::from_static("x-remote-user");
const GROUP: HeaderName = HeaderName::from_static("x-remote-group");
const EXTRA: &str = "x-remote-extra-";

/// Why a client is not taken for an API server.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum Stranger {
    #[error("only the API server is answered, which shows a certificate")]
    NoCertificate,
    #[error(
        "ConfigMap {OBJECT} in {NAMESPACE} has no usable {AUTHORITIES}: the API server needs its flags for aggregation"
    )]
    NoAuthority,
    #[error("the certificate is of no authority in {AUTHORITIES}: {0}")]
    Untrusted(rustls::Error),
    #[error("the certificate's name {0:?} is not in {NAMES}")]
    Name(String),
    #[error("the request does not tell whose it is")]
    NoUser,
}

/// What this cluster's API servers say of themselves, as it is now.
pub(crate) struct FrontProxy(Arc<Shared<ConfigMap>>);

impl FrontProxy {
    pub(crate) fn start(context: &Context) -> Self {
        let one = watcher::Config::default().fields(&format!("metadata.name={OBJECT}"));
        Self(Shared::start(Api::namespaced(context.client.clone(), NAMESPACE), one, context))
    }

    /// Whether a client that has proved to hold this chain's first certificate is an API server.
    pub(crate) fn check(&self, chain: &[CertificateDer<'_>]) -> Result<(), Stranger> {
        let known = self.0.get(&ObjectRef::new(OBJECT).within(NAMESPACE));
        let data = known.and_then(|object| object.data.clone()).unwrap_or_default();
        check(&data, chain, UnixTime::now())
    }
}

fn check(data: &BTreeMap<String, String>, chain: &[CertificateDer<'_>], now: UnixTime) -> Result<(), Stranger> {
    let (own, others) = chain.split_first().ok_or(Stranger::NoCertificate)?;
    let mut roots = RootCertStore::empty();
    let authorities = data.get(AUTHORITIES).map_or(&[][..], |pem| pem.as_bytes());
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(authorities).flatten());
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let verifier = verifier.map_err(|_| Stranger::NoAuthority)?;
    verifier.verify_client_cert(own, others, now).map_err(Stranger::Untrusted)?;
    // names that can't be read are no leave for everybody
    let names: Vec<String> = match data.get(NAMES) {
        Some(names) => serde_json::from_str(names).map_err(|_| Stranger::NoAuthority)?,
        None => Vec::new(),
    };
    let name = common_name(own);
    if names.is_empty() || names.contains(&name) { Ok(()) } else { Err(Stranger::Name(name)) }
}

fn common_name(certificate: &CertificateDer<'_>) -> String {
    let parsed = x509_parser::parse_x509_certificate(certificate).ok();
    let name =
        parsed.and_then(|(_, parsed)| parsed.subject().iter_common_name().next()?.as_str().ok().map(str::to_owned));
    name.unwrap_or_default()
}

/// Whose request it is. Their UID is not told: older API servers let users write that header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) groups: Vec<String>,
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Reads what an API server wrote. All of it counts: what is left out might be what limits the user.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, Stranger> {
        let mut names = texts(headers, &USER)?;
        let name = names.pop().filter(|name| names.is_empty() && !name.is_empty()).ok_or(Stranger::NoUser)?;
        let mut extra = BTreeMap::new();
        for header in headers.keys() {
            if let Some(key) = header.as_str().strip_prefix(EXTRA) {
                let key = percent_decode_str(key).decode_utf8().map_err(|_| Stranger::NoUser)?;
                extra.insert(key.into_owned(), texts(headers, header)?);
            }
        }
        Ok(Self { name, groups: texts(headers, &GROUP)?, extra })
    }
}

fn texts(headers: &HeaderMap, name: &HeaderName) -> Result<Vec<String>, Stranger> {
    let texts = headers.get_all(name).iter().map(|value| String::from_utf8(value.as_bytes().to_vec()));
    texts.collect::<Result<_, _>>().map_err(|_| Stranger::NoUser)
}

#[cfg(test)]
mod tests;
