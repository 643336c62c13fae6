//! Components of fewer samples than the picture has pixels, row by row at its full size.
//!
//! Where a component has half the samples, a pixel takes three quarters of the nearest sample and one of the next
//! ("fancy" in libjpeg); other ratios, and components of one or two columns, are repeated. At the edges of the picture
//! the last *visible* sample is the next one too: what encoders put behind it never shows.

use super::frame::{Component, Frame};
use crate::scratch::Buffer;

/// Makes rows of one component.
pub(super) struct Rows {
    /// Pixels for a sample, across and down.
    ratio: (usize, usize),
    /// One row of samples, mixed with the next one; one more at either end.
    mixed: Buffer<u16>,
    /// One row of pixels.
    row: Buffer<u8>,
}

impl Rows {
    pub(super) fn new(component: &Component, frame: &Frame) -> Self {
        let ratio = (frame.h_max / component.h, frame.v_max / component.v);
        let width = component.width;
        Self { ratio, mixed: Buffer::any(width + 2), row: Buffer::any(width * ratio.0) }
    }

    /// Row `y` of the picture: at least as many pixels as it is wide.
    #[inline(always)]
    pub(super) fn at<'s>(&'s mut self, component: &'s Component, y: usize) -> &'s [u8] {
        let wide = component.width > 2;
        let near = component.row(y / self.ratio.1);
        match self.ratio {
            (1, 1) => return near,
            (2, 1) if wide => {
                self.mix(near, None);
                spread(&self.mixed, &mut self.row, [1, 2], 2);
            }
            (1, 2) => {
                self.mix(near, Some(next(component, y)));
                let bias = 1 + y as u16 % 2;
                for (out, x) in self.row.iter_mut().zip(&self.mixed[1..]) {
                    *out = ((x + bias) >> 2) as u8;
                }
            }
            (2, 2) if wide => {
                self.mix(near, Some(next(component, y)));
                spread(&self.mixed, &mut self.row, [8, 7], 4);
            }
            (times, _) => {
                for (pixels, x) in self.row.chunks_exact_mut(times).zip(near) {
                    pixels.fill(*x);
                }
            }
        }
        &self.row
    }

    /// Fills `mixed` with the samples of `near`, or with three of them and one of `far`.
    #[inline(always)]
    fn mix(&mut self, near: &[u8], far: Option<&[u8]>) {
        let width = near.len();
        let mixed = &mut self.mixed[1..=width];
        match far {
            Some(far) => {
                for ((out, near), far) in mixed.iter_mut().zip(near).zip(far) {
                    *out = 3 * u16::from(*near) + u16::from(*far);
                }
            }
            None => mixed.iter_mut().zip(near).for_each(|(out, near)| *out = u16::from(*near)),
        }
        self.mixed[0] = self.mixed[1];
        self.mixed[width + 1] = self.mixed[width];
    }
}

/// Of a component of half the height: the row next to the one that row `y` of the picture is in.
#[inline(always)]
fn next(component: &Component, y: usize) -> &[u8] {
    let (near, last) = (y / 2, component.height - 1);
    component.row(if y.is_multiple_of(2) { near.saturating_sub(1) } else { (near + 1).min(last) })
}

/// Two pixels for each sample: three parts of it and one of the sample before or behind, divided by `2^shift`.
#[inline(always)]
fn spread(mixed: &[u16], row: &mut [u8], bias: [u16; 2], shift: u16) {
    let (before, behind) = (&mixed[..mixed.len() - 2], &mixed[2..]);
    for (((out, x), before), behind) in row.chunks_exact_mut(2).zip(&mixed[1..]).zip(before).zip(behind) {
        out[0] = ((3 * x + before + bias[0]) >> shift) as u8;
        out[1] = ((3 * x + behind + bias[1]) >> shift) as u8;
    }
}
