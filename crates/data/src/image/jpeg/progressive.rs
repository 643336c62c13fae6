//! Blocks of progressive scans (T.81, annex G). How many bits a refinement takes depends on which
//! coefficients are known to be non-zero: that is kept beside them, one bit a coefficient.

use super::bits::{Bits, Stop};
use super::header::Header;
use super::huffman::{Table, extended};
use super::idct::Block;
use super::zigzag::PLACE;

/// What goes on from block to block within a restart interval.
#[derive(Default)]
pub(super) struct Progress {
    /// Blocks still to come that an end-of-band code has covered.
    end_of_band: u32,
    /// Coefficient 0 of the block before, by component.
    pub(super) level: [i32; 4],
}

/// One block, and which of its coefficients are not zero.
pub(super) struct Known<'a> {
    pub(super) block: &'a mut Block,
    pub(super) coded: &'a mut u64,
}

impl Known<'_> {
    /// Sets coefficient `k`, which was zero.
    fn set(&mut self, k: usize, value: i32) -> Result<(), Stop> {
        let place = *PLACE.get(k).ok_or(Stop::BadCode)?;
        self.block[place] = value as i16;
        *self.coded |= 1 << k;
        Ok(())
    }

    /// Adds one more bit, worth `step`, to coefficient `k`, away from zero.
    #[inline]
    fn refine(&mut self, k: usize, step: i16) {
        let x = &mut self.block[PLACE[k]];
        // A bit that is there already is in a file that sends one twice.
        if *x & step == 0 {
            *x = if *x < 0 { x.wrapping_sub(step) } else { x.wrapping_add(step) };
        }
    }
}

impl Progress {
    /// Reads one block of the scan's component `component`.
    pub(super) fn block(
        &mut self,
        bits: &mut Bits<'_>,
        header: &Header,
        (dc, ac): (Option<&Table>, Option<&Table>),
        component: usize,
        mut known: Known<'_>,
    ) -> Result<(), Stop> {
        match (header.band.0, header.high) {
            (0, 0) => {
                let (_, difference) = dc.ok_or(Stop::BadCode)?.value(bits)?;
                let level = &mut self.level[component];
                *level = level.wrapping_add(difference);
                known.block[0] = (*level << header.low) as i16;
                Ok(())
            }
            (0, _) => {
                known.block[0] |= (bits.read(1)? << header.low) as i16;
                Ok(())
            }
            (_, 0) => self.first(bits, header, ac.ok_or(Stop::BadCode)?, &mut known),
            _ => self.refine(bits, header, ac.ok_or(Stop::BadCode)?, &mut known),
        }
    }

    /// First scan of a band (T.81, G.1.2.2).
    fn first(
        &mut self,
        bits: &mut Bits<'_>,
        header: &Header,
        ac: &Table,
        known: &mut Known<'_>,
    ) -> Result<(), Stop> {
        if self.end_of_band > 0 {
            self.end_of_band -= 1;
            return Ok(());
        }
        let (mut k, last) = header.band;
        while k <= last {
            let (symbol, value) = ac.value(bits)?;
            let run = usize::from(symbol >> 4);
            if symbol & 15 == 0 {
                if run < 15 {
                    self.end_of_band = (1 << run) - 1 + bits.read(run as u32)?;
                    return Ok(());
                }
                k += 16;
                continue;
            }
            k += run;
            known.set(k, value << header.low)?;
            k += 1;
        }
        Ok(())
    }

    /// Refinement of a band (T.81, G.1.2.3): one more bit of the known coefficients, and new ones between.
    fn refine(
        &mut self,
        bits: &mut Bits<'_>,
        header: &Header,
        ac: &Table,
        known: &mut Known<'_>,
    ) -> Result<(), Stop> {
        let (mut k, last) = header.band;
        let step = (1i32 << header.low) as i16;
        while self.end_of_band == 0 && k <= last {
            let symbol = ac.symbol(bits)?;
            let (mut zeros, size) = (u32::from(symbol >> 4), symbol & 15);
            if size == 0 && zeros < 15 {
                self.end_of_band = (1 << zeros) + bits.read(zeros)?;
                break;
            }
            // A new one is 1 or -1 times the step.
            let new = if size > 0 { Some(extended(bits.read(1)?, 1)) } else { None };
            while k <= last {
                if *known.coded >> k & 1 == 1 {
                    if bits.read(1)? == 1 {
                        known.refine(k, step);
                    }
                } else if zeros == 0 {
                    break;
                } else {
                    zeros -= 1;
                }
                k += 1;
            }
            if let Some(sign) = new {
                known.set(k, sign << header.low)?;
            }
            k += 1;
        }
        if self.end_of_band > 0 {
            if k <= last {
                self.refine_known(bits, (k, last), step, known)?;
            }
            self.end_of_band -= 1;
        }
        Ok(())
    }

    /// One more bit of the known coefficients `k..=last`.
    fn refine_known(
        &mut self,
        bits: &mut Bits<'_>,
        (k, last): (usize, usize),
        step: i16,
        known: &mut Known<'_>,
    ) -> Result<(), Stop> {
        let mut band = *known.coded & (u64::MAX << k) & (u64::MAX >> (63 - last));
        while band != 0 {
            let k = band.trailing_zeros() as usize;
            band &= band - 1;
            if bits.read(1)? == 1 {
                known.refine(k, step);
            }
        }
        Ok(())
    }
}
