//! The structure of a JPEG file: markers, sizes, scans. Finds out whether every block of the picture is in
//! the file, at the cost of a Huffman pass; no pixel is computed.

use std::ops::Range;

use super::bits::Stop;
use super::frame::Frame;
use super::huffman::{Class, Table};
use super::scan::{Broken, Header, Part, Tables, next_marker, read_scan};
use crate::image::orientation::{EXIF_HEAD, Metadata, XMP_HEAD};
use crate::image::{DecodeOptions, Reject, zero_fill};

/// What a whole file holds.
pub(super) struct Found<'a> {
    pub(super) width: u32,
    pub(super) height: u32,
    /// The first EXIF segment, and the first of XMP.
    pub(super) metadata: Metadata<'a>,
    /// The byte behind the end marker, if the file has one.
    pub(super) end: Option<usize>,
    /// Bytes between segments that belong to none, in order.
    pub(super) gaps: Vec<Range<usize>>,
}

/// More scans than any encoder writes; each costs a pass over all blocks, so hostile files have a limit.
const MAX_SCANS: usize = 100;
/// As many as encoders write (18 for CMYK by libjpeg, some more by optimisers). More are read where the picture is
/// small beside the limit of pixels.
const USUAL_SCANS: usize = 30;

/// Walks through the file.
pub(super) fn inspect<'a>(bytes: &'a [u8], opts: &DecodeOptions) -> Result<Found<'a>, Reject> {
    let bytes = without_zero_fill(bytes);
    let mut walk = Walk {
        bytes,
        opts,
        frame: None,
        tables: Tables::default(),
        interval: 0,
        scans: 0,
        metadata: Metadata::default(),
        gaps: Vec::new(),
    };
    let end = walk.run()?;
    let Some(frame) = walk.frame else {
        return Err(Reject::corrupt("there is no picture between the start and the end marker"));
    };
    let (width, height) = (frame.width as u32, frame.height as u32);
    Ok(Found { width, height, metadata: walk.metadata, end, gaps: walk.gaps })
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
    gaps: Vec<Range<usize>>,
}

impl<'a> Walk<'a, '_> {
    /// Goes from marker to marker. Returns the byte behind the end marker, if that is there.
    fn run(&mut self) -> Result<Option<usize>, Reject> {
        let mut at = 2;
        while let Some(marker_at) = next_marker(self.bytes, at) {
            let marker = self.bytes[marker_at + 1];
            let stray = matches!(marker, 0x01 | 0xd0..=0xd8);
            if stray || marker_at > at {
                self.gap(at..marker_at + if stray { 2 } else { 0 });
            }
            at = marker_at + 2;
            match marker {
                0xd9 if self.frame.as_ref().is_none_or(Frame::complete) => return Ok(Some(at)),
                0xd9 => return Err(Reject::truncated("the end marker comes before the last scan")),
                _ if stray => {}
                _ => {
                    let Some(body) = segment(self.bytes, at)? else { break };
                    at += 2 + body.len();
                    at = self.segment(marker, body, at)?;
                }
            }
        }
        match &self.frame {
            Some(frame) if frame.complete() => Ok(None),
            Some(_) => {
                Err(Reject::truncated(format!("the file ends at byte {}, in the picture", self.bytes.len())))
            }
            None => {
                Err(Reject::truncated(format!("the file ends at byte {}, in its header", self.bytes.len())))
            }
        }
    }

    /// Takes note of bytes that belong to no segment.
    fn gap(&mut self, gap: Range<usize>) {
        match self.gaps.last_mut() {
            Some(last) if last.end == gap.start => last.end = gap.end,
            _ => self.gaps.push(gap),
        }
    }

    /// Reads one segment; `at` is the byte behind it. Returns where to go on.
    fn segment(&mut self, marker: u8, body: &'a [u8], at: usize) -> Result<usize, Reject> {
        match marker {
            0xc0..=0xc2 if self.frame.is_some() => {
                return Err(Reject::corrupt("there are two frame headers"));
            }
            0xc0..=0xc2 => self.frame = Some(Frame::read(marker == 0xc2, body, self.opts)?),
            0xc4 => self.huffman_tables(body)?,
            0xc3 | 0xc5..=0xc7 | 0xc9..=0xcf | 0xf7 => return Err(not_read(marker)),
            0xda => return self.scan(body, at),
            0xdd => match body {
                [a, b] => self.interval = usize::from(u16::from_be_bytes([*a, *b])),
                _ => return Err(Reject::corrupt("the restart interval has a wrong length")),
            },
            0xe1 => {
                let Metadata { exif, xmp } = &mut self.metadata;
                *exif = exif.or(body.strip_prefix(EXIF_HEAD));
                *xmp = xmp.or(body.strip_prefix(XMP_HEAD));
            }
            _ => {}
        }
        Ok(at)
    }

    fn huffman_tables(&mut self, mut body: &[u8]) -> Result<(), Reject> {
        let bad = || Reject::corrupt("a Huffman table is damaged");
        while let Some((class, rest)) = body.split_first() {
            let (counts, rest) = rest.split_first_chunk::<16>().ok_or_else(bad)?;
            let total = counts.iter().map(|c| usize::from(*c)).sum();
            let symbols = rest.get(..total).ok_or_else(bad)?;
            let (tables, class_of) = match class >> 4 {
                0 => (&mut self.tables.dc, Class::Dc),
                1 => (&mut self.tables.ac, Class::Ac),
                _ => return Err(bad()),
            };
            *tables.get_mut(usize::from(class & 15)).ok_or_else(bad)? =
                Some(Table::new(class_of, counts, symbols).ok_or_else(bad)?);
            body = &rest[total..];
        }
        Ok(())
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
        let end = read_scan(self.bytes, at, &header, frame, &self.tables, self.interval)
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

fn scan_header(body: &[u8], frame: &Frame) -> Result<Header, Reject> {
    let bad = |what: &str| Reject::corrupt(format!("a scan header is damaged: {what}"));
    let (count, rest) = body.split_first().ok_or_else(|| bad("it is empty"))?;
    let (parts, tail) = rest.split_at_checked(usize::from(*count) * 2).ok_or_else(|| bad("its length"))?;
    let [first, last, bits] = *tail else { return Err(bad("its length")) };
    let mut header =
        Header { parts: Vec::new(), band: (first.into(), last.into()), high: bits >> 4, low: bits & 15 };
    for pair in parts.chunks_exact(2) {
        let component =
            frame.components.iter().position(|c| c.id == pair[0]).ok_or_else(|| bad("its components"))?;
        let (dc, ac) = (usize::from(pair[1] >> 4), usize::from(pair[1] & 15));
        if dc > 3 || ac > 3 || header.parts.iter().any(|p| p.component == component) {
            return Err(bad("its components"));
        }
        header.parts.push(Part { component, dc, ac });
    }
    if header.parts.is_empty() {
        return Err(bad("it has no component"));
    }
    if !frame.progressive {
        // Sequential files send everything at once; what stands here is of no consequence.
        (header.band, header.high, header.low) = ((0, 63), 0, 0);
    } else if header.band.0 > header.band.1
        || header.band.1 > 63
        || (header.band.0 == 0) != (header.band.1 == 0)
        || (header.band.0 > 0 && header.parts.len() > 1)
    {
        return Err(bad("its band of coefficients"));
    }
    Ok(header)
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
