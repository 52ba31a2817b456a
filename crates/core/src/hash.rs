//! Content hashes.

use std::fmt::Write;

use serde::Serialize;
use sha2::{Digest, Sha256};

/// SHA-256 of a value's canonical JSON (object keys sorted), in lower-case hexadecimal.
///
/// Values that cannot be JSON (maps with keys that are not text) hash as `null`; none of our types has such keys.
pub fn of<T: Serialize>(value: &T) -> String {
    let canonical = serde_json::to_value(value).unwrap_or_default().to_string();
    of_bytes(canonical.as_bytes())
}

/// SHA-256 of bytes in lower-case hexadecimal.
pub fn of_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // writing to a String can't fail
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The first eight characters of a hash: enough to tell versions of one object apart in its name.
pub fn short(hash: &str) -> &str {
    hash.get(..8).unwrap_or(hash)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn order_of_keys_does_not_matter() {
        let keys: Vec<String> = (0..64).map(|i| format!("key{i}")).collect();
        let a: HashMap<&str, i32> = keys.iter().map(|k| (k.as_str(), 1)).collect();
        let b: HashMap<&str, i32> = keys.iter().rev().map(|k| (k.as_str(), 1)).collect();
        assert_eq!(of(&a), of(&b));
        assert_ne!(of(&a), of(&HashMap::from([("key0", 2)])));
    }
}
