//! JPEG: baseline and progressive; grey, colour, CMYK and YCCK.
//!
//! The decoder (`zune-jpeg`) fills what is missing with grey and says nothing. So the file's structure and
//! its Huffman codes are read first, without computing a pixel ([`inspect`](inspect::inspect)): only a file
//! whose every block is there goes to the decoder.

mod bits;
mod frame;
mod huffman;
mod inspect;
mod progressive;
mod scan;

use std::borrow::Cow;

use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;

use super::{DecodeOptions, Reject, Rgb, Warnings, upright};

/// Decodes a JPEG file. `bytes` begins with the JPEG signature.
pub(super) fn decode(bytes: &[u8], opts: &DecodeOptions) -> Result<Rgb, Reject> {
    let found = inspect::inspect(bytes, opts)?;
    let pixels = pixels(&as_read(bytes, &found), &found)?;
    let warnings = Warnings { no_end_marker: found.end.is_none(), animated: false };
    let picture = Rgb { width: found.width, height: found.height, pixels, warnings };
    upright(picture, found.metadata, opts)
}

/// The file as the walk has read it: without what stands between segments or behind the end (a second picture,
/// anything), and with an end. Nearly every file is like that already.
fn as_read<'a>(bytes: &'a [u8], found: &inspect::Found<'_>) -> Cow<'a, [u8]> {
    let end = found.end.unwrap_or_else(|| bytes.strip_suffix(b"\xff").unwrap_or(bytes).len());
    if let (Some(_), []) = (found.end, &found.gaps[..]) {
        return Cow::Borrowed(&bytes[..end]);
    }
    let mut file = Vec::with_capacity(end + 2);
    let mut at = 0;
    for gap in &found.gaps {
        file.extend_from_slice(&bytes[at..gap.start]);
        at = gap.end;
    }
    file.extend_from_slice(&bytes[at..end]);
    if found.end.is_none() {
        // Without it the decoder would look for more data and give up on the last rows.
        file.extend_from_slice(b"\xff\xd9");
    }
    Cow::Owned(file)
}

/// The decoder's part: `height x width x 3` bytes.
fn pixels(bytes: &[u8], found: &inspect::Found<'_>) -> Result<Vec<u8>, Reject> {
    let options = DecoderOptions::default()
        // Otherwise it answers some of its errors with what it has so far.
        .set_strict_mode(true)
        .set_max_width(u16::MAX.into())
        .set_max_height(u16::MAX.into())
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    let pixels = decoder.decode().map_err(reject)?;
    let wanted = found.width as usize * found.height as usize * 3;
    if pixels.len() != wanted {
        return Err(Reject::corrupt(format!("{} bytes of pixels instead of {wanted}", pixels.len())));
    }
    Ok(pixels)
}

fn reject(error: DecodeErrors) -> Reject {
    match error {
        DecodeErrors::Unsupported(what) => Reject::unsupported(format!("{what:?}: convert it to usual JPEG")),
        other => Reject::corrupt(format!("{other:?}")),
    }
}
