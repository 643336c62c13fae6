//! Lanes as an array, for any machine.

use std::num::Wrapping;
use std::ops::{Add, Sub};

use super::{Lanes, POINT};

#[derive(Clone, Copy)]
pub(super) struct Plain([Wrapping<i32>; 8]);

impl Plain {
    #[inline(always)]
    fn each(mut self, f: impl Fn(Wrapping<i32>) -> Wrapping<i32>) -> Self {
        for x in &mut self.0 {
            *x = f(*x);
        }
        self
    }
}

impl Add for Plain {
    type Output = Self;

    #[inline(always)]
    fn add(mut self, other: Self) -> Self {
        for (x, y) in self.0.iter_mut().zip(other.0) {
            *x += y;
        }
        self
    }
}

impl Sub for Plain {
    type Output = Self;

    #[inline(always)]
    fn sub(mut self, other: Self) -> Self {
        for (x, y) in self.0.iter_mut().zip(other.0) {
            *x -= y;
        }
        self
    }
}

impl Lanes for Plain {
    type Token = ();

    #[inline(always)]
    fn load((): (), coefficients: &[i16; 8], factors: &[i16; 8]) -> Self {
        let mut lanes = [Wrapping(0); 8];
        for ((x, c), f) in lanes.iter_mut().zip(coefficients).zip(factors) {
            *x = Wrapping(i32::from(c.wrapping_mul(*f)));
        }
        Self(lanes)
    }

    #[inline(always)]
    fn times(self, factor: i32) -> Self {
        self.each(|x| x * Wrapping(factor))
    }

    #[inline(always)]
    fn up<const N: i32>(self) -> Self {
        self.each(|x| x << N as usize)
    }

    #[inline(always)]
    fn down<const N: i32>(self) -> Self {
        self.each(|x| (x + Wrapping(1 << (N - 1))) >> N as usize)
    }

    #[inline(always)]
    fn wrapped(self) -> Self {
        self.each(|x| Wrapping(i32::from(x.0 as i16)))
    }

    #[inline(always)]
    fn wrapped_up(self) -> Self {
        self.wrapped().up::<POINT>()
    }

    #[inline(always)]
    fn narrow(self) -> Self {
        self.each(|x| Wrapping(x.0.clamp(i16::MIN.into(), i16::MAX.into())))
    }

    #[inline(always)]
    fn transposed(rows: [Self; 8]) -> [Self; 8] {
        let mut turned = rows;
        for (i, turned) in turned.iter_mut().enumerate() {
            for (x, row) in turned.0.iter_mut().zip(&rows) {
                *x = row.0[i];
            }
        }
        turned
    }

    #[inline(always)]
    fn samples(rows: [Self; 8]) -> [[u8; 8]; 8] {
        let mut samples = [[0; 8]; 8];
        for (samples, row) in samples.iter_mut().zip(rows) {
            for (sample, x) in samples.iter_mut().zip(row.0) {
                *sample = (x + Wrapping(128)).0.clamp(0, 255) as u8;
            }
        }
        samples
    }
}
