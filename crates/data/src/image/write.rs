//! Pixels as a PNG file, to be looked at.

use ::png::{BitDepth, ColorType, Encoder, EncodingError};

/// The bytes of a PNG file of `side x side` pixels, RGB, 8 bits a channel, row by row.
///
/// # Errors
/// If there are not `side * side * 3` bytes, or `side` is 0.
pub fn png(pixels: &[u8], side: usize) -> Result<Vec<u8>, EncodingError> {
    let mut file = Vec::new();
    let extent = u32::try_from(side).unwrap_or(u32::MAX);
    let mut encoder = Encoder::new(&mut file, extent, extent);
    encoder.set_color(ColorType::Rgb);
    encoder.set_depth(BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::png;
    use crate::image::{DecodeOptions, decode};

    #[test]
    fn what_is_written_is_read_back() {
        let pixels: Vec<u8> = (0..5 * 5 * 3).collect();
        let back = decode(&png(&pixels, 5).unwrap(), &DecodeOptions::default()).unwrap();
        assert_eq!((back.width, back.height, back.pixels), (5, 5, pixels.clone()));
        assert!(png(&pixels, 6).is_err() && png(&[], 0).is_err());
    }
}
