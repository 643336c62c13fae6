//! WebP: lossy, lossless, with alpha, animated (the first frame on its canvas).
//!
//! Invariant: the decoder sees a file made of one picture's parts, whose size has been compared with what the
//! container says.

mod walk;

use std::io::Cursor;

use image_webp::{DecodingError, WebPDecoder};

use super::channels::{Channels, laid, to_rgb};
use super::{AlphaMode, DecodeOptions, Reject, Rgb, Warnings, room_for, upright, zero_fill};
use walk::{Frame, walk};

/// Bytes that the decoder and what is made of its pixels take for each: those of 4 channels, planes or tables of up to
/// 6, and 3 on each of frame and canvas.
const DECODER: u64 = 16;
/// So many zeros at the end of the compressed data make one look whether they are needed.
const SUSPICIOUS_ZEROS: usize = 64;
/// More bytes than encoders leave unused at the end.
const UNUSED: usize = 8;

/// Decodes a WebP file. `bytes` begins with `RIFF....WEBP`.
pub(super) fn decode(bytes: &[u8], opts: &DecodeOptions) -> Result<Rgb, Reject> {
    let found = walk(bytes, opts)?;
    let frame = &found.frame;
    room_for(u64::from(found.canvas.0) * u64::from(found.canvas.1), DECODER)?;
    let (pixels, has_alpha) = pixels(frame, frame.data).map_err(reject)?;
    refuse_zero_fill(frame)?;
    let channels = if has_alpha { Channels::Rgba } else { Channels::Rgb };
    let pixels = to_rgb(pixels, channels, opts.alpha);
    let (width, height) = found.canvas;
    let pixels = if (width, height) == (frame.width, frame.height) {
        pixels
    } else {
        on_canvas(found.canvas, frame, &pixels, opts.alpha)
    };
    let warnings = Warnings { animated: found.frames > 1, ..Warnings::default() };
    upright(Rgb { width, height, pixels, warnings }, found.metadata, opts)
}

/// The decoder's part: 3 bytes a pixel, or 4 with alpha, and whether there is alpha.
fn pixels(frame: &Frame<'_>, data: &[u8]) -> Result<(Vec<u8>, bool), DecodingError> {
    let file = file(frame, data);
    let mut decoder = WebPDecoder::new(Cursor::new(&file[..]))?;
    let mut pixels = vec![0; decoder.output_buffer_size().ok_or(DecodingError::ImageTooLarge)?];
    decoder.read_image(&mut pixels)?;
    Ok((pixels, decoder.has_alpha()))
}

/// A file of one picture: its compressed data and, for lossy ones, its alpha.
fn file(frame: &Frame<'_>, data: &[u8]) -> Vec<u8> {
    let alpha = frame.alpha.unwrap_or_default();
    let mut file = Vec::with_capacity(data.len() + alpha.len() + 64);
    file.extend_from_slice(b"RIFF\0\0\0\0WEBP");
    if frame.alpha.is_some() {
        let mut head = [0; 10];
        head[0] = 0x10;
        head[4..7].copy_from_slice(&(frame.width - 1).to_le_bytes()[..3]);
        head[7..].copy_from_slice(&(frame.height - 1).to_le_bytes()[..3]);
        append(&mut file, b"VP8X", &head);
        append(&mut file, b"ALPH", alpha);
    }
    append(&mut file, if frame.lossless { b"VP8L" } else { b"VP8 " }, data);
    let size = (file.len() - 8) as u32;
    file[4..8].copy_from_slice(&size.to_le_bytes());
    file
}

fn append(file: &mut Vec<u8>, tag: &[u8; 4], body: &[u8]) {
    file.extend_from_slice(tag);
    file.extend_from_slice(&(body.len() as u32).to_le_bytes());
    file.extend_from_slice(body);
    file.resize(file.len().next_multiple_of(2), 0);
}

/// Zeros are valid codes, so a file whose cut end is filled with them decodes. But it is most unlikely that the
/// picture then needs them to the last: if it comes out without some, they were no part of it. (That finds no
/// fill of a few bytes: the format has no checksums.)
fn refuse_zero_fill(frame: &Frame<'_>) -> Result<(), Reject> {
    let zeros = frame.data.len() - zero_fill(frame.data);
    if zeros < SUSPICIOUS_ZEROS {
        return Ok(());
    }
    let shorter = &frame.data[..frame.data.len() - UNUSED];
    match pixels(frame, shorter) {
        Ok(_) => {
            Err(Reject::truncated(format!("the file's last {zeros} bytes of pixels are zeros: it was cut")))
        }
        Err(_) => Ok(()),
    }
}

/// Lays a frame on its larger canvas. What it leaves free is transparent black.
fn on_canvas((width, height): (u32, u32), frame: &Frame<'_>, pixels: &[u8], mode: AlphaMode) -> Vec<u8> {
    let mut canvas = vec![laid(0, 0, mode); width as usize * height as usize * 3];
    let row = frame.width as usize * 3;
    for (i, line) in pixels.chunks_exact(row).enumerate() {
        let start = ((frame.top as usize + i) * width as usize + frame.left as usize) * 3;
        canvas[start..start + row].copy_from_slice(line);
    }
    canvas
}

fn reject(error: DecodingError) -> Reject {
    match error {
        // The container was whole: what is missing lies between it and the sizes inside the data.
        DecodingError::IoError(_) => Reject::truncated("the compressed data ends before the last pixel"),
        DecodingError::UnsupportedFeature(what) => Reject::unsupported(format!("{what}: convert it to PNG")),
        other => Reject::corrupt(other.to_string()),
    }
}
