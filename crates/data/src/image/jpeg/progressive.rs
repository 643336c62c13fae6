//! Blocks of progressive scans (T.81, annex G). How many bits a refinement takes depends on which
//! coefficients are known to be non-zero: that, one bit a coefficient, is all that is kept of a block.

use super::bits::{Bits, Stop};
use super::huffman::Table;
use super::scan::Header;

/// What goes on from block to block within a restart interval.
#[derive(Default)]
pub(super) struct Progress {
    /// Blocks still to come that an end-of-band code has covered.
    end_of_band: u32,
}

impl Progress {
    /// Skips one block. Bit `k` of `coded` tells that coefficient `k` is not zero.
    pub(super) fn block(
        &mut self,
        bits: &mut Bits<'_>,
        header: &Header,
        (dc, ac): (Option<&Table>, Option<&Table>),
        coded: &mut u64,
    ) -> Result<(), Stop> {
        match (header.band.0, header.high) {
            (0, 0) => {
                let size = dc.ok_or(Stop::BadCode)?.symbol(bits)?;
                bits.skip(u32::from(size))
            }
            (0, _) => bits.skip(1),
            (_, 0) => self.first(bits, header.band, ac.ok_or(Stop::BadCode)?, coded),
            _ => self.refine(bits, header.band, ac.ok_or(Stop::BadCode)?, coded),
        }
    }

    /// First scan of a band (T.81, G.1.2.2).
    fn first(
        &mut self,
        bits: &mut Bits<'_>,
        (mut k, last): (usize, usize),
        ac: &Table,
        coded: &mut u64,
    ) -> Result<(), Stop> {
        if self.end_of_band > 0 {
            self.end_of_band -= 1;
            return Ok(());
        }
        while k <= last {
            let symbol = ac.symbol(bits)?;
            let (run, size) = (usize::from(symbol >> 4), u32::from(symbol & 15));
            if size == 0 && run < 15 {
                self.end_of_band = (1 << run) - 1 + bits.read(run as u32)?;
                return Ok(());
            }
            k += run;
            if size > 0 {
                mark(coded, k)?;
                bits.skip(size)?;
            }
            k += 1;
        }
        Ok(())
    }

    /// Refinement of a band (T.81, G.1.2.3): one more bit of the known coefficients, and new ones between.
    fn refine(
        &mut self,
        bits: &mut Bits<'_>,
        (mut k, last): (usize, usize),
        ac: &Table,
        coded: &mut u64,
    ) -> Result<(), Stop> {
        while self.end_of_band == 0 && k <= last {
            let symbol = ac.symbol(bits)?;
            let (mut zeros, size) = (u32::from(symbol >> 4), symbol & 15);
            if size == 0 && zeros < 15 {
                self.end_of_band = (1 << zeros) + bits.read(zeros)?;
                break;
            }
            if size > 0 {
                bits.skip(1)?;
            }
            while k <= last {
                if *coded >> k & 1 == 1 {
                    bits.skip(1)?;
                } else if zeros == 0 {
                    break;
                } else {
                    zeros -= 1;
                }
                k += 1;
            }
            if size > 0 {
                mark(coded, k)?;
            }
            k += 1;
        }
        if self.end_of_band > 0 {
            if k <= last {
                let band = (u64::MAX << k) & (u64::MAX >> (63 - last));
                bits.skip((*coded & band).count_ones())?;
            }
            self.end_of_band -= 1;
        }
        Ok(())
    }
}

/// Notes that coefficient `k` is not zero.
fn mark(coded: &mut u64, k: usize) -> Result<(), Stop> {
    if k > 63 {
        return Err(Stop::BadCode);
    }
    *coded |= 1 << k;
    Ok(())
}
