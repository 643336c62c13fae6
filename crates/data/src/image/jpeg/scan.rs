//! One scan of a JPEG file, read block by block. Of a sequential file the samples are computed on the way.

use super::bits::{Bits, Stop};
use super::frame::{Component, Frame};
use super::header::{Header, Part};
use super::huffman::Table;
use super::idct::Block;
use super::paint::Painter;
use super::progressive::{Known, Progress};
use super::tables::Tables;
use super::zigzag::PLACE;

/// Where a scan broke off.
pub(super) struct Broken {
    /// What was met.
    pub(super) stop: Stop,
    /// Row of pixels that was not reached whole.
    pub(super) row: usize,
    /// The byte near which it happened.
    pub(super) at: usize,
}

/// A scan that is being read.
struct Scan<'a> {
    bits: Bits<'a>,
    header: &'a Header,
    tables: &'a Tables,
    progress: Progress,
    /// Whether a unit is one block: the scan has one component only.
    single: bool,
}

/// Reads a scan's blocks from byte `at` on. Returns the byte where it ended. `painter`, if there is one, makes pixels
/// of them.
pub(super) fn read_scan(
    data: &[u8],
    at: usize,
    header: &Header,
    frame: &mut Frame,
    tables: &Tables,
    restart_interval: usize,
    mut painter: Option<&mut Painter>,
) -> Result<usize, Broken> {
    let grid = Grid::new(header, frame);
    let single = header.parts.len() == 1;
    let mut scan = Scan { bits: Bits::new(data, at), header, tables, progress: Progress::default(), single };
    for y in 0..grid.down {
        for x in 0..grid.across {
            let unit = y * grid.across + x;
            let result = if unit > 0 && restart_interval > 0 && unit.is_multiple_of(restart_interval) {
                scan.progress = Progress::default();
                restart(&mut scan.bits, data, (unit / restart_interval - 1) % 8)
            } else {
                Ok(())
            };
            if let Err(stop) = result.and_then(|()| scan.unit(frame, x, y)) {
                let row = (y * grid.rows).min(frame.height);
                return Err(Broken { stop, row, at: scan.bits.position() });
            }
        }
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
    Ok(scan.bits.position())
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

impl Scan<'_> {
    /// Reads the unit at column `x`, row `y` of the grid.
    #[inline]
    fn unit(&mut self, frame: &mut Frame, x: usize, y: usize) -> Result<(), Stop> {
        let header = self.header;
        for (index, part) in header.parts.iter().enumerate() {
            let component = &mut frame.components[part.component];
            let (h, v) = if self.single { (1, 1) } else { (component.h, component.v) };
            // Of a sequential file only the row of units at hand is kept.
            let row = if frame.progressive { y * v } else { 0 };
            for j in 0..v {
                let first = (row + j) * component.stride + x * h;
                for block in first..first + h {
                    self.block(component, index, part, block)?;
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn block(&mut self, c: &mut Component, index: usize, part: &Part, at: usize) -> Result<(), Stop> {
        let (dc, ac) = (self.tables.dc[part.dc].as_ref(), self.tables.ac[part.ac].as_ref());
        let block = c.blocks.get_mut(at).ok_or(Stop::BadCode)?;
        match c.coded.get_mut(at) {
            Some(coded) => {
                let known = Known { block, coded };
                self.progress.block(&mut self.bits, self.header, (dc, ac), index, known)
            }
            None => {
                let (dc, ac) = (dc.ok_or(Stop::BadCode)?, ac.ok_or(Stop::BadCode)?);
                sequential_block(&mut self.bits, dc, ac, &mut self.progress.level[index], block)
            }
        }
    }
}

/// Reads a block of a sequential scan (T.81, F.2.2). `level` is the first coefficient of the block before.
#[inline]
fn sequential_block(
    at: &mut Bits<'_>,
    dc: &Table,
    ac: &Table,
    level: &mut i32,
    block: &mut Block,
) -> Result<(), Stop> {
    let mut bits = *at;
    let (_, difference) = dc.value(&mut bits)?;
    *level = level.wrapping_add(difference);
    block[0] = *level as i16;
    let mut k = 1;
    while k < 64 {
        let (symbol, value) = ac.value(&mut bits)?;
        let run = usize::from(symbol >> 4);
        if symbol & 15 == 0 {
            if run < 15 {
                break;
            }
            k += 16;
            continue;
        }
        k += run;
        block[*PLACE.get(k).ok_or(Stop::BadCode)? & 63] = value as i16;
        k += 1;
    }
    *at = bits;
    Ok(())
}

/// Finds the restart marker with number `wanted`, and goes on behind it.
fn restart(bits: &mut Bits<'_>, data: &[u8], wanted: usize) -> Result<(), Stop> {
    let at = next_marker(data, bits.position()).ok_or(Stop::NoData)?;
    match data[at + 1] {
        marker if usize::from(marker) == 0xd0 + wanted => {
            bits.restart(at + 2);
            Ok(())
        }
        0xd0..=0xd7 => Err(Stop::BadCode),
        _ => Err(Stop::NoData),
    }
}

/// Position of the next `ff xx` that is a marker, from byte `at` on.
pub(super) fn next_marker(data: &[u8], at: usize) -> Option<usize> {
    let rest = data.get(at..)?;
    rest.windows(2).position(|w| w[0] == 0xff && w[1] != 0 && w[1] != 0xff).map(|i| at + i)
}
