//! Keys and certificates: an authority, and what it signs.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use pem::{EncodeConfig, LineEnding, Pem};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use secrecy::{ExposeSecret, SecretString};
use x509_parser::{extensions::GeneralName, prelude::X509Certificate};

/// How far back a certificate is valid before it is made: clocks of API servers may be behind ours.
const BACKDATED: SignedDuration = SignedDuration::from_mins(10);

/// How long certificates are valid. Each is replaced after two thirds of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// The authority's.
    pub authority: Duration,
    /// That of the webhook's own certificate.
    pub serving: Duration,
    /// How long API servers are given to learn of an authority before it is relied on, and our replicas to learn of a
    /// certificate before they are relied on to serve it.
    pub overlap: Duration,
}

impl Default for Lifetimes {
    fn default() -> Self {
        let days = |days: u64| Duration::from_hours(24 * days);
        Self { authority: days(365), serving: days(90), overlap: Duration::from_mins(5) }
    }
}

/// A certificate, as far as it decides on its own replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Certificate {
    pub(crate) pem: String,
    der: CertificateDer<'static>,
    pub(crate) issued: Timestamp,
    pub(crate) expires: Timestamp,
}

/// A certificate with its key in PEM.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) certificate: Certificate,
    pub(crate) key: SecretString,
}

impl Certificate {
    /// All certificates of a PEM text; `None` when any of it can't be read.
    pub(crate) fn read_all(pem: &str) -> Option<Vec<Self>> {
        CertificateDer::pem_slice_iter(pem.as_bytes()).map(|der| Self::read(der.ok()?)).collect()
    }

    fn read(der: CertificateDer<'static>) -> Option<Self> {
        let (_, parsed) = x509_parser::parse_x509_certificate(&der).ok()?;
        let validity = parsed.validity();
        let issued = Timestamp::from_second(validity.not_before.timestamp()).ok()?.checked_add(BACKDATED).ok()?;
        let expires = Timestamp::from_second(validity.not_after.timestamp()).ok()?;
        Some(Self { pem: pem(&der), issued, expires, der })
    }

    /// When it is to be replaced.
    pub(crate) fn renewal(&self) -> Timestamp {
        let life = self.expires.duration_since(self.issued);
        self.issued.checked_add(life * 2 / 3).unwrap_or(self.expires)
    }

    /// Whether the authority signed it.
    pub(crate) fn is_signed_by(&self, authority: &Self) -> bool {
        let checked = self.parsed().zip(authority.parsed()).map(|(own, other)| {
            own.issuer() == other.subject() && own.verify_signature(Some(other.public_key())).is_ok()
        });
        checked.unwrap_or(false)
    }

    /// Whether it is for all these names and addresses.
    pub(crate) fn is_for(&self, names: &[String]) -> bool {
        let Some(parsed) = self.parsed() else { return false };
        let Ok(Some(alternatives)) = parsed.subject_alternative_name() else { return false };
        names.iter().all(|name| alternatives.value.general_names.iter().any(|general| is_name(general, name)))
    }

    /// Whether the key is the certificate's.
    pub(crate) fn is_of(&self, key: &SecretString) -> bool {
        let key = KeyPair::from_pem(key.expose_secret());
        let parsed = self.parsed();
        key.ok().zip(parsed).is_some_and(|(key, own)| own.public_key().subject_public_key.data == key.public_key_raw())
    }

    fn parsed(&self) -> Option<X509Certificate<'_>> {
        x509_parser::parse_x509_certificate(&self.der).ok().map(|(_, parsed)| parsed)
    }
}

fn is_name(general: &GeneralName<'_>, name: &str) -> bool {
    match general {
        GeneralName::DNSName(dns) => *dns == name,
        GeneralName::IPAddress(bytes) => match name.parse() {
            Ok(std::net::IpAddr::V4(address)) => address.octets() == **bytes,
            Ok(std::net::IpAddr::V6(address)) => address.octets() == **bytes,
            Err(_) => false,
        },
        _ => false,
    }
}

impl Identity {
    /// A new authority.
    pub(crate) fn authority(now: Timestamp, life: Duration) -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate()?;
        // each has a name of its own: a certificate's issuer is looked for by name
        let mut params = params(&format!("kupenstack-webhook-ca-{}", now.as_millisecond()), now, life);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key)?;
        Self::made(certificate.der(), &key)
    }

    /// A new certificate of a server that has these names or addresses.
    pub(crate) fn serving(&self, names: &[String], now: Timestamp, life: Duration) -> Result<Self, rcgen::Error> {
        let issuer = KeyPair::from_pem(self.key.expose_secret())?;
        let issuer = Issuer::from_ca_cert_der(&self.certificate.der, issuer)?;
        let key = KeyPair::generate()?;
        let mut params = params("kupenstack-webhook", now, life);
        params.subject_alt_names = CertificateParams::new(names)?.subject_alt_names;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &issuer)?;
        Self::made(certificate.der(), &key)
    }

    fn made(der: &CertificateDer<'static>, key: &KeyPair) -> Result<Self, rcgen::Error> {
        let certificate = Certificate::read(der.clone()).ok_or(rcgen::Error::CouldNotParseCertificate)?;
        Ok(Self { certificate, key: key.serialize_pem().into() })
    }
}

fn params(name: &str, now: Timestamp, life: Duration) -> CertificateParams {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let seconds = |time: Timestamp| Duration::from_secs(u64::try_from(time.as_second()).unwrap_or_default());
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = epoch + seconds(now.saturating_sub(BACKDATED).unwrap_or(Timestamp::MIN));
    params.not_after = epoch + seconds(now) + life;
    params
}

fn pem(der: &CertificateDer<'_>) -> String {
    let config = EncodeConfig::new().set_line_ending(LineEnding::LF);
    pem::encode_config(&Pem::new("CERTIFICATE", der.to_vec()), config)
}
