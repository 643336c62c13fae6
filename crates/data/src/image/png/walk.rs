//! The chunks of a PNG file: lengths, checksums, and which of them the pixels depend on.

use super::text::Texts;
use super::{SIGNATURE, be32};
use crate::image::{Reject, zero_fill};

/// What the walk over the chunks found.
#[derive(Default)]
pub(super) struct Chunks<'a> {
    /// The chunks that the pixels depend on, without the end.
    pub(super) needed: Vec<&'a [u8]>,
    pub(super) exif: Option<&'a [u8]>,
    pub(super) texts: Texts<'a>,
    /// Frames of an animation, without the default image if that stands outside of it.
    pub(super) frames: usize,
    /// Whether there is an animation, and whether the default image is a part of it.
    pub(super) animation: bool,
    pub(super) default_is_frame: bool,
    /// Whether there is pixel data.
    pub(super) data: bool,
    /// Whether the end is there.
    pub(super) ended: bool,
}

/// Checks the length of each chunk, and the checksum of each chunk that the pixels depend on.
pub(super) fn walk(bytes: &[u8]) -> Result<Chunks<'_>, Reject> {
    let mut found = Chunks::default();
    let filled_from = zero_fill(bytes);
    let mut at = SIGNATURE.len();
    while let Some(head) = bytes.get(at..at + 8) {
        let (length, kind) = (be32(head) as usize, &head[4..8]);
        let name = kind.escape_ascii();
        if at >= filled_from {
            break;
        }
        let end = at.saturating_add(length).saturating_add(12);
        let Some(chunk) = bytes.get(at..end) else {
            if kind == b"IEND" {
                break;
            }
            let lacking = length.saturating_add(12) - (bytes.len() - at);
            return Err(Reject::truncated(format!(
                "the file ends {lacking} bytes before the end of its {name} chunk"
            )));
        };
        let intact = crc32fast::hash(&chunk[4..8 + length]) == be32(&chunk[8 + length..]);
        // An upper-case first letter marks a chunk that the pixels need (PNG specification, 5.4).
        if !intact && (!kind[0].is_ascii_lowercase() || kind == b"tRNS") {
            return Err(if end - 4 >= filled_from {
                Reject::truncated(format!("the file is filled with zeros from byte {filled_from} on"))
            } else {
                Reject::corrupt(format!("the checksum of the {name} chunk at byte {at} is wrong"))
            });
        }
        if found.take(kind, chunk, intact)? {
            break;
        }
        at = end;
    }
    Ok(found)
}

impl<'a> Chunks<'a> {
    /// Takes note of one chunk. True if it is the last.
    fn take(&mut self, kind: &[u8], chunk: &'a [u8], intact: bool) -> Result<bool, Reject> {
        match kind {
            b"IHDR" if !self.needed.is_empty() => {
                return Err(Reject::corrupt("there are two headers"));
            }
            b"PLTE" if !(15..=780).contains(&chunk.len()) || !chunk.len().is_multiple_of(3) => {
                return Err(Reject::corrupt(format!("a palette of {} bytes", chunk.len() - 12)));
            }
            b"IHDR" | b"PLTE" | b"tRNS" | b"IDAT" => {
                self.data |= kind == b"IDAT";
                self.needed.push(chunk);
            }
            b"acTL" => self.animation = true,
            b"fcTL" => {
                self.frames += 1;
                self.default_is_frame |= !self.data;
            }
            b"eXIf" if intact => self.exif = Some(&chunk[8..chunk.len() - 4]),
            b"tEXt" | b"zTXt" | b"iTXt" if intact => self.texts.take(kind, &chunk[8..chunk.len() - 4]),
            b"IEND" => self.ended = true,
            _ => {}
        }
        Ok(self.ended)
    }
}
