//! JPEG: baseline and progressive; grey, colour, CMYK and YCCK.
//!
//! The decoder is our own: of those in Rust, one differs from libjpeg at edges and fills what is missing with grey, and
//! the exact ones are large and unsafe. It reads the file once, block by block, so that it knows what is missing,
//! and its pixels equal those of libjpeg-turbo (and so Pillow's) to the bit: the same transform in whole
//! numbers, the same interpolation of colour, the same conversion.

mod bits;
mod coding;
mod colour;
mod file;
mod frame;
mod header;
mod huffman;
mod idct;
mod paint;
mod progressive;
mod restart;
mod scan;
mod smooth;
mod tables;
mod upsample;
mod zigzag;

use super::{DecodeOptions, Metadata, Reject, Rgb, Warnings, upright};

/// Decodes a JPEG file. `bytes` begins with the JPEG signature.
pub(super) fn decode(bytes: &[u8], opts: &DecodeOptions) -> Result<Rgb, Reject> {
    let file::Found { width, height, pixels, exif, xmp, ended, incomplete } = file::read(bytes, opts)?;
    let warnings = Warnings { no_end_marker: !ended, animated: false, incomplete };
    let metadata = Metadata { exif: Some(&exif), xmp };
    upright(Rgb { width, height, pixels, warnings }, metadata, opts)
}
