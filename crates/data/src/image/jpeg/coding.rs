//! How the blocks of a scan are coded: with which tables, and by which of the five ways that the format has.

use super::bits::Bits;
use super::frame::Component;
use super::header::Header;
use super::huffman::Table;
use super::idct::Block;
use super::progressive::{Band, Known};
use super::tables::Tables;
use super::zigzag::PLACE;
use crate::image::Reject;

/// The way of a scan, and what goes on from block to block within a restart interval.
pub(super) enum Coding<'a> {
    /// Whole blocks: for each component its tables (DC, AC) and coefficient 0 of the block before.
    Sequential(Vec<(&'a Table, &'a Table, i32)>),
    /// Coefficient 0 but for its lowest bits: for each component the table, and its value in the block before; how many
    /// bits are left out.
    Level(Vec<(&'a Table, i32)>, u8),
    /// One more bit of coefficient 0, at this place.
    LevelBit(u8),
    /// Other coefficients.
    First(Band<'a>),
    /// One more bit of them.
    Refine(Band<'a>),
}

impl<'a> Coding<'a> {
    /// Looks up the tables that a scan uses.
    pub(super) fn new(progressive: bool, header: &Header, tables: &'a Tables) -> Result<Self, Reject> {
        if !progressive {
            let of = |part: &super::header::Part| Ok((tables.dc(part.dc)?, tables.ac(part.ac)?, 0));
            return header.parts.iter().map(of).collect::<Result<_, _>>().map(Self::Sequential);
        }
        let low = header.low;
        if header.band.0 == 0 {
            if header.high > 0 {
                return Ok(Self::LevelBit(low));
            }
            let of = |part: &super::header::Part| Ok::<_, Reject>((tables.dc(part.dc)?, 0));
            return Ok(Self::Level(header.parts.iter().map(of).collect::<Result<_, _>>()?, low));
        }
        let table = tables.ac(header.parts.first().map_or(0, |part| part.ac))?;
        let band = Band { table, band: header.band, low, end_of_band: 0 };
        Ok(if header.high == 0 { Self::First(band) } else { Self::Refine(band) })
    }

    /// Begins a restart interval.
    pub(super) fn restart(&mut self) {
        match self {
            Self::Sequential(parts) => parts.iter_mut().for_each(|(_, _, level)| *level = 0),
            Self::Level(parts, _) => parts.iter_mut().for_each(|(_, level)| *level = 0),
            Self::LevelBit(_) => {}
            Self::First(band) | Self::Refine(band) => band.end_of_band = 0,
        }
    }

    /// Reads block `at` of component `c`, which is the scan's component `index`.
    #[inline(always)]
    pub(super) fn block(&mut self, bits: &mut Bits<'_>, index: usize, c: &mut Component, at: usize) {
        let Some(block) = c.blocks.get_mut(at) else { return };
        match self {
            Self::Sequential(parts) => {
                if let Some((dc, ac, level)) = parts.get_mut(index) {
                    sequential(bits, dc, ac, level, block);
                }
            }
            Self::Level(parts, low) => {
                if let Some((dc, level)) = parts.get_mut(index) {
                    *level = level.wrapping_add(dc.value(bits).1);
                    block[0] = (*level << *low) as i16;
                }
            }
            Self::LevelBit(low) => block[0] |= (bits.read(1) << *low) as i16,
            Self::First(band) => {
                if let Some(coded) = c.coded.get_mut(at) {
                    band.first(bits, &mut Known { block, coded });
                }
            }
            Self::Refine(band) => {
                if let Some(coded) = c.coded.get_mut(at) {
                    band.refine(bits, &mut Known { block, coded });
                }
            }
        }
    }
}

/// Reads a block of a sequential scan (T.81, F.2.2). `level` is the first coefficient of the block before.
#[inline(always)]
fn sequential(at: &mut Bits<'_>, dc: &Table, ac: &Table, level: &mut i32, block: &mut Block) {
    let mut bits = *at;
    let (_, difference) = dc.value(&mut bits);
    *level = level.wrapping_add(difference);
    block[0] = *level as i16;
    let mut k = 1;
    while k < 64 {
        let (symbol, value) = ac.value(&mut bits);
        let run = usize::from(symbol >> 4);
        if symbol & 15 == 0 {
            if run < 15 {
                break;
            }
            k += 16;
            continue;
        }
        k += run;
        block[PLACE[k] & 63] = value as i16;
        k += 1;
    }
    *at = bits;
}
