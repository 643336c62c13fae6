//! One scan of a JPEG file, read block by block. Of a sequential file the samples are computed on the way.

use pulp::{Arch, Simd, WithSimd};

use super::bits::Bits;
use super::coding::Coding;
use super::frame::{Component, Frame};
use super::header::Header;
use super::paint::Painter;
use super::restart::{Ahead, next_marker, resync};
use crate::image::Reject;

/// A scan that is being read.
struct Scan<'a> {
    data: &'a [u8],
    bits: Bits<'a>,
    header: &'a Header,
    coding: Coding<'a>,
    /// Coded units between restart markers; 0 for none.
    interval: usize,
    /// Whether a unit is one block: the scan has one component only.
    single: bool,
    /// Whether the scan adds detail to what others have sent.
    detail: bool,
    /// Whether the rest of the restart interval is missing.
    dry: bool,
    /// Where that has happened: the row of the frame's coded units.
    broken: Option<usize>,
}

/// A scan that was read.
pub(super) struct Done {
    /// The byte where it ended.
    pub(super) end: usize,
    /// Whether parts of restart intervals were missing.
    pub(super) broken: bool,
    /// If its rest was missing: the last row of the frame's coded units that it reached.
    pub(super) good: Option<usize>,
}

/// Reads a scan's blocks from byte `at` on. `painter`, if there is one, makes pixels of them.
///
/// Damage is passed over as libjpeg does it: a bad code is a zero, and what is missing before a restart marker, or of
/// detail, stays zero. Else a scan whose rest is missing is refused.
pub(super) fn read_scan(
    data: &[u8],
    at: usize,
    header: &Header,
    frame: &mut Frame,
    (coding, interval): (Coding<'_>, usize),
    mut painter: Option<&mut Painter>,
) -> Result<Done, Reject> {
    let grid = Grid::new(header, frame);
    let (bits, single) = (Bits::new(data, at), header.parts.len() == 1);
    let detail = header.band.0 > 0 || header.high > 0;
    let mut scan = Scan { data, bits, header, coding, interval, single, detail, dry: false, broken: None };
    for y in 0..grid.down {
        Arch::new()
            .dispatch(Row { scan: &mut scan, frame, grid: &grid, y })
            .map_err(|next| missing(next, scan.bits.position(), y * grid.rows, frame.height))?;
        if !frame.progressive {
            for part in &header.parts {
                let component = &mut frame.components[part.component];
                let rows = if single { 1 } else { component.v };
                component.transform(y * rows, rows);
            }
        }
        if let Some(painter) = &mut painter {
            // The last row waits for the samples below it.
            let until = if y + 1 < grid.down { (y + 1) * grid.rows - 1 } else { frame.height };
            painter.paint(&frame.components, until);
        }
    }
    let good = scan.broken.filter(|_| scan.dry);
    Ok(Done { end: scan.bits.position(), broken: scan.broken.is_some(), good })
}

/// The grid of coded units of a scan (T.81, A.2): blocks if one component is in it, else groups of blocks.
struct Grid {
    across: usize,
    down: usize,
    /// Rows of pixels that a unit covers.
    rows: usize,
}

impl Grid {
    fn new(header: &Header, frame: &Frame) -> Self {
        if let [part] = header.parts[..] {
            let Component { v, width, height, .. } = frame.components[part.component];
            Self { across: width.div_ceil(8), down: height.div_ceil(8), rows: 8 * frame.v_max / v }
        } else {
            let (across, down) = frame.units();
            Self { across, down, rows: 8 * frame.v_max }
        }
    }
}

/// A row of the grid, to be read with the best instructions that the machine has.
struct Row<'s, 'a> {
    scan: &'s mut Scan<'a>,
    frame: &'s mut Frame,
    grid: &'s Grid,
    y: usize,
}

impl WithSimd for Row<'_, '_> {
    /// As of [`Scan::unit_at`].
    type Output = Result<(), Option<u8>>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Self::Output {
        // A closure would not be compiled for these instructions.
        for x in 0..self.grid.across {
            self.scan.unit_at(self.frame, self.grid, x, self.y)?;
        }
        Ok(())
    }
}

impl Scan<'_> {
    /// Reads the unit at column `x`, row `y` of the grid. The error is the marker where the rest of the scan should
    /// be, if there is one.
    #[inline(always)]
    fn unit_at(&mut self, frame: &mut Frame, grid: &Grid, x: usize, y: usize) -> Result<(), Option<u8>> {
        let unit = y * grid.across + x;
        if unit > 0 && self.interval > 0 && unit.is_multiple_of(self.interval) {
            self.restart((unit / self.interval - 1) % 8)?;
        }
        if !self.dry {
            self.unit(frame, x, y);
            if self.bits.ran_dry() {
                self.broken = Some(y * grid.rows / (8 * frame.v_max));
                self.run_dry(unit, grid.across * grid.down)?;
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn unit(&mut self, frame: &mut Frame, x: usize, y: usize) {
        for (index, part) in self.header.parts.iter().enumerate() {
            let component = &mut frame.components[part.component];
            let (h, v) = if self.single { (1, 1) } else { (component.h, component.v) };
            // Of a sequential file only the row of units at hand is kept.
            let row = if frame.progressive { y * v } else { 0 };
            for j in 0..v {
                let first = (row + j) * component.stride + x * h;
                for block in first..first + h {
                    self.coding.block(&mut self.bits, index, component, block);
                }
            }
        }
    }

    /// Goes on behind the restart marker with number `wanted`.
    fn restart(&mut self, wanted: usize) -> Result<(), Option<u8>> {
        self.coding.restart();
        match resync(self.data, self.bits.position(), wanted) {
            Ahead::Data(at) => {
                self.bits = Bits::new(self.data, at);
                self.dry = false;
                Ok(())
            }
            Ahead::Marker(at) => {
                self.bits = Bits::new(self.data, at);
                match self.data[at + 1] {
                    0xd0..=0xd7 => Ok(()),
                    other => self.without_rest(Some(other)),
                }
            }
            Ahead::Nothing => Err(None),
        }
    }

    /// Decides what becomes of a scan of whose restart interval the rest is missing, from `unit` on, of `units`.
    #[cold]
    fn run_dry(&mut self, unit: usize, units: usize) -> Result<(), Option<u8>> {
        self.dry = true;
        let next = next_marker(self.data, self.bits.position()).map(|at| self.data[at + 1]);
        match next {
            Some(0xd0..=0xd7) if self.interval > 0 => Ok(()),
            // What is no marker may stand before the next restart, if there is one to come.
            Some(0x01..0xc0) if self.interval > 0 && (unit / self.interval + 1) * self.interval < units => {
                Ok(())
            }
            _ => self.without_rest(next),
        }
    }

    /// What becomes of a scan whose rest is missing: with detail alone, and if the file goes on, it is left at that.
    fn without_rest(&self, next: Option<u8>) -> Result<(), Option<u8>> {
        if self.detail && next.is_some_and(|marker| marker != 0xd9) { Ok(()) } else { Err(next) }
    }
}

/// Says that the rest of a scan is missing, and what is `next` instead.
fn missing(next: Option<u8>, at: usize, row: usize, height: usize) -> Reject {
    let place = format!("row {} of {height}, near byte {at}", row.min(height));
    match next {
        None | Some(0xd9) => Reject::truncated(format!("the picture ends at {place}")),
        Some(marker) => Reject::corrupt(format!("marker ff{marker:02x} inside the picture, at {place}")),
    }
}
