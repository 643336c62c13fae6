//! A 64-bit fingerprint of content: fast, the same on every platform and in every version.

use std::fs::Metadata;
use std::time::UNIX_EPOCH;

use ocelli_ir::rng::mix;

/// A running fingerprint of a list of fields; `["ab", "c"]` and `["a", "bc"]` differ.
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    /// Starts with the name of what is fingerprinted.
    pub(crate) fn new(name: &str) -> Self {
        let mut this = Self(0);
        this.field(name.as_bytes());
        this
    }

    /// Adds a field.
    pub(crate) fn field(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.number(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.number(u64::from_le_bytes(last));
    }

    /// Adds a number.
    pub(crate) fn number(&mut self, number: u64) {
        // Added, not only combined, so that a run of zeros changes the state too.
        self.0 = mix(self.0 ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }

    /// Adds length and time of the last change of a file, if it is there.
    pub(crate) fn file(&mut self, about: Option<&Metadata>) {
        let changed = about.and_then(|m| m.modified().ok()).and_then(|t| t.duration_since(UNIX_EPOCH).ok());
        self.number(about.map_or(u64::MAX, Metadata::len));
        self.number(changed.map_or(u64::MAX, |t| t.as_nanos() as u64));
    }

    /// The fingerprint so far.
    pub(crate) fn value(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fields: &[&str]) -> u64 {
        let mut f = Fingerprint::new("test");
        for field in fields {
            f.field(field.as_bytes());
        }
        f.value()
    }

    #[test]
    fn every_change_shows() {
        let all = [
            of(&["ab", "c"]),
            of(&["a", "bc"]),
            of(&["abc"]),
            of(&["c", "ab"]),
            of(&[]),
            of(&["ab", "c", ""]),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|b| a != b), "{all:x?}");
        }
        assert_ne!(of(&["\0\0\0\0\0\0\0\0"]), of(&["\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"]));
    }
}
