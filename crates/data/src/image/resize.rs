//! Scaling to the model's square: antialiased bilinear, equal to Pillow's `BILINEAR` within 2 levels.
//!
//! The aspect is not kept: the whole picture is squashed into the square, as the published recipe does.

use std::cell::RefCell;

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};

use super::{Reject, Rgb, room_for};

/// Bytes for coefficients and bounds of a row or a column, in threes.
const COEFFICIENTS: u64 = 16;

thread_local! {
    /// Keeps its scratch memory from picture to picture.
    static RESIZER: RefCell<Resizer> = RefCell::new(Resizer::new());
}

/// Scales `picture` to `size x size`: that many pixels, RGB, row by row, into `out` (`size * size * 3` bytes).
///
/// # Errors
/// If the sizes and the number of bytes of `picture` do not agree, or those of `out`, or `size` is 0 or beyond 32 bits.
pub fn resize(picture: &Rgb, size: usize, out: &mut [u8]) -> Result<(), Reject> {
    let refused = |what: String| {
        let (w, h, bytes) = (picture.width, picture.height, picture.pixels.len());
        Reject::corrupt(format!("{w} x {h} ({bytes} bytes) does not scale to {size} x {size}: {what}"))
    };
    let side = u32::try_from(size).ok().filter(|s| *s > 0).ok_or_else(|| refused("no such size".into()))?;
    if size.checked_mul(size).and_then(|n| n.checked_mul(3)) != Some(out.len()) {
        return Err(refused(format!("there is room for {} bytes", out.len())));
    }
    // One pass makes a picture of the wanted width or height, the other the square.
    let longer = u64::from(picture.width.max(picture.height));
    room_for(u64::from(side) * (longer + u64::from(side)) + longer * COEFFICIENTS, 3)?;
    if (picture.width, picture.height) == (side, side) && picture.pixels.len() == out.len() {
        out.copy_from_slice(&picture.pixels);
        return Ok(());
    }
    let from = ImageRef::new(picture.width, picture.height, &picture.pixels, PixelType::U8x3)
        .map_err(|e| refused(e.to_string()))?;
    let mut to =
        Image::from_slice_u8(side, side, out, PixelType::U8x3).map_err(|e| refused(e.to_string()))?;
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Bilinear));
    RESIZER
        .with_borrow_mut(|resizer| resizer.resize(&from, &mut to, &options))
        .map_err(|e| refused(e.to_string()))
}

/// [`resize`] into memory of its own.
///
/// # Errors
/// As of [`resize`].
pub fn scaled(picture: &Rgb, size: usize) -> Result<Vec<u8>, Reject> {
    let mut out = vec![0; size.saturating_mul(size).saturating_mul(3)];
    resize(picture, size, &mut out).map(|()| out)
}

#[cfg(test)]
mod tests {
    use super::super::Warnings;
    use super::*;

    fn flat(width: u32, height: u32, colour: [u8; 3]) -> Rgb {
        let pixels = colour.repeat((width * height) as usize);
        Rgb { width, height, pixels, warnings: Warnings::default() }
    }

    #[test]
    fn flat_pictures_stay_flat_at_any_aspect() {
        for (w, h) in [(1, 1), (1, 2000), (2000, 1), (3, 7), (96, 96), (500, 333)] {
            let out = scaled(&flat(w, h, [10, 200, 77]), 96).unwrap();
            assert_eq!(out, [10, 200, 77].repeat(96 * 96), "{w} x {h}");
        }
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert!(scaled(&flat(4, 4, [0; 3]), 0).is_err());
        assert!(resize(&flat(4, 4, [0; 3]), 2, &mut [0; 11]).is_err());
        let short = Rgb { width: 9, height: 9, pixels: vec![0; 5], warnings: Warnings::default() };
        assert_eq!(scaled(&short, 8).unwrap_err().reason, "corrupt");
    }
}
