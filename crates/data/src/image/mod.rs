//! Bytes of a picture in, upright 8-bit RGB out, or the reason why not.
//!
//! Read are JPEG (baseline and progressive; grey, colour, CMYK, YCCK), PNG and APNG (every kind), WebP (lossy,
//! lossless, with alpha, animated) and GIF. Of an animated file the first frame is taken, and that is reported.
//!
//! Invariants: the format is told from the bytes, never from a name; sizes are checked in the header before
//! any pixel is allocated; a picture of which a part is missing is never handed out; no input makes
//! [`decode`] panic. Each format has its own walk over the file's structure, which finds sizes, damage and a
//! cut end; a decoder then sees the parts that the pixels depend on, and no others (of JPEG the walk itself decodes).
//! So colour profiles, other frames and text (but for EXIF in it, up to 1 MiB) cost neither time nor memory,
//! whatever they would unpack to. Memory stays below about 24 bytes for a pixel of [`DecodeOptions::max_pixels`] and
//! four times the file's length.

mod channels;
mod gif;
mod jpeg;
mod orientation;
mod png;
mod reject;
mod resize;
mod sniff;
mod warnings;
mod webp;
mod write;

use std::panic::{AssertUnwindSafe, catch_unwind};

use ::image::metadata::Orientation;
use ::image::{DynamicImage, RgbImage};

use crate::memory::Reading;
use orientation::Metadata;
use reject::room_for;
pub use reject::{NO_MEMORY, REASONS, Reject, TOO_MANY_PIXELS};
pub use resize::{resize, scaled};
use sniff::{Format, sniff};
pub use warnings::Warnings;
pub use write::png;

/// Changes whenever decoding or scaling gives other pixels, or takes or refuses other files, than before: pictures that were kept
/// are made anew then.
pub const DECODER: u32 = 1;

/// A decoded picture: upright, 8 bits a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rgb {
    /// Pixels in a row, at least 1.
    pub width: u32,
    /// Rows, at least 1.
    pub height: u32,
    /// `height x width x 3` bytes: red, green, blue, row by row from the top left.
    pub pixels: Vec<u8>,
    /// What the file gives reason to report although the picture is whole.
    pub warnings: Warnings,
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
    /// Whether the orientation that EXIF, or else XMP, names is applied.
    pub exif: bool,
}

impl Default for DecodeOptions {
    fn default() -> Self {
        Self { max_pixels: 100_000_000, alpha: AlphaMode::White, exif: true }
    }
}

impl DecodeOptions {
    /// Pixels as Pillow's `Image.open(f).convert("RGB")` gives them: alpha dropped, EXIF left alone.
    ///
    /// They are equal in every format, but for one kind: grey PNG of 16 bits, which Pillow clips at 255, so that
    /// nearly everything is white. It is scaled here (`x / 257`, rounded), always. Colour PNG of 16 bits differs by
    /// 1 level: Pillow cuts the low byte off.
    pub fn pillow(max_pixels: u64) -> Self {
        Self { max_pixels, alpha: AlphaMode::Drop, exif: false }
    }
}

/// Decodes a picture file held in memory.
///
/// # Errors
/// A [`Reject`] if the bytes are not a whole, readable picture within the limits.
pub fn decode(bytes: &[u8], opts: &DecodeOptions) -> Result<Rgb, Reject> {
    let _reading = Reading::begin();
    let format = sniff(bytes)?;
    // The decoders, most of them other people's, are fed with hostile bytes: should one panic, one sample is lost.
    catch_unwind(AssertUnwindSafe(|| match format {
        Format::Jpeg => jpeg::decode(bytes, opts),
        Format::Png => png::decode(bytes, opts),
        Format::WebP => webp::decode(bytes, opts),
        Format::Gif => gif::decode(bytes, opts),
    }))
    .unwrap_or_else(|_| Err(Reject::corrupt(format!("the {format:?} decoder gave up on this file"))))
}

/// Refuses sizes from a header, before anything is allocated for them: too many pixels, and too many for the memory that
/// there is, as far as every format takes it.
fn check_size(width: u32, height: u32, opts: &DecodeOptions) -> Result<(), Reject> {
    if width == 0 || height == 0 {
        return Err(Reject::corrupt(format!("the header says {width} x {height} pixels")));
    }
    let pixels = u64::from(width) * u64::from(height);
    if pixels > opts.max_pixels {
        let limit = opts.max_pixels;
        let detail = format!("{width} x {height} = {pixels} pixels, the limit is {limit}");
        return Err(Reject::too_many_pixels(detail));
    }
    room_for(pixels, 3)
}

/// Turns a picture upright, if the options say so.
fn upright(picture: Rgb, metadata: Metadata<'_>, opts: &DecodeOptions) -> Result<Rgb, Reject> {
    let orientation = if opts.exif { orientation::of(metadata) } else { Orientation::NoTransforms };
    if orientation == Orientation::NoTransforms {
        return Ok(picture);
    }
    let Rgb { width, height, pixels, warnings } = picture;
    room_for(pixels.len() as u64, 1)?;
    let buffer = RgbImage::from_raw(width, height, pixels)
        .ok_or_else(|| Reject::corrupt(format!("fewer pixels than {width} x {height}")))?;
    let mut turned = DynamicImage::ImageRgb8(buffer);
    turned.apply_orientation(orientation);
    let buffer = turned.into_rgb8();
    Ok(Rgb { width: buffer.width(), height: buffer.height(), pixels: buffer.into_raw(), warnings })
}

/// Where the zeros begin that end the file: a download that was cut is often a file of the full length,
/// filled with zeros.
fn zero_fill(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1)
}
