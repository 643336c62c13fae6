//! The tables in force while scans are read.

use super::huffman::{Class, Table};
use super::idct::Block;
use super::zigzag::PLACE;
use crate::image::Reject;

/// Tables by destination 0..4.
#[derive(Default)]
pub(super) struct Tables {
    /// Huffman tables of first coefficients.
    dc: [Slot; 4],
    /// Huffman tables of the others.
    ac: [Slot; 4],
    /// Factors of the quantisation.
    pub(super) factors: [Option<Block>; 4],
}

/// Place of a Huffman table. One that cannot be does no harm until a scan uses it.
#[derive(Default)]
enum Slot {
    #[default]
    Missing,
    Impossible,
    Holds(Table),
}

/// The tables that frames of motion JPEG leave out, as a segment: luma and chroma by ITU-T T.81, annex K.3.
const STANDARD_HUFFMAN: &[u8; 416] = include_bytes!("standard_huffman.bin");

impl Tables {
    /// Fills places without a Huffman table with the standard's own, as libjpeg does for sequential files. It
    /// has the first two of either kind.
    pub(super) fn fill_up(&mut self) -> Result<(), Reject> {
        let [dc, ac] = [&self.dc, &self.ac].map(|slots| &slots[..2]);
        if dc.iter().chain(ac).all(|slot| !matches!(slot, Slot::Missing)) {
            return Ok(());
        }
        let mut standard = Self::default();
        standard.read_huffman(STANDARD_HUFFMAN)?;
        let places = self.dc.iter_mut().chain(&mut self.ac);
        for (place, standard) in places.zip(standard.dc.into_iter().chain(standard.ac)) {
            if matches!(place, Slot::Missing) {
                *place = standard;
            }
        }
        Ok(())
    }

    /// Table `index` of first coefficients.
    pub(super) fn dc(&self, index: usize) -> Result<&Table, Reject> {
        in_slot(&self.dc, index)
    }

    /// Table `index` of the other coefficients.
    pub(super) fn ac(&self, index: usize) -> Result<&Table, Reject> {
        in_slot(&self.ac, index)
    }

    /// Reads a segment of Huffman tables (T.81, B.2.4.2).
    pub(super) fn read_huffman(&mut self, mut body: &[u8]) -> Result<(), Reject> {
        let bad = || Reject::corrupt("a Huffman table is damaged");
        while let Some((class, rest)) = body.split_first() {
            let (counts, rest) = rest.split_first_chunk::<16>().ok_or_else(bad)?;
            let total: usize = counts.iter().map(|c| usize::from(*c)).sum();
            let symbols = rest.get(..total).filter(|_| total <= 256).ok_or_else(bad)?;
            let (tables, class_of) = match class >> 4 {
                0 => (&mut self.dc, Class::Dc),
                1 => (&mut self.ac, Class::Ac),
                _ => return Err(bad()),
            };
            *tables.get_mut(usize::from(class & 15)).ok_or_else(bad)? =
                Table::new(class_of, counts, symbols).map_or(Slot::Impossible, Slot::Holds);
            body = &rest[total..];
        }
        Ok(())
    }

    /// Reads a segment of quantisation tables (T.81, B.2.4.1).
    pub(super) fn read_factors(&mut self, mut body: &[u8]) -> Result<(), Reject> {
        let bad = || Reject::corrupt("a quantisation table is damaged");
        while let Some((head, rest)) = body.split_first() {
            let width = if head >> 4 == 0 { 1 } else { 2 };
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

fn in_slot(slots: &[Slot; 4], index: usize) -> Result<&Table, Reject> {
    match slots.get(index) {
        Some(Slot::Holds(table)) => Ok(table),
        Some(Slot::Impossible) => Err(Reject::corrupt(format!("Huffman table {index} cannot be"))),
        Some(Slot::Missing) | None => Err(Reject::corrupt(format!("Huffman table {index} is missing"))),
    }
}
