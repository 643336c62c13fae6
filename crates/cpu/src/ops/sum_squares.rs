//! `sum_squares`: chunks of all inputs in f64, added up in order.

use super::{Kernel, Needs};
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Inputs, Outputs};
use crate::simd::sums::sum_squares_wide;
use ocelli_ir::TensorType;
use ocelli_ir::ops::SumSquares;

/// Elements that make one partial sum.
const CHUNK: usize = 32 * 1024;

impl Kernel for SumSquares {
    fn needs(&self, inputs: &[TensorType]) -> Needs {
        Needs::workspace::<f64>(inputs.iter().map(|ty| ty.shape.numel().div_ceil(CHUNK)).sum())
    }

    fn run(&self, cx: &Cx<'_>, work: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let mut total = 0.0;
        for i in 0..ins.len() {
            let x = ins.dense::<f32>(i);
            let partial = work.slice::<f64>(x.len().div_ceil(CHUNK));
            cx.par_fill(partial, x.len(), |c| {
                let x = &x[c * CHUNK..x.len().min((c + 1) * CHUNK)];
                cx.simd(
                    #[inline(always)]
                    || sum_squares_wide(x, 0.0),
                )
            });
            total += partial.iter().sum::<f64>();
        }
        let [out] = outs.take::<f32, 1>();
        out.dense()[0] = total as f32;
    }
}
