//! The certificates of the webhook as a Secret holds them, and what is to become of them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use secrecy::{ExposeSecret, SecretString};

use crate::pki::{Certificate, Identity, Lifetimes};

/// Key of a Secret: what API servers are to trust, the newest first.
pub(crate) const AUTHORITIES: &str = "ca.crt";
/// Key of a Secret: the private key of the newest authority.
const AUTHORITY_KEY: &str = "ca.key";
/// Key of a Secret: the certificate that is served, as Kubernetes names it.
const SERVING: &str = "tls.crt";
/// Key of a Secret: its private key.
const SERVING_KEY: &str = "tls.key";

/// The longest that nothing is looked at.
const LONGEST: jiff::SignedDuration = jiff::SignedDuration::from_hours(1);

type Data = BTreeMap<String, ByteString>;

/// All certificates of the webhook. They belong together: each key is its certificate's, and the certificate that is
/// served is signed by one of the authorities.
#[derive(Clone, Debug)]
pub(crate) struct Bundle {
    /// The newest authority, which signs.
    authority: Identity,
    /// Those before it, as long as they are to be trusted.
    former: Vec<Certificate>,
    serving: Identity,
}

/// The certificate to be served and its key, whoever made them; `None` when there is none.
pub(crate) fn serving(data: &Data) -> Option<(&str, SecretString)> {
    Some((text(data, SERVING)?, text(data, SERVING_KEY)?.into()))
}

fn text<'a>(data: &'a Data, key: &str) -> Option<&'a str> {
    std::str::from_utf8(&data.get(key)?.0).ok()
}

/// A time of which a certificate, perhaps a foreign one, says when it begins.
fn after(time: Timestamp, duration: std::time::Duration) -> Timestamp {
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}

impl Bundle {
    /// A new authority, and a certificate of its own for these names or addresses.
    pub(crate) fn new(names: &[String], lifetimes: &Lifetimes, now: Timestamp) -> Result<Self, rcgen::Error> {
        let authority = Identity::authority(now, lifetimes.authority)?;
        let serving = authority.serving(names, now, lifetimes.serving)?;
        Ok(Self { authority, former: Vec::new(), serving })
    }

    /// Reads a Secret; `None` when anything in it is missing, can't be read or does not belong together.
    pub(crate) fn read(data: &Data) -> Option<Self> {
        let mut authorities = Certificate::read_all(text(data, AUTHORITIES)?)?.into_iter();
        let authority = Identity { certificate: authorities.next()?, key: text(data, AUTHORITY_KEY)?.into() };
        let certificate = Certificate::read_all(text(data, SERVING)?)?.into_iter().next()?;
        let serving = Identity { certificate, key: text(data, SERVING_KEY)?.into() };
        let bundle = Self { authority, former: authorities.collect(), serving };
        let belongs = [&bundle.authority, &bundle.serving].iter().all(|one| one.certificate.is_of(&one.key))
            && bundle.authorities().any(|authority| bundle.serving.certificate.is_signed_by(authority));
        belongs.then_some(bundle)
    }

    /// The Secret's data.
    pub(crate) fn data(&self) -> Data {
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        [
            (AUTHORITIES, bytes(&self.trusted())),
            (AUTHORITY_KEY, bytes(self.authority.key.expose_secret())),
            (SERVING, bytes(&self.serving.certificate.pem)),
            (SERVING_KEY, bytes(self.serving.key.expose_secret())),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into()
    }

    /// What API servers are to trust, in PEM.
    pub(crate) fn trusted(&self) -> String {
        self.authorities().map(|authority| authority.pem.as_str()).collect()
    }

    fn authorities(&self) -> impl Iterator<Item = &Certificate> {
        std::iter::once(&self.authority.certificate).chain(&self.former)
    }

    /// What is to take the place of this bundle now; `None` as long as it is right. `is_trusted` says whether API servers
    /// have been told of the newest authority.
    ///
    /// Nothing is served that an API server may not trust yet: a new authority is announced beside the one that it
    /// follows, then signs, and only then the former one goes.
    pub(crate) fn next(
        &self,
        names: &[String],
        lifetimes: &Lifetimes,
        now: Timestamp,
        is_trusted: bool,
    ) -> Result<Option<Self>, rcgen::Error> {
        let (authority, serving) = (&self.authority.certificate, &self.serving.certificate);
        if authority.expires <= now {
            return Self::new(names, lifetimes, now).map(Some);
        }
        if authority.renewal() <= now {
            let newest = Identity::authority(now, lifetimes.authority)?;
            let former = self.authorities().filter(|known| known.expires > now).cloned().collect();
            return Ok(Some(Self { authority: newest, former, serving: self.serving.clone() }));
        }
        let is_late = serving.expires <= now || !serving.is_for(names);
        let is_due = serving.renewal() <= now || !serving.is_signed_by(authority);
        if is_late || is_due && is_trusted && after(authority.issued, lifetimes.overlap) <= now {
            let serving = self.authority.serving(names, now, lifetimes.serving)?;
            return Ok(Some(Self { serving, ..self.clone() }));
        }
        let is_followed = serving.is_signed_by(authority) && after(serving.issued, lifetimes.overlap) <= now;
        let former: Vec<_> = self.former.iter().filter(|one| !is_followed && one.expires > now).cloned().collect();
        Ok((former.len() < self.former.len()).then(|| Self { former, ..self.clone() }))
    }

    /// How long until it is to be looked at again.
    pub(crate) fn rest(&self, lifetimes: &Lifetimes, now: Timestamp) -> std::time::Duration {
        let (authority, serving) = (&self.authority.certificate, &self.serving.certificate);
        let times = [
            authority.renewal(),
            serving.renewal(),
            serving.expires,
            after(authority.issued, lifetimes.overlap),
            after(serving.issued, lifetimes.overlap),
        ];
        let next = times.into_iter().filter(|time| *time > now).map(|time| time.duration_since(now)).min();
        next.unwrap_or(LONGEST).min(LONGEST).unsigned_abs()
    }
}

#[cfg(test)]
mod tests;
