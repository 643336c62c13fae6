//! From the channels of a file to red, green and blue; what becomes of transparency.

use super::AlphaMode;

/// The channels of a file's pixels, 8 bits each, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channels {
    /// Grey.
    L,
    /// Grey, alpha.
    La,
    /// Red, green, blue.
    Rgb,
    /// Red, green, blue, alpha.
    Rgba,
}

/// Makes `pixels x 3` bytes of the samples.
pub(super) fn to_rgb(samples: Vec<u8>, channels: Channels, mode: AlphaMode) -> Vec<u8> {
    let mut out = Vec::new();
    match channels {
        Channels::Rgb => return samples,
        Channels::L => {
            out.reserve_exact(samples.len() * 3);
            samples.iter().for_each(|grey| out.extend([*grey; 3]));
        }
        Channels::La => {
            out.reserve_exact(samples.len() / 2 * 3);
            samples.chunks_exact(2).for_each(|p| out.extend([laid(p[0], p[1], mode); 3]));
        }
        Channels::Rgba => {
            out.reserve_exact(samples.len() / 4 * 3);
            samples.chunks_exact(4).for_each(|p| {
                out.extend([laid(p[0], p[3], mode), laid(p[1], p[3], mode), laid(p[2], p[3], mode)]);
            });
        }
    }
    out
}

/// One colour with its alpha: laid on white, rounded to the nearest level, or as it is.
pub(super) fn laid(colour: u8, alpha: u8, mode: AlphaMode) -> u8 {
    match mode {
        AlphaMode::Drop => colour,
        AlphaMode::White => {
            let (colour, alpha) = (u32::from(colour), u32::from(alpha));
            ((colour * alpha + 255 * (255 - alpha) + 127) / 255) as u8
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alpha_is_laid_on_white_or_dropped() {
        assert_eq!(to_rgb(vec![7, 0, 7, 255], Channels::La, AlphaMode::White), [255, 255, 255, 7, 7, 7]);
        assert_eq!(to_rgb(vec![7, 0], Channels::La, AlphaMode::Drop), [7; 3]);
        assert_eq!(to_rgb(vec![0, 100, 200, 128], Channels::Rgba, AlphaMode::White), [127, 177, 227]);
        assert_eq!(to_rgb(vec![1, 2, 3, 0], Channels::Rgba, AlphaMode::Drop), [1, 2, 3]);
        assert_eq!(to_rgb(vec![1, 2], Channels::L, AlphaMode::White), [1, 1, 1, 2, 2, 2]);
    }
}
