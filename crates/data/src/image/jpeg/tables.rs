//! The tables in force while scans are read.

use super::huffman::{Class, Table};
use super::idct::Block;
use super::zigzag::PLACE;
use crate::image::Reject;

/// Tables by destination 0..4.
#[derive(Default)]
pub(super) struct Tables {
    /// Huffman tables of first coefficients.
    pub(super) dc: [Option<Table>; 4],
    /// Huffman tables of the others.
    pub(super) ac: [Option<Table>; 4],
    /// Factors of the quantisation.
    pub(super) factors: [Option<Block>; 4],
}

/// The tables that frames of motion JPEG leave out, as a segment: luma and chroma by ITU-T T.81, annex K.3.
const STANDARD_HUFFMAN: &[u8; 416] = include_bytes!("standard_huffman.bin");

impl Tables {
    /// What is in force until a file says otherwise: the standard's own Huffman tables, as libjpeg has it.
    pub(super) fn standard() -> Result<Self, Reject> {
        let mut tables = Self::default();
        tables.read_huffman(STANDARD_HUFFMAN)?;
        Ok(tables)
    }

    /// Reads a segment of Huffman tables (T.81, B.2.4.2).
    pub(super) fn read_huffman(&mut self, mut body: &[u8]) -> Result<(), Reject> {
        let bad = || Reject::corrupt("a Huffman table is damaged");
        while let Some((class, rest)) = body.split_first() {
            let (counts, rest) = rest.split_first_chunk::<16>().ok_or_else(bad)?;
            let total = counts.iter().map(|c| usize::from(*c)).sum();
            let symbols = rest.get(..total).ok_or_else(bad)?;
            let (tables, class_of) = match class >> 4 {
                0 => (&mut self.dc, Class::Dc),
                1 => (&mut self.ac, Class::Ac),
                _ => return Err(bad()),
            };
            *tables.get_mut(usize::from(class & 15)).ok_or_else(bad)? =
                Some(Table::new(class_of, counts, symbols).ok_or_else(bad)?);
            body = &rest[total..];
        }
        Ok(())
    }

    /// Reads a segment of quantisation tables (T.81, B.2.4.1).
    pub(super) fn read_factors(&mut self, mut body: &[u8]) -> Result<(), Reject> {
        let bad = || Reject::corrupt("a quantisation table is damaged");
        while let Some((head, rest)) = body.split_first() {
            let width = match head >> 4 {
                0 => 1,
                1 => 2,
                _ => return Err(bad()),
            };
            let (numbers, rest) = rest.split_at_checked(64 * width).ok_or_else(bad)?;
            let mut factors: Block = [0; 64];
            for (number, place) in numbers.chunks_exact(width).zip(PLACE) {
                factors[place] = number.iter().fold(0, |n, byte| n << 8 | i16::from(*byte));
            }
            *self.factors.get_mut(usize::from(head & 15)).ok_or_else(bad)? = Some(factors);
            body = rest;
        }
        Ok(())
    }
}
