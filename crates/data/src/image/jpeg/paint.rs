//! From samples to pixels, as far as the samples are there.

use pulp::{Arch, Simd, WithSimd};

use super::colour::Colour;
use super::frame::{Component, Frame};
use super::upsample::Rows;
use crate::scratch::take;

/// A picture being made, from the top.
pub(super) struct Painter {
    colour: Colour,
    width: usize,
    rows: Vec<Rows>,
    /// Rows of pixels that are made.
    done: usize,
    /// `height x width x 3` bytes.
    pub(super) pixels: Vec<u8>,
}

impl Painter {
    pub(super) fn new(frame: &Frame, colour: Colour) -> Self {
        let rows = frame.components.iter().map(|c| Rows::new(c, frame)).collect();
        // Every one is written.
        let pixels = take(frame.width * frame.height * 3);
        Self { colour, width: frame.width, rows, done: 0, pixels }
    }

    /// Makes the rows before `until`.
    pub(super) fn paint(&mut self, components: &[Component], until: usize) {
        Arch::new().dispatch(Paint { painter: self, components, until });
    }
}

struct Paint<'a> {
    painter: &'a mut Painter,
    components: &'a [Component],
    until: usize,
}

impl WithSimd for Paint<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Painter { colour, width, rows, done, pixels } = self.painter;
        let missing = pixels.chunks_exact_mut(*width * 3).enumerate().take(self.until).skip(*done);
        for (y, out) in missing {
            match (&mut rows[..], self.components) {
                ([a], [ca]) => colour.write(&[&a.at(ca, y)[..*width]], out),
                ([a, b, c], [ca, cb, cc]) => {
                    let rows = [a.at(ca, y), b.at(cb, y), c.at(cc, y)];
                    colour.write(&[&rows[0][..*width], &rows[1][..*width], &rows[2][..*width]], out);
                }
                ([a, b, c, d], [ca, cb, cc, cd]) => {
                    let [a, b, c, d] = [a.at(ca, y), b.at(cb, y), c.at(cc, y), d.at(cd, y)];
                    colour.write(&[&a[..*width], &b[..*width], &c[..*width], &d[..*width]], out);
                }
                _ => {}
            }
        }
        *done = self.until;
    }
}
