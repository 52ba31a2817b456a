use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256, Sha512};
use strum::{Display, EnumString};
use url::Url;

use crate::{Error, Format};

/// Where an image is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    url: Url,
    checksum: Option<Checksum>,
    wanted: Option<Format>,
}

impl Source {
    /// A file behind an `http` or `https` address, with the checksum it must have.
    pub fn http(url: &str, checksum: Option<Checksum>) -> Result<Self, Error> {
        Ok(Self { url: parse_http(url)?, checksum, wanted: None })
    }

    /// What is to be made of it: a file that is wrong for one format may be right for another.
    #[must_use]
    pub fn wanted_as(self, format: Format) -> Self {
        Self { wanted: Some(format), ..self }
    }

    pub(crate) fn wanted(&self) -> Option<Format> {
        self.wanted
    }

    /// The address, without the credentials and the query it may carry.
    pub fn location(&self) -> String {
        shown(&self.url)
    }

    /// The checksum the file must have.
    pub fn checksum(&self) -> Option<&Checksum> {
        self.checksum.as_ref()
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }
}

/// Reads an address and refuses everything but `http` and `https` with a host.
pub(crate) fn parse_http(text: &str) -> Result<Url, Error> {
    let refuse = |why: &str| Error::InvalidUrl { message: why.to_owned() };
    let url = Url::parse(text).map_err(|error| refuse(&error.to_string()))?;
    require_http(&url).map_err(|scheme| refuse(&format!("scheme `{scheme}` is not http or https")))?;
    Ok(url)
}

/// The scheme, when it is another than `http` and `https`.
pub(crate) fn require_http(url: &Url) -> Result<(), String> {
    if matches!(url.scheme(), "http" | "https") { Ok(()) } else { Err(url.scheme().to_owned()) }
}

/// An address that may be shown to everybody: presigned addresses carry their secret in the query.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Both fail for addresses without a host only, and those are not ours.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

/// Digest algorithms that are trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Display, EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum Algorithm {
    /// SHA-256, 64 hexadecimal digits.
    Sha256,
    /// SHA-512, 128 hexadecimal digits.
    Sha512,
}

impl Algorithm {
    fn digits(self) -> usize {
        match self {
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }
}

/// A digest that a file must have, written as `sha256:…` or `sha512:…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checksum {
    algorithm: Algorithm,
    digest: String,
}

impl Checksum {
    /// The algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The digest in lower-case hexadecimal digits.
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm, self.digest)
    }
}

impl FromStr for Checksum {
    type Err = InvalidChecksum;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (algorithm, digest) = text.split_once(':').ok_or(InvalidChecksum)?;
        let algorithm: Algorithm = algorithm.parse().map_err(|_| InvalidChecksum)?;
        if digest.len() != algorithm.digits() || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(InvalidChecksum);
        }
        Ok(Self { algorithm, digest: digest.to_ascii_lowercase() })
    }
}

/// The text is not a checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a checksum is `sha256:` with 64 or `sha512:` with 128 hexadecimal digits")]
pub struct InvalidChecksum;

/// Digests of what passes through: SHA-256 always, another one when it is asked for.
pub(crate) struct Hasher {
    sha256: Sha256,
    sha512: Option<Sha512>,
}

/// The digests in lower-case hexadecimal digits.
pub(crate) struct Digests {
    pub(crate) sha256: String,
    pub(crate) sha512: Option<String>,
}

impl Hasher {
    pub(crate) fn for_checksum(checksum: Option<&Checksum>) -> Self {
        let sha512 = checksum.filter(|checksum| checksum.algorithm == Algorithm::Sha512).map(|_| Sha512::new());
        Self { sha256: Sha256::new(), sha512 }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.sha256.update(bytes);
        if let Some(sha512) = &mut self.sha512 {
            sha512.update(bytes);
        }
    }

    pub(crate) fn finish(self) -> Digests {
        Digests { sha256: hex(&self.sha256.finalize()), sha512: self.sha512.map(|hasher| hex(&hasher.finalize())) }
    }
}

impl Digests {
    pub(crate) fn verify(&self, checksum: &Checksum) -> Result<(), Error> {
        let actual = match checksum.algorithm {
            Algorithm::Sha256 => self.sha256.as_str(),
            Algorithm::Sha512 => self.sha512.as_deref().unwrap_or_default(),
        };
        if actual == checksum.digest {
            return Ok(());
        }
        let actual = format!("{}:{actual}", checksum.algorithm);
        Err(Error::ChecksumMismatch { expected: checksum.to_string(), actual })
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{Checksum, Hasher, Source};
    use crate::Error;

    const ABC_SHA256: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    const ABC_SHA512: &str = "sha512:ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                              2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f";

    #[rstest]
    #[case("file:///etc/passwd")]
    #[case("ftp://host/x")]
    #[case("/local/path")]
    #[case("http://")]
    #[case("")]
    fn refuses_what_is_not_http(#[case] url: &str) {
        assert!(matches!(Source::http(url, None), Err(Error::InvalidUrl { .. })));
    }

    #[test]
    fn shows_no_credentials() {
        let source = Source::http("https://user:secret@host:8443/a.img?X-Signature=secret#part", None).unwrap();
        assert_eq!(source.location(), "https://host:8443/a.img");
    }

    #[rstest]
    #[case(ABC_SHA256, true)]
    #[case(ABC_SHA512, true)]
    #[case(&ABC_SHA256.replace("sha256:", ""), false)]
    #[case(&ABC_SHA256.replace("sha256", "md5"), false)]
    #[case(&ABC_SHA256.replace("sha256", "sha512"), false)]
    #[case(&ABC_SHA256.replace("ba78", "xa78"), false)]
    fn reads_checksums(#[case] text: &str, #[case] valid: bool) {
        assert_eq!(text.parse::<Checksum>().is_ok(), valid);
    }

    #[rstest]
    #[case(ABC_SHA256)]
    #[case(ABC_SHA512)]
    fn verifies_in_either_case_and_names_both_digests(#[case] text: &str) {
        let (algorithm, digest) = text.split_once(':').unwrap();
        let checksum: Checksum = format!("{algorithm}:{}", digest.to_uppercase()).parse().unwrap();
        let mut right = Hasher::for_checksum(Some(&checksum));
        right.update(b"a");
        right.update(b"bc");
        assert!(right.finish().verify(&checksum).is_ok());
        let wrong = Hasher::for_checksum(Some(&checksum)).finish().verify(&checksum).unwrap_err();
        assert!(matches!(wrong, Error::ChecksumMismatch { expected, actual } if expected == text && actual != text));
    }
}
