//! Bytes of a picture in, upright 8-bit RGB out, or the reason why not.
//!
//! Invariants: the format is told from the bytes, never from a name; sizes are checked in the header before
//! any pixel is allocated; a picture of which a part is missing is never handed out; no input makes
//! [`decode`] panic. JPEG (baseline and progressive; grey, colour, CMYK, YCCK) and PNG (every kind) are read.

mod jpeg;
mod png;
mod resize;
mod sniff;

use std::panic::{AssertUnwindSafe, catch_unwind};

use ::image::metadata::Orientation;
use ::image::{DynamicImage, RgbImage};
use thiserror::Error;

pub use resize::resize;
use sniff::{Format, sniff};

/// A decoded picture: upright, 8 bits a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rgb {
    /// Pixels in a row, at least 1.
    pub width: u32,
    /// Rows, at least 1.
    pub height: u32,
    /// `height x width x 3` bytes: red, green, blue, row by row from the top left.
    pub pixels: Vec<u8>,
    /// A flaw of the file that cost no pixel, as a stable word: `no_end_marker`.
    pub warning: Option<&'static str>,
}

/// Why bytes were not accepted as a picture.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{reason}: {detail}")]
pub struct Reject {
    /// A stable word: `empty_file`, `not_an_image`, `unsupported_format`, `truncated`, `corrupt`,
    /// `too_many_pixels`.
    pub reason: &'static str,
    /// What was found, for a person.
    pub detail: String,
}

impl Reject {
    fn new(reason: &'static str, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into() }
    }

    fn corrupt(detail: impl Into<String>) -> Self {
        Self::new("corrupt", detail)
    }

    fn truncated(detail: impl Into<String>) -> Self {
        Self::new("truncated", detail)
    }
}

/// What becomes of transparency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AlphaMode {
    /// The picture is laid on white.
    #[default]
    White,
    /// The alpha channel is dropped; colours hidden under it show.
    Drop,
}

/// How pictures are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeOptions {
    /// The largest `width x height` accepted.
    pub max_pixels: u64,
    /// What becomes of transparency.
    pub alpha: AlphaMode,
    /// Whether the EXIF orientation is applied.
    pub exif: bool,
}

impl Default for DecodeOptions {
    fn default() -> Self {
        Self { max_pixels: 100_000_000, alpha: AlphaMode::White, exif: true }
    }
}

/// Decodes a JPEG or PNG file held in memory.
///
/// # Errors
/// A [`Reject`] if the bytes are not a whole, readable picture within the limits.
pub fn decode(bytes: &[u8], opts: &DecodeOptions) -> Result<Rgb, Reject> {
    let format = sniff(bytes)?;
    // The decoders are other people's code fed with hostile bytes: should one panic, one sample is lost.
    catch_unwind(AssertUnwindSafe(|| match format {
        Format::Jpeg => jpeg::decode(bytes, opts),
        Format::Png => png::decode(bytes, opts),
    }))
    .unwrap_or_else(|_| Err(Reject::corrupt(format!("the {format:?} decoder gave up on this file"))))
}

/// Refuses sizes from a header, before anything is allocated for them.
fn check_size(width: u32, height: u32, opts: &DecodeOptions) -> Result<(), Reject> {
    if width == 0 || height == 0 {
        return Err(Reject::corrupt(format!("the header says {width} x {height} pixels")));
    }
    let pixels = u64::from(width) * u64::from(height);
    if pixels > opts.max_pixels {
        return Err(Reject::new(
            "too_many_pixels",
            format!("{width} x {height} = {pixels} pixels, the limit is {}", opts.max_pixels),
        ));
    }
    Ok(())
}

/// Turns a picture upright. `exif` is a TIFF block; a nonsense orientation means upright already.
fn upright(picture: Rgb, exif: Option<&[u8]>) -> Result<Rgb, Reject> {
    let orientation = exif.and_then(Orientation::from_exif_chunk).unwrap_or(Orientation::NoTransforms);
    if orientation == Orientation::NoTransforms {
        return Ok(picture);
    }
    let Rgb { width, height, pixels, warning } = picture;
    let buffer = RgbImage::from_raw(width, height, pixels)
        .ok_or_else(|| Reject::corrupt(format!("fewer pixels than {width} x {height}")))?;
    let mut turned = DynamicImage::ImageRgb8(buffer);
    turned.apply_orientation(orientation);
    let buffer = turned.into_rgb8();
    Ok(Rgb { width: buffer.width(), height: buffer.height(), pixels: buffer.into_raw(), warning })
}
