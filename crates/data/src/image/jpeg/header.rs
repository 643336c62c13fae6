//! The header of a scan: which components and which of their coefficients are in it.

use super::frame::Frame;
use crate::image::Reject;

/// A component's part in a scan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Index into [`Frame::components`].
    pub(super) component: usize,
    /// Destination of its DC table, 0 to 15; there are four.
    pub(super) dc: usize,
    /// Destination of its AC table.
    pub(super) ac: usize,
}

/// A scan's header (T.81, B.2.3).
#[derive(Clone, Debug)]
pub(super) struct Header {
    /// The components, in order.
    pub(super) parts: Vec<Part>,
    /// First and last coefficient, in zigzag order.
    pub(super) band: (usize, usize),
    /// Bits of the coefficients sent before, 0 in a first scan.
    pub(super) high: u8,
    /// Lowest bit that this scan sends.
    pub(super) low: u8,
}

/// The most blocks that a coded unit may have (T.81, B.2.3).
const MAX_BLOCKS: usize = 10;

/// Reads a scan's header, and holds it against the frame.
pub(super) fn scan_header(body: &[u8], frame: &Frame) -> Result<Header, Reject> {
    let bad = |what: &str| Reject::corrupt(format!("a scan header is damaged: {what}"));
    let (count, rest) = body.split_first().ok_or_else(|| bad("it is empty"))?;
    let (parts, tail) = rest.split_at_checked(usize::from(*count) * 2).ok_or_else(|| bad("its length"))?;
    let [first, last, bits] = *tail else { return Err(bad("its length")) };
    let mut header =
        Header { parts: Vec::new(), band: (first.into(), last.into()), high: bits >> 4, low: bits & 15 };
    for (i, pair) in parts.chunks_exact(2).enumerate() {
        // Components are in the frame's order. libjpeg looks from the scan's place on: so names may be equal, too.
        let mut from_here = frame.components.iter().enumerate().skip(i);
        let found = from_here.find(|(_, c)| c.id == pair[0]);
        let (component, _) = found.ok_or_else(|| bad("its components"))?;
        if header.parts.iter().any(|p| p.component == component) {
            return Err(bad("its components"));
        }
        header.parts.push(Part { component, dc: usize::from(pair[1] >> 4), ac: usize::from(pair[1] & 15) });
    }
    let blocks = |part: &Part| frame.components[part.component].h * frame.components[part.component].v;
    if header.parts.is_empty() {
        return Err(bad("it has no component"));
    }
    if header.parts.len() > 1 && header.parts.iter().map(blocks).sum::<usize>() > MAX_BLOCKS {
        return Err(bad("its coded units are too large"));
    }
    if !frame.progressive {
        // Sequential files send everything at once; what stands here is of no consequence.
        (header.band, header.high, header.low) = ((0, 63), 0, 0);
    } else if !progression_exists(&header) {
        return Err(bad("its band of coefficients"));
    }
    Ok(header)
}

/// Whether band and bits are such as a progressive scan can have (T.81, G.1.1.1).
fn progression_exists(header: &Header) -> bool {
    let (first, last) = header.band;
    let band = match first {
        0 => last == 0,
        _ => first <= last && last < 64 && header.parts.len() == 1,
    };
    // Coefficients have no more bits than 13; a refinement sends the next one.
    band && header.low <= 13 && (header.high == 0 || header.high == header.low + 1)
}
