//! `normalize_pixels`: one multiply-add per byte.

use super::Kernel;
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Cut, Inputs, Outputs, par_tiles};
use ocelli_ir::ops::NormalizePixels;
use ocelli_ir::{DType, TensorType, View};

/// Bytes after which channels and vector lanes are in step again.
const PERIOD: usize = 48;
/// Bytes that one task takes, a multiple of the period.
const CHUNK: usize = 512 * PERIOD;

impl Kernel for NormalizePixels {
    fn supports(&self, inputs: &[TensorType]) -> bool {
        inputs[0].dtype == DType::U8
    }

    fn reads(&self, _: usize, _: &View) -> bool {
        false
    }

    fn run(&self, cx: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let x = ins.dense::<u8>(0);
        let factor: [f32; PERIOD] =
            std::array::from_fn(|i| (1.0 / (255.0 * f64::from(self.std[i % 3]))) as f32);
        let shift: [f32; PERIOD] =
            std::array::from_fn(|i| (-f64::from(self.mean[i % 3]) / f64::from(self.std[i % 3])) as f32);
        let [out] = outs.take::<f32, 1>();
        let out = out.reshape(&[x.len()]);
        par_tiles(cx, x.len(), [(out, [Cut::new(0, CHUNK)])], |[i], [out]| {
            let out = out.dense();
            let x = &x[i * CHUNK..][..out.len()];
            cx.simd(
                #[inline(always)]
                || {
                    for (out, x) in out.chunks_mut(PERIOD).zip(x.chunks(PERIOD)) {
                        for (((o, &x), &f), &s) in out.iter_mut().zip(x).zip(&factor).zip(&shift) {
                            *o = f32::from(x).mul_add(f, s);
                        }
                    }
                },
            );
        });
    }
}
