//! Public keys as SSH writes them.

use kupenstack_runtime::Failure;
use ring::{
    rand::{SecureRandom, SystemRandom},
    signature::{Ed25519KeyPair, KeyPair},
};
use secrecy::{ExposeSecret, SecretBox, SecretString};
use ssh_key::{
    Algorithm, HashAlg, LineEnding, PrivateKey,
    private::{Ed25519Keypair, Ed25519PrivateKey},
    public::Ed25519PublicKey,
};

/// What Nova takes.
const TYPES: &str = "ssh-ed25519, ssh-rsa, ecdsa-sha2-nistp256 (or 384, 521), sk-ssh-ed25519@openssh.com or \
                     sk-ecdsa-sha2-nistp256@openssh.com";

/// A public key, without what people wrote behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PublicKey(ssh_key::public::KeyData);

impl PublicKey {
    /// Reads a line of `authorized_keys`, or says what is wrong with it. What it says has nothing of the line: somebody may
    /// have taken the wrong file.
    pub(super) fn read(line: &str) -> Result<Self, String> {
        let line = line.trim();
        if line.contains("PRIVATE KEY") {
            return Err("this is a private key: take the file whose name ends in .pub, and replace the pair".to_owned());
        }
        let key = ssh_key::PublicKey::from_openssh(line);
        let key =
            key.map_err(|_| format!("not a public key: one line is wanted as in a file *.pub, of type {TYPES}"))?;
        match key.algorithm() {
            Algorithm::Dsa | Algorithm::Other(_) => {
                Err(format!("a key of a type that Nova does not take: {TYPES} is wanted"))
            }
            _ => Ok(Self(key.key_data().clone())),
        }
    }

    /// The type, as the line begins with.
    pub(super) fn type_name(&self) -> String {
        self.0.algorithm().as_str().to_owned()
    }

    /// As `ssh-keygen -l` shows it.
    pub(super) fn fingerprint(&self) -> String {
        self.0.fingerprint(HashAlg::Sha256).to_string()
    }
}

/// A key that was made here.
pub(super) struct NewKey {
    /// The public half as a line of `authorized_keys`.
    pub(super) public: String,
    /// The private half as OpenSSH keeps it in a file, without a passphrase.
    pub(super) private: SecretString,
}

/// Makes a key, of Ed25519.
pub(super) fn generate(comment: &str) -> Result<NewKey, Failure> {
    let failed = |what: &'static str| Failure::new("KeyNotMade", what);
    let seed = SecretBox::try_init_with(|| {
        let mut seed = [0; Ed25519PrivateKey::BYTE_SIZE];
        SystemRandom::new().fill(&mut seed).map(|()| seed)
    });
    let seed = seed.map_err(|_| failed("the system has no random numbers"))?;
    let pair = Ed25519KeyPair::from_seed_unchecked(seed.expose_secret()).map_err(|_| failed("no key of this seed"))?;
    let public = pair.public_key().as_ref().try_into().map_err(|_| failed("a public key of another length"))?;
    let private = Ed25519PrivateKey::from_bytes(seed.expose_secret());
    let pair = Ed25519Keypair { public: Ed25519PublicKey(public), private };
    let written = PrivateKey::new(pair.into(), comment).and_then(|key| {
        let private = key.to_openssh(LineEnding::LF)?;
        Ok(NewKey { public: key.public_key().to_openssh()?, private: private.as_str().into() })
    });
    written.map_err(|error| Failure::new("KeyNotMade", error))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const ED25519: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIM5VUfJYhPwFhni7yWYee4vCC3W5DEUA804o6s0VRzzo";
    const P256: &str = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBPPwtH0mdwaTQwU6BLSVPjnEwIc1gAPGVzK7v08SHD56ce6LDeFpjHjAxhGdkGRWwO/BsKt5OILsq85QlNxxQfE=";
    const RSA: &str = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQDHvpXSvspx+Pn9sk3nwX4pvhAzg9Uxdk13n6ICTavXDtx7+wZAQjyDm85gy/Q2zb2bzOn8b/P5PYckYjYjkx7d60GSpSXUjghYgek5MTtZh/wcZPmwCVYfSIm6PG7aUNAsar/ebKHkzxf3nKr05cprd/OWpXlZ/zrHQgfpzrEP93/iyK2p8c0ore8ljNDQlSPrqtxYnrgj0YuVqwVO9Udv3IhkVwDfLY0K4FX1NgWfbhVu9tEdtX0IBDzn9/glKxbGgcQIZEc4V0x7JP9oiE9BZ7VNPFCz1hC14Ng/cJyVggF5gT7hhSkO+9Xruj0TIUHQx5muim2iWvzzuaot9XfJ";
    const SK: &str = "sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4fAAAABHNzaDo=";
    const DSA: &str = "ssh-dss AAAAB3NzaC1kc3MAAAAVAIAAAAAAAAAAAAAAAAAAAAAAAAABAAAAFQCAAAAAAAAAAAAAAAAAAAAAAAAAAQAAABUAgAAAAAAAAAAAAAAAAAAAAAAAAAEAAAAVAIAAAAAAAAAAAAAAAAAAAAAAAAAB";

    /// As `ssh-keygen -l` has them.
    #[rstest]
    #[case(ED25519, "ssh-ed25519", "SHA256:lXOWz+zTz8N1uzeof+/K1o7gOtSnXiAGJ3ZlcdjRPGw")]
    #[case(P256, "ecdsa-sha2-nistp256", "SHA256:+jYvfoUHaF6KN1V4SOEfxFSaaBBByraXrcLtb05uWXI")]
    #[case(RSA, "ssh-rsa", "SHA256:g3OYTljUWsEK2IHdlwme1e2c5/QXr2ufJxKCXWGTf/Q")]
    #[case(SK, "sk-ssh-ed25519@openssh.com", "SHA256:/p0CbeE3dk2SyW1OXXsThGc12ezDVD8eGw2/vtztDfk")]
    fn a_key_of_each_type_is_read(#[case] line: &str, #[case] type_name: &str, #[case] fingerprint: &str) {
        let key = PublicKey::read(line).unwrap();
        assert_eq!((key.type_name().as_str(), key.fingerprint().as_str()), (type_name, fingerprint));
        assert_eq!(
            PublicKey::read(&format!("{line} ann@laptop\n")).unwrap(),
            key,
            "what is behind it is no part of it"
        );
    }

    #[test]
    fn a_new_key_is_another_each_time_and_its_halves_fit() {
        let (one, other) = (generate("ann").unwrap(), generate("ann").unwrap());
        assert_ne!(one.public, other.public);
        assert!(one.public.starts_with("ssh-ed25519 ") && one.public.ends_with(" ann"), "{}", one.public);
        let private = PrivateKey::from_openssh(one.private.expose_secret()).unwrap();
        assert_eq!(private.public_key().to_openssh().unwrap(), one.public);
        assert!(PublicKey::read(one.private.expose_secret()).unwrap_err().contains("private key"));
    }

    #[rstest]
    #[case::empty("", "not a public key")]
    #[case::words("no key at all", "not a public key")]
    #[case::cut(&ED25519[..40], "not a public key")]
    #[case::of_another_type(&ED25519.replacen("ssh-ed25519", "ssh-rsa", 1), "not a public key")]
    #[case::dsa(DSA, "")]
    #[case::private(
        "-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n-----END OPENSSH PRIVATE KEY-----",
        "this is a private key"
    )]
    fn what_is_no_key_is_told_without_repeating_it(#[case] line: &str, #[case] words: &str) {
        let fault = PublicKey::read(line).unwrap_err();
        assert!(fault.contains(words) && !fault.contains("c2VjcmV0"), "{fault}");
    }
}
