//! The certificates of a control plane that lives for one test run.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};

/// A certificate and its key, in PEM.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// An authority of a control plane.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new(name: &str) -> Result<Self, rcgen::Error> {
        let mut params = named(name, None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        Ok(Self(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?))
    }

    pub(crate) fn certificate(&self) -> String {
        self.0.pem()
    }

    /// A server that is reached by its address.
    pub(crate) fn server(&self, address: Ipv4Addr) -> Result<Identity, rcgen::Error> {
        let mut params = named("kube-apiserver", None);
        params.subject_alt_names = vec![SanType::IpAddress(IpAddr::V4(address))];
        self.sign(params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A Kubernetes user, perhaps in a group.
    pub(crate) fn user(&self, name: &str, group: Option<&str>) -> Result<Identity, rcgen::Error> {
        self.sign(named(name, group), ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn sign(&self, mut params: CertificateParams, purpose: ExtendedKeyUsagePurpose) -> Result<Identity, rcgen::Error> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![purpose];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.0)?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

impl Identity {
    /// Writes `<name>.crt` and `<name>.key`.
    pub(crate) fn write(&self, folder: &Path, name: &str) -> io::Result<()> {
        fs::write(folder.join(format!("{name}.crt")), &self.certificate)?;
        fs::write(folder.join(format!("{name}.key")), &self.key)
    }
}

/// Writes the pair of keys with which service accounts' tokens are signed and checked.
pub(crate) fn write_token_keys(folder: &Path) -> io::Result<()> {
    let key = KeyPair::generate().map_err(io::Error::other)?;
    fs::write(folder.join("tokens.key"), key.serialize_pem())?;
    fs::write(folder.join("tokens.pub"), key.public_key_pem())
}

fn named(name: &str, group: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    if let Some(group) = group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    params
}
