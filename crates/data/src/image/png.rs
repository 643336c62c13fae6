//! PNG of every kind: grey, palette, colour, with alpha or a transparent colour, 1 to 16 bits, interlaced.
//!
//! The chunks are walked first: it is cheap, it finds sizes, damage and a cut end before anything is
//! allocated, and it does not depend on how far the decoder happens to read.

use std::io::{Cursor, ErrorKind};

use ::image::codecs::png::PngDecoder;
use ::image::{DynamicImage, ImageDecoder, ImageError, Limits};

use super::{AlphaMode, DecodeOptions, Reject, Rgb, check_size, upright};

/// Memory that a decoder may take beside the pixels, for text, colour profiles and tables.
const SIDE_BYTES: u64 = 64 << 20;

/// What the walk over the chunks found.
#[derive(Default)]
struct Chunks<'a> {
    exif: Option<&'a [u8]>,
    ended: bool,
}

/// Decodes a PNG file. `bytes` begins with the PNG signature.
pub(super) fn decode(bytes: &[u8], opts: &DecodeOptions) -> Result<Rgb, Reject> {
    let (width, height) = header(bytes)?;
    check_size(width, height, opts)?;
    let chunks = walk(bytes)?;
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(u64::from(width) * u64::from(height) * 8 + SIDE_BYTES);
    let decoder = PngDecoder::with_limits(Cursor::new(bytes), limits).map_err(reject)?;
    let has_alpha = decoder.color_type().has_alpha();
    let picture = DynamicImage::from_decoder(decoder).map_err(reject)?;
    let pixels = match (has_alpha, opts.alpha) {
        (false, _) | (true, AlphaMode::Drop) => picture.into_rgb8().into_raw(),
        (true, AlphaMode::White) => on_white(&picture.into_rgba8()),
    };
    let warning = (!chunks.ended).then_some("no_end_marker");
    let exif = chunks.exif.filter(|_| opts.exif);
    upright(Rgb { width, height, pixels, warning }, exif)
}

/// Width and height from the first chunk, which must be IHDR.
fn header(bytes: &[u8]) -> Result<(u32, u32), Reject> {
    let Some(ihdr) = bytes.get(8..33) else {
        return Err(Reject::truncated(format!("the file ends after {} bytes, in its header", bytes.len())));
    };
    if &ihdr[4..8] != b"IHDR" {
        return Err(Reject::corrupt("the first chunk is not IHDR"));
    }
    Ok((be32(&ihdr[8..]), be32(&ihdr[12..])))
}

/// Checks the length of each chunk, and the checksum of each chunk that the pixels depend on.
fn walk(bytes: &[u8]) -> Result<Chunks<'_>, Reject> {
    let mut found = Chunks::default();
    let mut at = 8;
    while let Some(head) = bytes.get(at..at + 8) {
        let (length, kind) = (be32(head) as usize, &head[4..8]);
        let name = kind.escape_ascii();
        let end = at.saturating_add(length).saturating_add(12);
        let Some(chunk) = bytes.get(at..end) else {
            let left = bytes.len() - at;
            return Err(Reject::truncated(format!(
                "the file ends {} bytes before the end of its {name} chunk",
                length.saturating_add(12) - left
            )));
        };
        // A lower-case first letter marks a chunk that the pixels do not need (PNG specification, 5.4).
        if kind[0].is_ascii_uppercase()
            && crc32fast::hash(&chunk[4..8 + length]) != be32(&chunk[8 + length..])
        {
            return Err(Reject::corrupt(format!("the checksum of the {name} chunk at byte {at} is wrong")));
        }
        match kind {
            b"eXIf" => found.exif = Some(&chunk[8..8 + length]),
            b"IEND" => {
                found.ended = true;
                break;
            }
            _ => {}
        }
        at = end;
    }
    Ok(found)
}

fn be32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Lays RGBA on white, rounding to the nearest level.
fn on_white(picture: &::image::RgbaImage) -> Vec<u8> {
    let mut out = Vec::with_capacity(picture.as_raw().len() / 4 * 3);
    for pixel in picture.as_raw().chunks_exact(4) {
        let alpha = u32::from(pixel[3]);
        let blend = |c: u8| ((u32::from(c) * alpha + 255 * (255 - alpha) + 127) / 255) as u8;
        out.extend(pixel[..3].iter().map(|c| blend(*c)));
    }
    out
}

fn reject(error: ImageError) -> Reject {
    match error {
        ImageError::IoError(e) if e.kind() == ErrorKind::UnexpectedEof => {
            Reject::truncated("the file ends before the last pixel")
        }
        ImageError::Unsupported(e) => Reject::new("unsupported_format", e.to_string()),
        other => Reject::corrupt(other.to_string()),
    }
}
