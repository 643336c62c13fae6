//! Blocks of progressive scans (T.81, annex G). How many bits a refinement takes depends on which
//! coefficients are known to be non-zero: that is kept beside them, one bit a coefficient.

use super::bits::Bits;
use super::huffman::{Table, extended};
use super::idct::Block;
use super::zigzag::PLACE;

/// One block, and which of its coefficients are not zero.
pub(super) struct Known<'a> {
    pub(super) block: &'a mut Block,
    pub(super) coded: &'a mut u64,
}

impl Known<'_> {
    /// Sets coefficient `k`. Of damaged files it may lie beyond the last one.
    fn set(&mut self, k: usize, value: i32) {
        let value = value as i16;
        self.block[PLACE[k]] = value;
        let k = k.min(63);
        // Values of more than 16 bits, of damaged files, can become zero.
        *self.coded = *self.coded & !(1 << k) | u64::from(value != 0) << k;
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

/// What a scan of a band says of its coefficients, and how far it has come.
pub(super) struct Band<'a> {
    /// The codes.
    pub(super) table: &'a Table,
    /// First and last coefficient, in zigzag order; not 0.
    pub(super) band: (usize, usize),
    /// Lowest bit that is sent.
    pub(super) low: u8,
    /// Blocks still to come that an end-of-band code has covered.
    pub(super) end_of_band: u32,
}

impl Band<'_> {
    /// Reads a block of the band's first scan (T.81, G.1.2.2).
    #[inline]
    pub(super) fn first(&mut self, at: &mut Bits<'_>, known: &mut Known<'_>) {
        if self.end_of_band > 0 {
            self.end_of_band -= 1;
            return;
        }
        let mut bits = *at;
        let (mut k, last) = self.band;
        while k <= last {
            let (symbol, value) = self.table.value(&mut bits);
            let run = usize::from(symbol >> 4);
            if symbol & 15 == 0 {
                if run < 15 {
                    self.end_of_band = (1 << run) - 1 + bits.read(run as u32);
                    break;
                }
                k += 16;
                continue;
            }
            k += run;
            known.set(k, value << self.low);
            k += 1;
        }
        *at = bits;
    }

    /// Reads a block of a refinement (T.81, G.1.2.3): one more bit of the known coefficients, and new ones between.
    #[inline]
    pub(super) fn refine(&mut self, at: &mut Bits<'_>, known: &mut Known<'_>) {
        let mut bits = *at;
        let (mut k, last) = self.band;
        let step = (1i32 << self.low) as i16;
        while self.end_of_band == 0 && k <= last {
            let symbol = self.table.symbol(&mut bits);
            let (mut zeros, size) = (u32::from(symbol >> 4), symbol & 15);
            if size == 0 && zeros < 15 {
                self.end_of_band = (1 << zeros) + bits.read(zeros);
                break;
            }
            // A new one is 1 or -1 times the step.
            let new = if size > 0 { Some(extended(bits.read(1), 1)) } else { None };
            while k <= last {
                if *known.coded >> k & 1 == 1 {
                    if bits.read(1) == 1 {
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
                known.set(k, sign << self.low);
            }
            k += 1;
        }
        if self.end_of_band > 0 {
            if k <= last {
                self.refine_known(&mut bits, k, step, known);
            }
            self.end_of_band -= 1;
        }
        *at = bits;
    }

    /// One more bit of the known coefficients from `k` on.
    #[inline]
    fn refine_known(&self, bits: &mut Bits<'_>, k: usize, step: i16, known: &mut Known<'_>) {
        let mut band = *known.coded & (u64::MAX << k) & (u64::MAX >> (63 - self.band.1));
        while band != 0 {
            let k = band.trailing_zeros() as usize;
            band &= band - 1;
            if bits.read(1) == 1 {
                known.refine(k, step);
            }
        }
    }
}
