//! What a cache knows of a row, as bytes.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::image::Warnings;
use crate::source::BadSample;

/// What is known of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// It can be used.
    Good {
        /// Number of its picture.
        picture: u64,
        /// CRC-32 of the pixels.
        check: u32,
        original: (u32, u32),
        warnings: Warnings,
        caption: String,
    },
    /// It cannot.
    Bad(BadSample),
    /// Nothing that will hold: the source is to be asked.
    Unknown,
}

impl Record {
    /// Adds it to `to`.
    pub(super) fn encode(&self, to: &mut Vec<u8>) {
        let text = |to: &mut Vec<u8>, s: &str| {
            to.extend((s.len() as u32).to_le_bytes());
            to.extend(s.as_bytes());
        };
        match self {
            Self::Good { picture, check, original, warnings, caption } => {
                to.push(1);
                to.extend(picture.to_le_bytes());
                to.extend(check.to_le_bytes());
                to.extend(original.0.to_le_bytes());
                to.extend(original.1.to_le_bytes());
                let Warnings { no_end_marker, animated, incomplete } = *warnings;
                to.push(u8::from(no_end_marker) | u8::from(animated) << 1 | u8::from(incomplete) << 2);
                text(to, caption);
            }
            Self::Bad(BadSample { reason, detail, place, file, bytes }) => {
                to.push(2);
                [*reason, detail, place, file].iter().for_each(|s| text(to, s));
                to.push(u8::from(bytes.is_some()));
                to.extend(bytes.unwrap_or(0).to_le_bytes());
            }
            Self::Unknown => to.push(0),
        }
    }

    /// The record of these bytes, all of them.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = Rest(bytes);
        let record = match rest.take::<1>()?[0] {
            0 => Self::Unknown,
            1 => Self::Good {
                picture: u64::from_le_bytes(*rest.take()?),
                check: u32::from_le_bytes(*rest.take()?),
                original: (u32::from_le_bytes(*rest.take()?), u32::from_le_bytes(*rest.take()?)),
                warnings: {
                    let [bits] = *rest.take()?;
                    let has = |bit: u8| bits & bit != 0;
                    Warnings { no_end_marker: has(1), animated: has(2), incomplete: has(4) }
                },
                caption: rest.text()?.into(),
            },
            2 => Self::Bad(BadSample {
                reason: word(rest.text()?),
                detail: rest.text()?.into(),
                place: rest.text()?.into(),
                file: rest.text()?.into(),
                bytes: {
                    let [there] = *rest.take()?;
                    let bytes = u64::from_le_bytes(*rest.take()?);
                    (there != 0).then_some(bytes)
                },
            }),
            _ => return None,
        };
        rest.0.is_empty().then_some(record)
    }
}

/// Bytes not yet read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(first)
    }

    fn text(&mut self) -> Option<&'a str> {
        let len = usize::try_from(u32::from_le_bytes(*self.take()?)).ok()?;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }
}

/// A stable word, as reasons are. There are some tens of them, so each is kept for ever.
fn word(text: &str) -> &'static str {
    static WORDS: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    let words = words.get_or_insert_default();
    match words.get(text) {
        Some(word) => word,
        None => {
            let word: &'static str = Box::leak(text.into());
            words.insert(word);
            word
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_record_comes_back_and_no_bytes_are_fatal(
            picture: u64, check: u32, original: (u32, u32), bits in 0u8..8, caption: String,
            texts: (String, String, String), bytes: Option<u64>, noise: Vec<u8>, cut: prop::sample::Index,
        ) {
            let warnings =
                Warnings { no_end_marker: bits & 1 != 0, animated: bits & 2 != 0, incomplete: bits & 4 != 0 };
            let (detail, place, file) = texts;
            let records = [
                Record::Good { picture, check, original, warnings, caption },
                Record::Bad(BadSample { reason: "truncated", detail, place, file, bytes }),
                Record::Unknown,
            ];
            for record in records {
                let mut to = Vec::new();
                record.encode(&mut to);
                prop_assert_eq!(Record::decode(&to), Some(record));
                prop_assert_eq!(Record::decode(&to[..cut.index(to.len())]), None);
            }
            let _ = Record::decode(&noise);
        }
    }
}
