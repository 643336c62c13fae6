//! Checksums of content: the sha256 of large files, and git's own name of small ones.

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};

/// What content must hash to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Checksum {
    /// sha256 of the bytes, hexadecimal.
    Sha256(String),
    /// git's name of a file: sha1 of `blob SIZE`, a zero byte, and the bytes.
    GitBlob(String),
}

impl Checksum {
    /// The checksum that content of this name must have; `None` if the name is of another kind.
    pub(super) fn named(name: &str) -> Option<Self> {
        let hexadecimal = name.bytes().all(|b| b.is_ascii_hexdigit());
        match name.len() {
            64 if hexadecimal => Some(Self::Sha256(name.to_ascii_lowercase())),
            40 if hexadecimal => Some(Self::GitBlob(name.to_ascii_lowercase())),
            _ => None,
        }
    }

    /// What is compared, for a person.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Sha256(_) => "sha256",
            Self::GitBlob(_) => "git blob",
        }
    }

    /// The wanted value, hexadecimal.
    pub(super) fn wanted(&self) -> &str {
        match self {
            Self::Sha256(hex) | Self::GitBlob(hex) => hex,
        }
    }

    /// A running hash of `size` bytes.
    pub(super) fn start(&self, size: u64) -> Running {
        let mut running = Running(Context::new(match self {
            Self::Sha256(_) => &SHA256,
            Self::GitBlob(_) => &SHA1_FOR_LEGACY_USE_ONLY,
        }));
        if matches!(self, Self::GitBlob(_)) {
            running.add(format!("blob {size}\0").as_bytes());
        }
        running
    }
}

/// A hash under way.
pub(super) struct Running(Context);

impl Running {
    /// Adds bytes.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The value, hexadecimal.
    pub(super) fn value(self) -> String {
        self.0.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        // printf hello | sha256sum; printf hello | git hash-object --stdin
        for name in [
            "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
            "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0",
        ] {
            let checksum = Checksum::named(name).unwrap();
            let mut running = checksum.start(5);
            running.add(b"he");
            running.add(b"llo");
            assert_eq!(running.value(), name);
        }
        assert_eq!(Checksum::named("d41d8cd98f00b204e9800998ecf8427e"), None);
        assert_eq!(Checksum::named(&"x".repeat(64)), None);
    }
}
