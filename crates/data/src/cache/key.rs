//! What decides the pixels and captions of a cache, as a text that is compared to the byte.

use super::Wish;
use crate::image::{DECODER, DecodeOptions};
use crate::source::Source;

/// The key of a source's pictures; none if it cannot be told whether they changed.
pub(super) fn of(source: &dyn Source, wish: &Wish) -> Option<String> {
    let stamp = source.stamp()?;
    let Wish { size, decode: DecodeOptions { max_pixels, alpha, exif }, .. } = wish;
    let (print, rows) = (source.fingerprint(), source.len());
    // What bad samples say of their place is in the file.
    let what = source.describe();
    Some(format!(
        "{what}; fingerprint {print:016x}, files {stamp:016x}, {rows} rows; {size} x {size} pixels, at most {max_pixels}, alpha \
         {alpha:?}, exif {exif}; decoder {DECODER}"
    ))
}
