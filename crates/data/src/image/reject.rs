//! Why bytes were not accepted as a picture. The words for it stand here and nowhere else: people count them
//! and scripts look for them, so they do not change.

use thiserror::Error;

pub use crate::memory::NO_MEMORY;
use crate::memory::{Lack, room};

/// Every reason, with what it means.
pub const REASONS: [(&str, &str); 7] = [
    ("empty_file", "there are no bytes"),
    ("not_an_image", "the bytes are something else: a web page, an error answer, a pointer of Git LFS, text"),
    ("unsupported_format", "a picture or document of a kind that is not read; the message says which"),
    ("truncated", "the end is missing, and with it more than the end marker"),
    ("corrupt", "the bytes contradict themselves or their checksums"),
    ("too_many_pixels", "the header asks for more pixels than the limit"),
    (NO_MEMORY, "there is no memory for the picture"),
];

/// The one of [`REASONS`] that a setting decides (`data_config.max_pixels`).
pub const TOO_MANY_PIXELS: &str = REASONS[5].0;

/// Why bytes were not accepted as a picture.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{reason}: {detail}")]
pub struct Reject {
    /// A stable word, one of [`REASONS`].
    pub reason: &'static str,
    /// What was found and, where something helps, what to do; for a person.
    pub detail: String,
    /// Bytes that the picture has, where any were seen.
    pub bytes: Option<u64>,
}

impl Reject {
    fn new(index: usize, detail: impl Into<String>) -> Self {
        Self { reason: REASONS[index].0, detail: detail.into(), bytes: None }
    }

    /// The same, of a picture of so many bytes.
    #[must_use]
    pub fn of_bytes(self, len: usize) -> Self {
        Self { bytes: Some(len as u64), ..self }
    }

    pub(super) fn empty_file() -> Self {
        Self::new(0, "the file has no bytes")
    }

    pub(super) fn not_an_image(detail: impl Into<String>) -> Self {
        Self::new(1, detail)
    }

    pub(super) fn unsupported(detail: impl Into<String>) -> Self {
        Self::new(2, detail)
    }

    pub(super) fn truncated(detail: impl Into<String>) -> Self {
        Self::new(3, detail)
    }

    pub(super) fn corrupt(detail: impl Into<String>) -> Self {
        Self::new(4, detail)
    }

    pub(super) fn no_memory(detail: impl Into<String>) -> Self {
        Self::new(6, detail)
    }

    pub(super) fn too_many_pixels(detail: impl Into<String>) -> Self {
        Self::new(5, detail)
    }
}

impl From<Lack> for Reject {
    fn from(lack: Lack) -> Self {
        Self::no_memory(lack.to_string())
    }
}

/// Asks for memory for so many `pixels`, of `each` bytes.
pub(super) fn room_for(pixels: u64, each: u64) -> Result<(), Reject> {
    Ok(room(pixels.saturating_mul(each))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_maker_has_its_own_word() {
        let made = [
            Reject::empty_file(),
            Reject::not_an_image("a"),
            Reject::unsupported("a"),
            Reject::truncated("a"),
            Reject::corrupt("a"),
            Reject::too_many_pixels("a"),
            room_for(u64::MAX, 3).unwrap_err(),
        ];
        let words: Vec<_> = made.iter().map(|r| r.reason).collect();
        let stable = [
            "empty_file",
            "not_an_image",
            "unsupported_format",
            "truncated",
            "corrupt",
            "too_many_pixels",
            "no_memory",
        ];
        assert_eq!(words, stable);
    }
}
