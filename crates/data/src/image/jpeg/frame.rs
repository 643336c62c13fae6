//! The frame of a JPEG file: its size, its colour components, and how far each has been sent.

use super::idct::{Block, transform};
use super::smooth::Smoothing;
use crate::image::{DecodeOptions, Reject, check_size, room_for};
use crate::scratch::Buffer;

/// A colour component of the frame.
pub(super) struct Component {
    /// What scans call it.
    pub(super) id: u8,
    /// Horizontal and vertical sampling factor, 1 to 4.
    pub(super) h: usize,
    pub(super) v: usize,
    /// Which quantisation table is its own.
    pub(super) table: usize,
    /// The factors of that table when the component's first scan began.
    pub(super) factors: Option<Block>,
    /// Blocks in a row of blocks.
    pub(super) stride: usize,
    /// Coefficients: of all blocks if progressive, else of one row of coded units.
    pub(super) blocks: Buffer<Block>,
    /// Progressive only: for each block, which coefficients are not zero, in zigzag order.
    pub(super) coded: Buffer<u64>,
    /// Rows of `8 * stride` samples, those beyond the picture included: all of them, or the last two rows of coded
    /// units, by turns.
    samples: Buffer<u8>,
    /// Samples in a row, and rows, that the picture has.
    pub(super) width: usize,
    pub(super) height: usize,
    /// For each coefficient, the lowest bit sent so far; [`UNSENT`] before the first scan.
    pub(super) sent: [u8; 64],
    /// The same before the component's last scan; 0 where that is the file's first one.
    pub(super) sent_before: [u8; 64],
}

/// In [`Component::sent`]: not at all.
pub(super) const UNSENT: u8 = u8::MAX;
/// libjpeg's limit of width and height, and so Pillow's.
const MAX_SIDE: u16 = 65_500;

impl Component {
    /// Makes room for blocks and samples, in `across x down` coded units.
    fn allocate(&mut self, progressive: bool, across: usize, down: usize) {
        self.stride = across * self.h;
        let blocks = self.stride * self.v;
        self.blocks = Buffer::zeros(if progressive { blocks * down } else { blocks });
        self.coded = Buffer::zeros(if progressive { blocks * down } else { 0 });
        self.samples = Buffer::zeros(blocks * 64 * down);
    }

    /// Computes the samples of `count` rows of blocks, which are the first in `blocks`, and clears those. `row` is
    /// the first one's place in the picture.
    pub(super) fn transform(&mut self, row: usize, count: usize) {
        let Some(factors) = &self.factors else { return };
        let size = 64 * self.stride;
        let first = row % (self.samples.len() / size);
        let samples = self.samples.chunks_exact_mut(size).skip(first);
        for (blocks, samples) in self.blocks.chunks_exact_mut(self.stride).zip(samples).take(count) {
            transform(blocks, factors, samples);
            blocks.fill([0; 64]);
        }
    }

    /// Computes the samples after the last scan, block row by block row, as `smoothing` has their blocks.
    fn transform_smoothed(&mut self, smoothing: &Smoothing) {
        let Some(factors) = &self.factors else { return };
        let mut blocks = Buffer::any(self.stride);
        for (row, samples) in self.samples.chunks_exact_mut(64 * self.stride).enumerate() {
            smoothing.fill(&mut blocks, &self.blocks, row);
            transform(&blocks, factors, samples);
        }
    }

    /// The samples of row `y` that the picture has.
    #[inline(always)]
    pub(super) fn row(&self, y: usize) -> &[u8] {
        let pitch = 8 * self.stride;
        &self.samples[y % (self.samples.len() / pitch) * pitch..][..self.width]
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
    /// If the last scan broke off: the last row of coded units that it reached.
    pub(super) good: Option<usize>,
}

impl Frame {
    /// Reads a frame header (T.81, B.2.2). Sizes are checked before anything is allocated for them.
    pub(super) fn read(progressive: bool, body: &[u8], opts: &DecodeOptions) -> Result<Self, Reject> {
        let [precision, h1, h0, w1, w0, count, parts @ ..] = body else {
            return Err(Reject::corrupt("the frame header is too short"));
        };
        let (width, height) = (u16::from_be_bytes([*w1, *w0]), u16::from_be_bytes([*h1, *h0]));
        check_size(width.into(), height.into(), opts)?;
        if width.max(height) > MAX_SIDE {
            let detail =
                format!("JPEG of {width} x {height} is not read: libjpeg's limit is {MAX_SIDE} a side");
            return Err(Reject::unsupported(detail));
        }
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
        if components.iter().any(|c| h_max % c.h > 0 || v_max % c.v > 0) {
            let detail = "JPEG with broken ratios between its channels is not read: convert it";
            return Err(Reject::unsupported(detail));
        }
        let (width, height) = (width.into(), height.into());
        let mut frame = Frame { progressive, width, height, h_max, v_max, components, good: None };
        for c in &mut frame.components {
            (c.width, c.height) = ((width * c.h).div_ceil(h_max), (height * c.v).div_ceil(v_max));
        }
        Ok(frame)
    }

    /// Makes room for the first scan: for all samples, or only for those from which pixels are being made.
    pub(super) fn allocate(&mut self, all: bool) -> Result<(), Reject> {
        let (across, down) = self.units();
        // Samples of a byte and, of progressive files, coefficients of two with a bit each; pixels come when these are gone.
        let samples = |rows: usize| {
            self.components.iter().map(|c| (across * c.h * c.v * 64 * rows) as u64).sum::<u64>()
        };
        let coefficients = if self.progressive { samples(down) * 17 / 8 } else { 0 };
        let pixels = (self.width * self.height) as u64 * 3;
        room_for(samples(if all { down } else { 2 }) + coefficients.max(pixels), 1)?;
        for c in &mut self.components {
            c.allocate(self.progressive, across, if all { down } else { down.min(2) });
        }
        Ok(())
    }

    /// Computes the samples after the last of `scans` scans, if the file is progressive: only then are they all known.
    pub(super) fn finish(&mut self, scans: usize) {
        let smoothed = self.progressive && Smoothing::helps(&self.components);
        // What a first scan that broke off left out was not sent before either.
        let good = self.good.filter(|_| scans > 1);
        let down = self.units().1;
        for c in self.components.iter_mut().filter(|_| self.progressive) {
            match Smoothing::of(c, down, good).filter(|_| smoothed) {
                Some(smoothing) => c.transform_smoothed(&smoothing),
                None => c.transform(0, usize::MAX),
            }
            (c.blocks, c.coded) = (Buffer::none(), Buffer::none());
        }
    }

    /// Coded units of an interleaved scan, across and down.
    pub(super) fn units(&self) -> (usize, usize) {
        (self.width.div_ceil(8 * self.h_max), self.height.div_ceil(8 * self.v_max))
    }

    /// The first component that no scan has begun with.
    pub(super) fn missing(&self) -> Option<usize> {
        self.components.iter().position(|c| c.sent[0] == UNSENT)
    }

    /// Whether every coefficient of every component has been sent to its last bit. The format lets a
    /// progressive file leave out detail.
    pub(super) fn complete(&self) -> bool {
        self.components.iter().all(|c| c.sent.iter().all(|low| *low == 0))
    }
}

fn component(part: &[u8]) -> Result<Component, Reject> {
    let (h, v) = (usize::from(part[1] >> 4), usize::from(part[1] & 15));
    if !(1..=4).contains(&h) || !(1..=4).contains(&v) {
        return Err(Reject::corrupt(format!("sampling factors {h} x {v} do not exist")));
    }
    let table = usize::from(part[2]);
    if table > 3 {
        return Err(Reject::corrupt(format!("there is no quantisation table {table}")));
    }
    Ok(Component {
        id: part[0],
        h,
        v,
        table,
        factors: None,
        stride: 0,
        blocks: Buffer::none(),
        coded: Buffer::none(),
        samples: Buffer::none(),
        width: 0,
        height: 0,
        sent: [UNSENT; 64],
        sent_before: [0; 64],
    })
}
