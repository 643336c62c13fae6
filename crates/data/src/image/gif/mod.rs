//! GIF: the first frame on the logical screen, with transparency, local and global palettes, interlaced or not.
//!
//! Invariant: a frame is handed out only if its compressed data holds every one of its pixels.

mod walk;

use weezl::{BitOrder, LzwStatus};

use super::channels::laid;
use super::{AlphaMode, DecodeOptions, Reject, Rgb, Warnings, room_for};
use walk::{Found, Frame, walk};

/// Decodes a GIF file. `bytes` begins with the GIF signature.
pub(super) fn decode(bytes: &[u8], opts: &DecodeOptions) -> Result<Rgb, Reject> {
    let found = walk(bytes, opts)?;
    let (width, height) = found.canvas;
    // Indices, and pixels of the screen, which is no smaller.
    room_for(u64::from(width) * u64::from(height), 4)?;
    let indices = indices(&found.frame)?;
    let pixels = paint(&found, &indices, opts.alpha);
    let warnings =
        Warnings { no_end_marker: !found.ended, animated: found.frames > 1, ..Warnings::default() };
    Ok(Rgb { width, height, pixels, warnings })
}

/// The frame's palette indices, row by row as they are sent.
fn indices(frame: &Frame<'_>) -> Result<Vec<u8>, Reject> {
    if !(1..=8).contains(&frame.code_size) {
        return Err(Reject::corrupt(format!("codes of {} bits do not exist", frame.code_size)));
    }
    let mut out = vec![0; frame.width * frame.height];
    let mut filled = 0;
    let mut decoder = weezl::decode::Decoder::new(BitOrder::Lsb, frame.code_size);
    'blocks: for mut block in frame.blocks() {
        while filled < out.len() {
            let step = decoder.decode_bytes(block, &mut out[filled..]);
            filled += step.consumed_out;
            block = &block[step.consumed_in..];
            match step.status {
                Ok(LzwStatus::Ok) => {}
                Ok(LzwStatus::NoProgress) => continue 'blocks,
                Ok(LzwStatus::Done) => break 'blocks,
                Err(_) => {
                    let row = filled / frame.width;
                    return Err(Reject::corrupt(format!("impossible code in row {row} of {}", frame.height)));
                }
            }
        }
    }
    if filled < out.len() {
        let (wanted, row) = (out.len(), filled / frame.width);
        return Err(Reject::truncated(format!(
            "the frame's data holds {filled} of {wanted} pixels: it ends in row {row} of {}",
            frame.height
        )));
    }
    Ok(out)
}

/// Lays the frame on the screen.
fn paint(found: &Found<'_>, indices: &[u8], mode: AlphaMode) -> Vec<u8> {
    let frame = &found.frame;
    let mut colours = palette(frame.palette.or(found.palette));
    // Around a smaller frame nothing is drawn: that is transparent. Pillow fills it with the transparent
    // colour, or the first of the palette where there is none; that is what shows without alpha.
    let hidden = colours[usize::from(frame.transparent.unwrap_or(0))];
    let outside = hidden.map(|c| laid(c, 0, mode));
    if let Some(index) = frame.transparent {
        colours[usize::from(index)] = outside;
    }
    let width = found.canvas.0 as usize;
    let mut pixels = outside.repeat(width * found.canvas.1 as usize);
    for (sent, row) in indices.chunks_exact(frame.width).enumerate() {
        let y = frame.top + if frame.interlaced { interlaced_row(sent, frame.height) } else { sent };
        let start = (y * width + frame.left) * 3;
        let line = &mut pixels[start..start + frame.width * 3];
        for (pixel, index) in line.chunks_exact_mut(3).zip(row) {
            pixel.copy_from_slice(&colours[usize::from(*index)]);
        }
    }
    pixels
}

/// 256 colours. What a palette does not name is black, and without any palette an index is a level of grey: so
/// does Pillow; the format leaves it open.
fn palette(given: Option<&[u8]>) -> [[u8; 3]; 256] {
    let Some(given) = given else { return std::array::from_fn(|i| [i as u8; 3]) };
    let mut colours = [[0; 3]; 256];
    for (colour, rgb) in colours.iter_mut().zip(given.chunks_exact(3)) {
        colour.copy_from_slice(rgb);
    }
    colours
}

/// Where the row belongs that is sent as number `sent` of an interlaced frame (GIF89a, appendix E).
fn interlaced_row(sent: usize, height: usize) -> usize {
    let mut rest = sent;
    for (first, step) in [(0, 8), (4, 8), (2, 4)] {
        let rows = height.saturating_sub(first).div_ceil(step);
        if rest < rows {
            return first + rest * step;
        }
        rest -= rows;
    }
    1 + rest * 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interlaced_rows_are_a_permutation() {
        for height in 1..40 {
            let mut rows: Vec<usize> = (0..height).map(|sent| interlaced_row(sent, height)).collect();
            rows.sort_unstable();
            assert_eq!(rows, (0..height).collect::<Vec<_>>());
        }
        let of_ten: Vec<usize> = (0..10).map(|sent| interlaced_row(sent, 10)).collect();
        assert_eq!(of_ten, [0, 8, 4, 2, 6, 1, 3, 5, 7, 9]);
    }
}
