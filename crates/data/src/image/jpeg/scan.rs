//! One scan of a JPEG file, read block by block to see that it is whole. No coefficient is kept.

use super::bits::{Bits, Stop};
use super::frame::{Component, Frame};
use super::huffman::Table;
use super::progressive::Progress;

/// The Huffman tables in force, by destination 0..4.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) dc: [Option<Table>; 4],
    pub(super) ac: [Option<Table>; 4],
}

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

/// Where a scan broke off.
pub(super) struct Broken {
    /// What was met.
    pub(super) stop: Stop,
    /// Row of pixels that was not reached whole.
    pub(super) row: usize,
    /// The byte near which it happened.
    pub(super) at: usize,
}

/// Reads a scan's blocks from byte `at` on. Returns the byte where it ended.
pub(super) fn read_scan(
    data: &[u8],
    at: usize,
    header: &Header,
    frame: &mut Frame,
    tables: &Tables,
    restart_interval: usize,
) -> Result<usize, Broken> {
    let mut bits = Bits::new(data, at);
    let mut progress = Progress::default();
    let grid = Grid::new(header, frame);
    for unit in 0..grid.across * grid.down {
        let result = if unit > 0 && restart_interval > 0 && unit % restart_interval == 0 {
            progress = Progress::default();
            restart(&mut bits, data, (unit / restart_interval - 1) % 8)
        } else {
            Ok(())
        }
        .and_then(|()| read_unit(&mut bits, &mut progress, header, frame, tables, &grid, unit));
        if let Err(stop) = result {
            let row = (unit / grid.across * grid.rows).min(frame.height);
            return Err(Broken { stop, row, at: bits.position() });
        }
    }
    Ok(bits.position())
}

/// The grid of coded units of a scan (T.81, A.2): blocks if one component is in it, else groups of blocks.
struct Grid {
    across: usize,
    down: usize,
    /// Rows of pixels that a unit covers.
    rows: usize,
    single: bool,
}

impl Grid {
    fn new(header: &Header, frame: &Frame) -> Self {
        if let [part] = header.parts[..] {
            let Component { h, v, .. } = frame.components[part.component];
            Self {
                across: (frame.width * h).div_ceil(8 * frame.h_max),
                down: (frame.height * v).div_ceil(8 * frame.v_max),
                rows: 8 * frame.v_max / v,
                single: true,
            }
        } else {
            let (across, down) = frame.units();
            Self { across, down, rows: 8 * frame.v_max, single: false }
        }
    }
}

fn read_unit(
    bits: &mut Bits<'_>,
    progress: &mut Progress,
    header: &Header,
    frame: &mut Frame,
    tables: &Tables,
    grid: &Grid,
    unit: usize,
) -> Result<(), Stop> {
    let (x, y) = (unit % grid.across, unit / grid.across);
    for part in &header.parts {
        let dc = tables.dc[part.dc].as_ref();
        let ac = tables.ac[part.ac].as_ref();
        if !frame.progressive {
            let blocks = if grid.single { 1 } else { frame.components[part.component].blocks_in_unit() };
            let (dc, ac) = (dc.ok_or(Stop::BadCode)?, ac.ok_or(Stop::BadCode)?);
            for _ in 0..blocks {
                sequential_block(bits, dc, ac)?;
            }
            continue;
        }
        let component = &mut frame.components[part.component];
        let (h, v) = if grid.single { (1, 1) } else { (component.h, component.v) };
        for j in 0..v {
            for i in 0..h {
                let block = (y * v + j) * component.stride + x * h + i;
                let Some(coded) = component.coded.get_mut(block) else { return Err(Stop::BadCode) };
                progress.block(bits, header, (dc, ac), coded)?;
            }
        }
    }
    Ok(())
}

/// Skips a block of a sequential scan (T.81, F.2.2).
fn sequential_block(at: &mut Bits<'_>, dc: &Table, ac: &Table) -> Result<(), Stop> {
    let mut bits = *at;
    dc.skip_value(&mut bits)?;
    let mut k = 1;
    while k < 64 {
        k += ac.skip_value(&mut bits)?;
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
