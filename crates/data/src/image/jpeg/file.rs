//! A JPEG file from marker to marker: sizes, tables, scans.
//!
//! What Pillow reads is read, and what it refuses is refused, but for one thing: a file that was cut is refused, also where
//! libjpeg would fill up with grey (a scan is not whole, a component has none), and read if nothing is missing but the
//! end marker.

use super::coding::Coding;
use super::colour::Colour;
use super::frame::Frame;
use super::header::scan_header;
use super::paint::Painter;
use super::restart::next_marker;
use super::scan::read_scan;
use super::tables::Tables;
use crate::image::orientation::{EXIF_HEAD, XMP_HEAD};
use crate::image::{DecodeOptions, Reject, zero_fill};

/// What a whole file holds.
pub(super) struct Found<'a> {
    pub(super) width: u32,
    pub(super) height: u32,
    /// `height x width x 3` bytes: red, green, blue.
    pub(super) pixels: Vec<u8>,
    /// What the EXIF segments hold, one behind the other.
    pub(super) exif: Vec<u8>,
    /// The last segment of XMP.
    pub(super) xmp: Option<&'a [u8]>,
    /// Whether the file has an end marker.
    pub(super) ended: bool,
    /// Whether the last scans are missing, or parts between restart markers.
    pub(super) incomplete: bool,
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
        tables: Tables::default(),
        interval: 0,
        scans: 0,
        exif: Vec::new(),
        xmp: None,
        jfif: false,
        adobe: None,
        colour: Colour::Grey,
        painter: None,
        broken: false,
    };
    let ended = walk.run()?;
    let Some(mut frame) = walk.frame else {
        return Err(Reject::corrupt("there is no picture between the start and the end marker"));
    };
    let incomplete = walk.broken || !frame.complete();
    let pixels = match walk.painter {
        Some(painter) => painter.pixels,
        None => {
            frame.finish(walk.scans);
            let mut painter = Painter::new(&frame, walk.colour);
            painter.paint(&frame.components, frame.height);
            painter.pixels
        }
    };
    let (width, height) = (frame.width as u32, frame.height as u32);
    Ok(Found { width, height, pixels, exif: walk.exif, xmp: walk.xmp, ended, incomplete })
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
    exif: Vec<u8>,
    xmp: Option<&'a [u8]>,
    /// Whether there is a head of JFIF.
    jfif: bool,
    /// What Adobe's segment says of colours.
    adobe: Option<u8>,
    /// What the components mean, known when the first scan begins.
    colour: Colour,
    /// What makes pixels on the way, if one scan has all there is to know.
    painter: Option<Painter>,
    /// Whether a scan lacked parts between restart markers.
    broken: bool,
}

impl<'a> Walk<'a, '_> {
    /// Goes from marker to marker. Returns whether there is an end marker.
    fn run(&mut self) -> Result<bool, Reject> {
        let mut at = 2;
        while let Some(marker_at) = next_marker(self.bytes, at) {
            let marker = self.bytes[marker_at + 1];
            at = marker_at + 2;
            match marker {
                0xd9 if self.frame.is_none() => at = self.next_stream(at)?,
                0xd9 => return self.end().map(|()| true),
                // Without a body, and without meaning between segments.
                0xd0..=0xd7 => {}
                // Likewise, but Pillow does not know it in a header.
                0x01 if self.scans > 0 => {}
                0xc0..=0xcf | 0xda..=0xdd | 0xe0..=0xef | 0xf7 | 0xfe => {
                    let Some(body) = segment(self.bytes, at)? else { break };
                    at += 2 + body.len();
                    at = self.segment(marker, body, at)?;
                }
                _ => return Err(Reject::corrupt(format!("marker ff{marker:02x} at byte {marker_at}"))),
            }
        }
        let len = self.bytes.len();
        match &self.frame {
            Some(frame) if frame.complete() => Ok(false),
            Some(_) => Err(Reject::truncated(format!("the file ends at byte {len}, in the picture"))),
            None => Err(Reject::truncated(format!("the file ends at byte {len}, in its header"))),
        }
    }

    /// Behind the end of a stream of tables alone, byte `at`: the picture's own stream begins, in which they hold.
    fn next_stream(&mut self, at: usize) -> Result<usize, Reject> {
        if !self.bytes[at..].starts_with(b"\xff\xd8") {
            return Err(Reject::corrupt("there is no picture between the start and the end marker"));
        }
        (self.interval, self.jfif, self.adobe) = (0, false, None);
        Ok(at + 2)
    }

    /// Whether all is there that must be where the end marker is: each component. Its detail may be missing.
    fn end(&self) -> Result<(), Reject> {
        match self.frame.as_ref().and_then(Frame::missing) {
            Some(component) => Err(Reject::truncated(format!(
                "the end marker comes before the first scan of component {component}"
            ))),
            None => Ok(()),
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
            0xcc if arithmetic_conditions(body) => {}
            0xcc => return Err(Reject::corrupt("a segment of arithmetic coding is damaged")),
            0xc3 | 0xc5..=0xcf | 0xf7 => return Err(not_read(marker)),
            0xda => return self.scan(body, at),
            0xdd => match body {
                [a, b] => self.interval = usize::from(u16::from_be_bytes([*a, *b])),
                _ => return Err(Reject::corrupt("the restart interval has a wrong length")),
            },
            0xdb => self.tables.read_factors(body)?,
            // Pillow looks into these where they are in the header, and for more bytes than these have.
            0xe0 if self.scans == 0 && body.starts_with(b"JFIF") && body.len() < 7 => {
                return Err(short(marker));
            }
            0xee if self.scans == 0 && body.starts_with(b"Adobe") && body.len() < 7 => {
                return Err(short(marker));
            }
            0xe0 => self.jfif |= body.len() >= 14 && body.starts_with(b"JFIF\0"),
            0xee if body.starts_with(b"Adobe") => self.adobe = body.get(11).copied().or(self.adobe),
            0xe1 if self.scans == 0 => {
                self.exif.extend(body.strip_prefix(EXIF_HEAD).unwrap_or_default());
                self.xmp = body.strip_prefix(XMP_HEAD).or(self.xmp);
            }
            _ => {}
        }
        Ok(at)
    }

    fn scan(&mut self, body: &[u8], at: usize) -> Result<usize, Reject> {
        let Some(frame) = &mut self.frame else {
            return Err(Reject::corrupt("a scan comes before the frame header"));
        };
        if self.painter.is_some() {
            return Err(Reject::corrupt("a scan follows the one that had everything"));
        }
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
            c.sent_before = if self.scans > 1 { c.sent } else { [0; 64] };
        }
        let mut painter = None;
        if self.scans == 1 {
            if !frame.progressive {
                self.tables.fill_up()?;
            }
            let one = !frame.progressive && header.parts.len() == frame.components.len();
            frame.allocate(!one)?;
            self.colour = Colour::of(&frame.components, self.jfif, self.adobe);
            if one {
                painter = Some(self.painter.insert(Painter::new(frame, self.colour)));
            }
        }
        let coding = Coding::new(frame.progressive, &header, &self.tables)?;
        let done = read_scan(self.bytes, at, &header, frame, (coding, self.interval), painter)?;
        self.broken |= done.broken;
        frame.good = done.good;
        for part in &header.parts {
            frame.components[part.component].sent[header.band.0..=header.band.1].fill(header.low);
        }
        Ok(done.end)
    }
}

/// The body of a segment whose length field is at byte `at`; `None` if the file ends before it does.
fn segment(bytes: &[u8], at: usize) -> Result<Option<&[u8]>, Reject> {
    let Some(&[high, low]) = bytes.get(at..at + 2) else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([high, low]));
    let skipped = matches!(bytes[at - 1], 0xdc | 0xe0..=0xef | 0xfe);
    if length < 2 && skipped {
        return Ok(Some(&[]));
    }
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

/// Whether a segment of arithmetic coding, which is of no consequence here, is as it must be (T.81, B.2.4.3).
fn arithmetic_conditions(body: &[u8]) -> bool {
    body.len().is_multiple_of(2)
        && body.chunks_exact(2).all(|pair| match pair[0] {
            0..16 => pair[1] & 15 <= pair[1] >> 4,
            place => place < 32,
        })
}

/// Names a segment that is too short.
fn short(marker: u8) -> Reject {
    Reject::corrupt(format!("the segment of marker ff{marker:02x} is too short for what it says it is"))
}
