//! The structure of a GIF file: screen, palettes, blocks. Finds sizes, the first frame, how many there are, and
//! whether the file is whole; nothing is unpacked.

use crate::image::{DecodeOptions, Reject, check_size, zero_fill};

/// The first frame.
pub(super) struct Frame<'a> {
    /// Columns and rows left free before it.
    pub(super) left: usize,
    pub(super) top: usize,
    /// Its size, at least 1 each.
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) interlaced: bool,
    /// Its own palette, 3 bytes a colour.
    pub(super) palette: Option<&'a [u8]>,
    /// The index that stands for nothing drawn.
    pub(super) transparent: Option<u8>,
    /// Bits of the smallest codes.
    pub(super) code_size: u8,
    /// The sub-blocks of compressed data, from the first length on.
    data: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The compressed data, piece by piece.
    pub(super) fn blocks(&self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.data;
        std::iter::from_fn(move || {
            let (length, tail) = rest.split_first().filter(|(length, _)| **length > 0)?;
            let (block, tail) = tail.split_at_checked(usize::from(*length))?;
            rest = tail;
            Some(block)
        })
    }
}

/// What a whole file holds.
pub(super) struct Found<'a> {
    /// Width and height of the screen, which grows with a first frame that is larger.
    pub(super) canvas: (u32, u32),
    /// The palette of frames without their own.
    pub(super) palette: Option<&'a [u8]>,
    pub(super) frame: Frame<'a>,
    pub(super) frames: usize,
    /// Whether the trailer is there.
    pub(super) ended: bool,
}

/// Reads from the file's front.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize, what: &str) -> Result<&'a [u8], Reject> {
        let part = self.bytes.get(self.at..self.at + n).ok_or_else(|| {
            Reject::truncated(format!("the file ends at byte {}, in {what}", self.bytes.len()))
        })?;
        self.at += n;
        Ok(part)
    }

    /// A palette, if the flags of a descriptor announce one.
    fn palette(&mut self, flags: u8) -> Result<Option<&'a [u8]>, Reject> {
        let colours = 2usize << (flags & 7);
        (flags & 0x80 != 0).then(|| self.take(colours * 3, "a palette")).transpose()
    }

    /// Goes over sub-blocks up to the empty one that ends them. Returns them from the first length on.
    fn sub_blocks(&mut self, what: &str) -> Result<&'a [u8], Reject> {
        let start = self.at;
        while let length @ 1.. = self.take(1, what)?[0] {
            self.take(length.into(), what)?;
        }
        Ok(&self.bytes[start..self.at])
    }
}

/// Walks through the file.
pub(super) fn walk<'a>(bytes: &'a [u8], opts: &DecodeOptions) -> Result<Found<'a>, Reject> {
    let mut reader = Reader { bytes, at: 6 };
    let head = reader.take(7, "its header")?;
    let screen = (le16(head), le16(&head[2..]));
    check_size(screen.0, screen.1, opts)?;
    let palette = reader.palette(head[4])?;
    let (mut transparent, mut first, mut frames, mut ended) = (None, None, 0, false);
    while !ended && reader.at < bytes.len() {
        match reader.take(1, "")?[0] {
            // Some writers end a block twice.
            0 => {}
            b'!' => transparent = extension(&mut reader, transparent)?,
            b',' => {
                let (frame, canvas) = image(&mut reader, screen, transparent.take(), opts, frames == 0)?;
                first.get_or_insert((frame, canvas));
                frames += 1;
            }
            b';' => ended = true,
            other => {
                let at = reader.at - 1;
                return Err(Reject::corrupt(format!("no block begins with 0x{other:02x} as byte {at} does")));
            }
        }
    }
    let Some((frame, canvas)) = first else {
        let what = if ended { Reject::corrupt } else { Reject::truncated };
        return Err(what("the file ends before its first frame"));
    };
    // One zero ends a frame's data; more stand in for what was cut off, the end of that data included.
    if !ended && bytes.len() - zero_fill(bytes) > 1 {
        return Err(Reject::truncated(format!(
            "the file is filled with zeros from byte {}",
            zero_fill(bytes)
        )));
    }
    Ok(Found { canvas, palette, frame, frames, ended })
}

/// Reads an extension. Returns the transparent index of the next frame.
fn extension(reader: &mut Reader<'_>, before: Option<u8>) -> Result<Option<u8>, Reject> {
    let label = reader.take(1, "an extension")?[0];
    let blocks = reader.sub_blocks("an extension")?;
    Ok(match (label, blocks) {
        (0xf9, [4, flags, _, _, index, ..]) => (flags & 1 == 1).then_some(*index),
        _ => before,
    })
}

/// Reads a frame, and the size of the screen that it needs. Sizes of later frames are of no consequence.
fn image<'a>(
    reader: &mut Reader<'a>,
    screen: (u32, u32),
    transparent: Option<u8>,
    opts: &DecodeOptions,
    check: bool,
) -> Result<(Frame<'a>, (u32, u32)), Reject> {
    let head = reader.take(9, "a frame's header")?;
    let [left, top, width, height] = [0, 2, 4, 6].map(|i| le16(&head[i..]));
    let canvas = (screen.0.max(left + width), screen.1.max(top + height));
    if check {
        check_size(width, height, opts)?;
        check_size(canvas.0, canvas.1, opts)?;
    }
    let palette = reader.palette(head[8])?;
    let code_size = reader.take(1, "a frame")?[0];
    let data = reader.sub_blocks("a frame")?;
    let frame = Frame {
        left: left as usize,
        top: top as usize,
        width: width as usize,
        height: height as usize,
        interlaced: head[8] & 0x40 != 0,
        palette,
        transparent,
        code_size,
        data,
    };
    Ok((frame, canvas))
}

fn le16(bytes: &[u8]) -> u32 {
    u32::from(u16::from_le_bytes([bytes[0], bytes[1]]))
}
