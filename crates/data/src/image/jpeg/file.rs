//! A JPEG file from marker to marker: sizes, tables, scans. A file of which a block is missing is refused, and
//! why is told.

use super::bits::Stop;
use super::colour::Colour;
use super::frame::Frame;
use super::header::scan_header;
use super::paint::Painter;
use super::scan::{Broken, next_marker, read_scan};
use super::tables::Tables;
use crate::image::orientation::{EXIF_HEAD, Metadata, XMP_HEAD};
use crate::image::{DecodeOptions, Reject, zero_fill};

/// What a whole file holds.
pub(super) struct Found<'a> {
    pub(super) width: u32,
    pub(super) height: u32,
    /// `height x width x 3` bytes: red, green, blue.
    pub(super) pixels: Vec<u8>,
    /// The first EXIF segment, and the first of XMP.
    pub(super) metadata: Metadata<'a>,
    /// Whether the file has an end marker.
    pub(super) ended: bool,
}

/// More scans than any encoder writes; each costs a pass over all blocks, so hostile files have a limit.
const MAX_SCANS: usize = 100;
/// As many as encoders write (18 for CMYK by libjpeg, some more by optimisers). More are read where the picture is
/// small beside the limit of pixels.
const USUAL_SCANS: usize = 30;

/// Reads the whole file.
pub(super) fn read<'a>(bytes: &'a [u8], opts: &DecodeOptions) -> Result<Found<'a>, Reject> {
    let bytes = without_zero_fill(bytes);
    let mut walk = Walk {
        bytes,
        opts,
        frame: None,
        tables: Tables::standard()?,
        interval: 0,
        scans: 0,
        metadata: Metadata::default(),
        jfif: false,
        adobe: None,
        colour: Colour::Grey,
        painter: None,
    };
    let ended = walk.run()?;
    let Some(mut frame) = walk.frame else {
        return Err(Reject::corrupt("there is no picture between the start and the end marker"));
    };
    let pixels = match walk.painter {
        Some(painter) => painter.pixels,
        None => {
            frame.finish();
            let mut painter = Painter::new(&frame, walk.colour);
            painter.paint(&frame.components, frame.height);
            painter.pixels
        }
    };
    let (width, height) = (frame.width as u32, frame.height as u32);
    Ok(Found { width, height, pixels, metadata: walk.metadata, ended })
}

/// Drops zeros at the end, which are valid codes.
fn without_zero_fill(bytes: &[u8]) -> &[u8] {
    let kept = zero_fill(bytes);
    // A 0 that belongs to the data: ff 00 stands for ff.
    let stuffed = bytes[..kept].ends_with(b"\xff") && kept < bytes.len();
    &bytes[..kept + usize::from(stuffed)]
}

struct Walk<'a, 'o> {
    bytes: &'a [u8],
    opts: &'o DecodeOptions,
    frame: Option<Frame>,
    tables: Tables,
    /// Coded units between restart markers; 0 for none.
    interval: usize,
    scans: usize,
    metadata: Metadata<'a>,
    /// Whether there is a head of JFIF.
    jfif: bool,
    /// What Adobe's segment says of colours.
    adobe: Option<u8>,
    /// What the components mean, known when the first scan begins.
    colour: Colour,
    /// What makes pixels on the way, if one scan has all there is to know.
    painter: Option<Painter>,
}

impl<'a> Walk<'a, '_> {
    /// Goes from marker to marker. Returns whether there is an end marker.
    fn run(&mut self) -> Result<bool, Reject> {
        let mut at = 2;
        while let Some(marker_at) = next_marker(self.bytes, at) {
            let marker = self.bytes[marker_at + 1];
            at = marker_at + 2;
            match marker {
                0xd9 if self.frame.as_ref().is_none_or(Frame::complete) => return Ok(true),
                0xd9 => return Err(Reject::truncated("the end marker comes before the last scan")),
                // Without a body, and without meaning between segments.
                0x01 | 0xd0..=0xd8 => {}
                _ => {
                    let Some(body) = segment(self.bytes, at)? else { break };
                    at += 2 + body.len();
                    at = self.segment(marker, body, at)?;
                }
            }
        }
        match &self.frame {
            Some(frame) if frame.complete() => Ok(false),
            Some(_) => {
                Err(Reject::truncated(format!("the file ends at byte {}, in the picture", self.bytes.len())))
            }
            None => {
                Err(Reject::truncated(format!("the file ends at byte {}, in its header", self.bytes.len())))
            }
        }
    }

    /// Reads one segment; `at` is the byte behind it. Returns where to go on.
    fn segment(&mut self, marker: u8, body: &'a [u8], at: usize) -> Result<usize, Reject> {
        match marker {
            0xc0..=0xc2 if self.frame.is_some() => {
                return Err(Reject::corrupt("there are two frame headers"));
            }
            0xc0..=0xc2 => self.frame = Some(Frame::read(marker == 0xc2, body, self.opts)?),
            0xc4 => self.tables.read_huffman(body)?,
            0xc3 | 0xc5..=0xc7 | 0xc9..=0xcf | 0xf7 => return Err(not_read(marker)),
            0xda => return self.scan(body, at),
            0xdd => match body {
                [a, b] => self.interval = usize::from(u16::from_be_bytes([*a, *b])),
                _ => return Err(Reject::corrupt("the restart interval has a wrong length")),
            },
            0xdb => self.tables.read_factors(body)?,
            0xe0 => self.jfif |= body.len() >= 14 && body.starts_with(b"JFIF\0"),
            0xee if body.starts_with(b"Adobe") => self.adobe = body.get(11).copied().or(self.adobe),
            0xe1 => {
                let Metadata { exif, xmp } = &mut self.metadata;
                *exif = exif.or(body.strip_prefix(EXIF_HEAD));
                *xmp = xmp.or(body.strip_prefix(XMP_HEAD));
            }
            _ => {}
        }
        Ok(at)
    }

    fn scan(&mut self, body: &[u8], at: usize) -> Result<usize, Reject> {
        let Some(frame) = &mut self.frame else {
            return Err(Reject::corrupt("a scan comes before the frame header"));
        };
        self.scans += 1;
        let pixels = (frame.width * frame.height * self.scans) as u64;
        if self.scans > MAX_SCANS
            || self.scans > USUAL_SCANS && pixels > self.opts.max_pixels.saturating_mul(8)
        {
            return Err(Reject::corrupt(format!(
                "there are {} scans or more: none needs so many",
                self.scans
            )));
        }
        let header = scan_header(body, frame)?;
        for part in &header.parts {
            let c = &mut frame.components[part.component];
            let missing = || Reject::corrupt(format!("quantisation table {} is missing", c.table));
            c.factors = Some(c.factors.or(self.tables.factors[c.table]).ok_or_else(missing)?);
        }
        let mut painter = None;
        if self.scans == 1 {
            let one = !frame.progressive && header.parts.len() == frame.components.len();
            frame.allocate(!one);
            self.colour = Colour::of(&frame.components, self.jfif, self.adobe);
            if one {
                painter = Some(self.painter.insert(Painter::new(frame, self.colour)));
            }
        }
        let end = read_scan(self.bytes, at, &header, frame, &self.tables, self.interval, painter)
            .map_err(|broken| broken_off(self.bytes, &broken, frame.height))?;
        for part in &header.parts {
            frame.components[part.component].sent[header.band.0..=header.band.1].fill(header.low);
        }
        Ok(end)
    }
}

/// The body of a segment whose length field is at byte `at`; `None` if the file ends before it does.
fn segment(bytes: &[u8], at: usize) -> Result<Option<&[u8]>, Reject> {
    let Some(&[high, low]) = bytes.get(at..at + 2) else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([high, low]));
    if length < 2 {
        return Err(Reject::corrupt(format!("the segment at byte {} says it has {length} bytes", at - 2)));
    }
    Ok(bytes.get(at + 2..at + length))
}

/// Names a kind of JPEG that is not read, by the marker of its frame.
fn not_read(marker: u8) -> Reject {
    let kind = match marker {
        0xc3 | 0xcb => "lossless",
        0xc9 | 0xca | 0xcc => "arithmetic-coded",
        0xf7 => "JPEG-LS, lossless",
        _ => "hierarchical",
    };
    Reject::unsupported(format!("{kind} JPEG (marker ff{marker:02x}) is not read: convert it to usual JPEG"))
}

/// Says why a scan could not be read to its end.
fn broken_off(bytes: &[u8], broken: &Broken, height: usize) -> Reject {
    let place = format!("row {} of {height}, near byte {}", broken.row, broken.at);
    let next = next_marker(bytes, broken.at).map(|at| bytes[at + 1]);
    match (broken.stop, next) {
        (Stop::NoData, None | Some(0xd9)) => Reject::truncated(format!("the picture ends at {place}")),
        (Stop::NoData, Some(marker)) => {
            Reject::corrupt(format!("marker ff{marker:02x} inside the picture, at {place}"))
        }
        (Stop::BadCode, _) => Reject::corrupt(format!("impossible code at {place}")),
    }
}
