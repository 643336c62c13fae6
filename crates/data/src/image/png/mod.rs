//! PNG of every kind: grey, palette, colour, with alpha or a transparent colour, 1 to 16 bits, interlaced.
//!
//! The chunks are walked first: it is cheap, it finds sizes, damage and a cut end before anything is
//! allocated, and it does not depend on how far the decoder happens to read. The decoder is given the chunks
//! that the pixels depend on, nothing else.
//!
//! Of an animated file (APNG) the default image is taken, the one in IDAT. It is the first frame in nearly
//! every file. Where it stands outside of the animation a browser shows the first frame instead, and Pillow
//! the default image; Pillow is followed, which the published recipe reads its pictures with.

mod pieces;
mod text;
mod walk;

use std::io::{Error, ErrorKind};

use png::{BitDepth, ColorType, Decoder, DecodingError, Limits, Transformations};

use super::channels::{Channels, to_rgb};
use super::{AlphaMode, DecodeOptions, Metadata, Reject, Rgb, Warnings, check_size, upright};
use crate::memory::room;
use pieces::Pieces;
use walk::walk;

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
const END: &[u8] = b"\0\0\0\0IEND\xae\x42\x60\x82";
/// Memory that the decoder may take for each pixel of a row: some rows of 8 bytes a pixel.
const ROW_BYTES: usize = 32;
/// Memory that the decoder may take beside rows and pixels, for palettes and its own state.
const SIDE_BYTES: usize = 1 << 20;

/// Decodes a PNG file. `bytes` begins with the PNG signature.
pub(super) fn decode(bytes: &[u8], opts: &DecodeOptions) -> Result<Rgb, Reject> {
    let (width, height) = header(bytes)?;
    check_size(width, height, opts)?;
    let chunks = walk(bytes)?;
    if !chunks.data {
        return Err(if chunks.ended {
            Reject::corrupt("there is no pixel data between header and end")
        } else {
            Reject::truncated("the file ends before its pixel data")
        });
    }
    let pixels = match pixels(&chunks.needed, END, opts.alpha) {
        Ok(pixels) => pixels,
        Err(DecodingError::IoError(e)) if e.kind() == ErrorKind::OutOfMemory => {
            return Err(Reject::no_memory(e.to_string()));
        }
        // Data that stops short and data that is wrong look alike behind an end, but not without it.
        Err(error) => match self::pixels(&chunks.needed, b"", opts.alpha) {
            Err(DecodingError::IoError(e)) if e.kind() == ErrorKind::UnexpectedEof => {
                return Err(Reject::truncated("the pixel data ends before the last row"));
            }
            _ => return Err(Reject::corrupt(error.to_string())),
        },
    };
    let animated = chunks.animation && chunks.frames + usize::from(!chunks.default_is_frame) > 1;
    let warnings = Warnings { no_end_marker: !chunks.ended, animated, ..Warnings::default() };
    let picture = Rgb { width, height, pixels, warnings };
    let profile = if chunks.exif.is_none() && opts.exif { chunks.texts.exif() } else { None };
    let xmp = if opts.exif { chunks.texts.xmp() } else { None };
    upright(picture, Metadata { exif: chunks.exif.or(profile.as_deref()), xmp: xmp.as_deref() }, opts)
}

/// Width and height from the first chunk, which must be IHDR.
fn header(bytes: &[u8]) -> Result<(u32, u32), Reject> {
    if bytes.get(12..16) == Some(b"CgBI") {
        return Err(Reject::unsupported(
            "Apple's own kind of PNG (CgBI) is not read: convert it to plain PNG (`pngcrush -revert-iphone-optimizations`)",
        ));
    }
    let Some(ihdr) = bytes.get(8..33) else {
        return Err(Reject::truncated(format!("the file ends after {} bytes, in its header", bytes.len())));
    };
    if &ihdr[..8] != b"\0\0\0\x0dIHDR" {
        return Err(Reject::corrupt("the first chunk is not an IHDR of 13 bytes"));
    }
    Ok((be32(&ihdr[8..]), be32(&ihdr[12..])))
}

/// The decoder's part: `height x width x 3` bytes. It sees the chunks given and the end.
fn pixels(chunks: &[&[u8]], end: &[u8], mode: AlphaMode) -> Result<Vec<u8>, DecodingError> {
    let width = chunks.first().and_then(|header| header.get(8..12)).map_or(0, be32) as usize;
    let side = width * ROW_BYTES + SIDE_BYTES;
    let file = [&[SIGNATURE], chunks, &[end]].concat();
    let mut options = png::DecodeOptions::default();
    // The walk has checked those of the chunks; this one is of the pixels.
    options.set_ignore_crc(true);
    options.set_ignore_adler32(false);
    let mut decoder = Decoder::new_with_options(Pieces::new(file), options);
    decoder.set_limits(Limits { bytes: side });
    decoder.set_transformations(Transformations::EXPAND);
    let mut reader = decoder.read_info()?;
    let length = reader.output_buffer_size().ok_or(DecodingError::LimitsExceeded)?;
    // Of other channels than three, pixels are made while the samples are there.
    let pixels = u64::from(reader.info().width) * u64::from(reader.info().height);
    let made = if reader.output_color_type().0 == ColorType::Rgb { 0 } else { pixels * 3 };
    room(length as u64 + side as u64 + made).map_err(|lack| Error::new(ErrorKind::OutOfMemory, lack))?;
    let mut samples = vec![0; length];
    let info = reader.next_frame(&mut samples)?;
    if info.bit_depth == BitDepth::Sixteen {
        halve(&mut samples);
    }
    let channels = match info.color_type {
        ColorType::Grayscale => Channels::L,
        ColorType::GrayscaleAlpha => Channels::La,
        ColorType::Rgba => Channels::Rgba,
        // Palettes are expanded.
        ColorType::Rgb | ColorType::Indexed => Channels::Rgb,
    };
    Ok(to_rgb(samples, channels, mode))
}

/// From 16 bits to 8 in place: `x / 257`, rounded.
fn halve(samples: &mut Vec<u8>) {
    for i in 0..samples.len() / 2 {
        let wide = u32::from(samples[2 * i]) << 8 | u32::from(samples[2 * i + 1]);
        samples[i] = ((wide + 128) / 257) as u8;
    }
    samples.truncate(samples.len() / 2);
}

fn be32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_bits_are_scaled_and_rounded() {
        for wide in 0..=u16::MAX {
            let mut samples = wide.to_be_bytes().to_vec();
            halve(&mut samples);
            assert_eq!(samples, [(f64::from(wide) / 257.0).round() as u8]);
        }
    }
}
