//! The header of a scan: which components and which of their coefficients are in it.

use super::frame::Frame;
use crate::image::Reject;

/// A component's part in a scan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Index into [`Frame::components`].
    pub(super) component: usize,
    /// Destination of its DC table.
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

/// Reads a scan's header, and holds it against the frame.
pub(super) fn scan_header(body: &[u8], frame: &Frame) -> Result<Header, Reject> {
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
        // Coefficients have no more bits.
        || header.high.max(header.low) > 13
    {
        return Err(bad("its band of coefficients"));
    }
    Ok(header)
}
