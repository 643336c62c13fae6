//! The structure of a WebP file: chunks, canvas, frames. Finds sizes, the first frame, how many there are, and
//! whether the file is whole; nothing is unpacked.

use crate::image::{DecodeOptions, Metadata, Reject, check_size, zero_fill};

/// One picture of the file.
pub(super) struct Frame<'a> {
    /// Columns and rows left free before it.
    pub(super) left: u32,
    pub(super) top: u32,
    /// Its size, at least 1 each, as container and compressed data agree on.
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) lossless: bool,
    /// The compressed pixels.
    pub(super) data: &'a [u8],
    /// The compressed alpha of lossy pixels.
    pub(super) alpha: Option<&'a [u8]>,
}

/// What a whole file holds.
pub(super) struct Found<'a> {
    /// Width and height.
    pub(super) canvas: (u32, u32),
    pub(super) frame: Frame<'a>,
    pub(super) frames: usize,
    pub(super) metadata: Metadata<'a>,
}

/// Chunks of the file or of a frame: tag and body.
struct Chunks<'a> {
    rest: &'a [u8],
    /// How many bytes the container announces beyond the file's end.
    lacking: usize,
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Result<(&'a [u8], &'a [u8]), Reject>;

    fn next(&mut self) -> Option<Self::Item> {
        let (head, tail) = self.rest.split_at_checked(8)?;
        let (tag, length) = (&head[..4], le(&head[4..]) as usize);
        self.rest = &[];
        let Some(body) = tail.get(..length) else {
            let missing = length - tail.len();
            let name = tag.escape_ascii();
            return Some(Err(if missing <= self.lacking {
                Reject::truncated(format!(
                    "the file ends {missing} bytes before the end of its `{name}` chunk"
                ))
            } else {
                Reject::corrupt(format!("the `{name}` chunk is {missing} bytes longer than what holds it"))
            }));
        };
        self.rest = tail.get(length.next_multiple_of(2)..).unwrap_or_default();
        Some(Ok((tag, body)))
    }
}

/// Walks through the file.
pub(super) fn walk<'a>(bytes: &'a [u8], opts: &DecodeOptions) -> Result<Found<'a>, Reject> {
    // Sizes come first: a file that asks for too much is refused for that, cut or not.
    let canvas = first_size(bytes)?;
    check_size(canvas.0, canvas.1, opts)?;
    let end = 8usize.saturating_add(le(&bytes[4..]) as usize);
    let inside = &bytes[12..end.clamp(12, bytes.len())];
    let lacking = end.saturating_sub(bytes.len());
    let (mut frame, mut metadata, mut frames) = (None, Metadata::default(), 0);
    let mut parts = Parts::default();
    for chunk in (Chunks { rest: inside, lacking }) {
        let (tag, body) = chunk?;
        match tag {
            b"ANMF" => {
                if frames == 0 {
                    frame = Some(animation_frame(body, canvas)?);
                }
                frames += 1;
            }
            b"EXIF" => metadata.exif = Some(body),
            b"XMP " => metadata.xmp = Some(body),
            b"\0\0\0\0" => {
                let from = zero_fill(bytes);
                return Err(Reject::truncated(format!("the file is filled with zeros from byte {from} on")));
            }
            _ => parts.take(tag, body),
        }
    }
    // A last chunk of odd length may lack the byte that makes it even.
    if lacking > 1 {
        return Err(Reject::truncated(format!("the file ends {lacking} bytes before its end")));
    }
    let frame = match frame {
        Some(frame) => frame,
        None => parts.frame((0, 0), canvas)?,
    };
    Ok(Found { canvas, frame, frames, metadata })
}

/// Width and height of the whole, from the first chunk.
fn first_size(bytes: &[u8]) -> Result<(u32, u32), Reject> {
    let cut = || Reject::truncated(format!("the file ends after {} bytes, in its header", bytes.len()));
    let tag = bytes.get(12..16).ok_or_else(cut)?;
    let body = bytes.get(20..).ok_or_else(cut)?;
    // Lossy data and the extended header have their size within 10 bytes, lossless data within 5.
    if body.len() < if tag == b"VP8L" { 5 } else { 10 } {
        return Err(cut());
    }
    match tag {
        b"VP8X" => Ok((le(&body[4..7]) + 1, le(&body[7..10]) + 1)),
        b"VP8 " => lossy_size(body),
        b"VP8L" => lossless_size(body),
        _ => Err(Reject::corrupt(format!("the first chunk is `{}`, no picture", tag.escape_ascii()))),
    }
}

/// Size in the header of lossy data (RFC 6386, 9.1).
fn lossy_size(data: &[u8]) -> Result<(u32, u32), Reject> {
    match data.get(3..10) {
        Some([0x9d, 0x01, 0x2a, size @ ..]) => Ok((le(&size[..2]) & 0x3fff, le(&size[2..]) & 0x3fff)),
        _ => Err(Reject::corrupt("the lossy picture has no header")),
    }
}

/// Size in the header of lossless data.
fn lossless_size(data: &[u8]) -> Result<(u32, u32), Reject> {
    match data.get(..5) {
        Some([0x2f, size @ ..]) => Ok(((le(size) & 0x3fff) + 1, (le(size) >> 14 & 0x3fff) + 1)),
        _ => Err(Reject::corrupt("the lossless picture has no header")),
    }
}

/// Reads a frame of an animation.
fn animation_frame(body: &[u8], canvas: (u32, u32)) -> Result<Frame<'_>, Reject> {
    let (head, inside) =
        body.split_at_checked(16).ok_or_else(|| Reject::corrupt("the first frame has no header"))?;
    let [left, top, width, height] = [0, 3, 6, 9].map(|i| le(&head[i..i + 3]));
    let (left, top, width, height) = (left * 2, top * 2, width + 1, height + 1);
    if left + width > canvas.0 || top + height > canvas.1 {
        let detail = format!(
            "the first frame, {width} x {height} at ({left}, {top}), goes beyond the canvas of {} x {}",
            canvas.0, canvas.1
        );
        return Err(Reject::corrupt(detail));
    }
    let mut parts = Parts::default();
    for chunk in (Chunks { rest: inside, lacking: 0 }) {
        let (tag, body) = chunk?;
        parts.take(tag, body);
    }
    parts.frame((left, top), (width, height))
}

/// Chunks that make up one picture.
#[derive(Default)]
struct Parts<'a> {
    /// The pixels, and whether they are lossless.
    data: Option<(&'a [u8], bool)>,
    alpha: Option<&'a [u8]>,
}

impl<'a> Parts<'a> {
    fn take(&mut self, tag: &[u8], body: &'a [u8]) {
        match tag {
            b"VP8 " | b"VP8L" if self.data.is_none() => self.data = Some((body, tag == b"VP8L")),
            b"ALPH" if self.data.is_none() => self.alpha = Some(body),
            _ => {}
        }
    }

    /// The picture, whose data must have the size that the container says.
    fn frame(self, (left, top): (u32, u32), (width, height): (u32, u32)) -> Result<Frame<'a>, Reject> {
        let (data, lossless) = self.data.ok_or_else(|| Reject::corrupt("there is no picture in the file"))?;
        let (w, h) = if lossless { lossless_size(data) } else { lossy_size(data) }?;
        if (w, h) != (width, height) {
            let detail = format!("the container says {width} x {height}, the picture in it {w} x {h}");
            return Err(Reject::corrupt(detail));
        }
        let alpha = self.alpha.filter(|_| !lossless);
        Ok(Frame { left, top, width, height, lossless, data, alpha })
    }
}

/// A number of up to 4 bytes, the lowest first.
fn le(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |n, byte| n << 8 | u32::from(*byte))
}
