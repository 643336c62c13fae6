//! The frame of a JPEG file: its size, its colour components, and how far each has been sent.

use crate::image::{DecodeOptions, Reject, check_size};

/// A colour component of the frame.
pub(super) struct Component {
    /// What scans call it.
    pub(super) id: u8,
    /// Horizontal and vertical sampling factor, 1 to 4.
    pub(super) h: usize,
    pub(super) v: usize,
    /// Blocks in a row of `coded`.
    pub(super) stride: usize,
    /// Progressive only: for each block, which coefficients are not zero.
    pub(super) coded: Vec<u64>,
    /// For each coefficient, the lowest bit sent so far; [`UNSENT`] before the first scan.
    pub(super) sent: [u8; 64],
}

const UNSENT: u8 = u8::MAX;

impl Component {
    /// Blocks of this component in a coded unit of an interleaved scan.
    pub(super) fn blocks_in_unit(&self) -> usize {
        self.h * self.v
    }
}

/// The frame header.
pub(super) struct Frame {
    pub(super) progressive: bool,
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) h_max: usize,
    pub(super) v_max: usize,
    pub(super) components: Vec<Component>,
}

impl Frame {
    /// Reads a frame header (T.81, B.2.2). Sizes are checked before anything is allocated for them.
    pub(super) fn read(progressive: bool, body: &[u8], opts: &DecodeOptions) -> Result<Self, Reject> {
        let [precision, h1, h0, w1, w0, count, parts @ ..] = body else {
            return Err(Reject::corrupt("the frame header is too short"));
        };
        let (width, height) = (u16::from_be_bytes([*w1, *w0]), u16::from_be_bytes([*h1, *h0]));
        check_size(width.into(), height.into(), opts)?;
        if *precision != 8 || !matches!(count, 1 | 3 | 4) {
            let detail = format!("{precision}-bit JPEG with {count} channels is not read: convert it");
            return Err(Reject::unsupported(detail));
        }
        if parts.len() != usize::from(*count) * 3 {
            return Err(Reject::corrupt("the frame header has a wrong length"));
        }
        let components: Vec<Component> = parts.chunks_exact(3).map(component).collect::<Result<_, _>>()?;
        let h_max = components.iter().map(|c| c.h).max().unwrap_or(1);
        let v_max = components.iter().map(|c| c.v).max().unwrap_or(1);
        let (width, height) = (width.into(), height.into());
        let mut frame = Frame { progressive, width, height, h_max, v_max, components };
        if progressive {
            let (across, down) = frame.units();
            for c in &mut frame.components {
                c.stride = across * c.h;
                c.coded = vec![0; across * c.h * down * c.v];
            }
        }
        Ok(frame)
    }

    /// Coded units of an interleaved scan, across and down.
    pub(super) fn units(&self) -> (usize, usize) {
        (self.width.div_ceil(8 * self.h_max), self.height.div_ceil(8 * self.v_max))
    }

    /// Whether every coefficient of every component has been sent to its last bit. The format lets a
    /// progressive file leave out detail; no encoder does, but a cut file with a new end marker looks so.
    pub(super) fn complete(&self) -> bool {
        self.components.iter().all(|c| c.sent.iter().all(|low| *low == 0))
    }
}

fn component(part: &[u8]) -> Result<Component, Reject> {
    let (h, v) = (usize::from(part[1] >> 4), usize::from(part[1] & 15));
    if !(1..=4).contains(&h) || !(1..=4).contains(&v) {
        return Err(Reject::corrupt(format!("sampling factors {h} x {v} do not exist")));
    }
    Ok(Component { id: part[0], h, v, stride: 0, coded: Vec::new(), sent: [UNSENT; 64] })
}
