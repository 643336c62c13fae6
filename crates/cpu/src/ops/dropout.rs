//! `dropout`: sixteen rows of a sample at a time, whose decisions are made together.

use super::{Kernel, Needs};
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Cut, Inputs, Outputs, par_tiles};
use crate::simd::philox::{TileRow, row, words};
use ocelli_ir::ops::DropoutOp;
use ocelli_ir::{DType, TensorType};

impl Kernel for DropoutOp {
    fn supports(&self, inputs: &[TensorType]) -> bool {
        inputs[0].dtype == DType::F32
    }

    fn needs(&self, inputs: &[TensorType]) -> Needs {
        Needs::scratch(words(inputs[0].shape.rows().1.div_ceil(16)))
    }

    fn run(&self, cx: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let (x, seed) = (ins.dense::<f32>(0), ins.dense::<u32>(1));
        let (step, samples) = (ins.scalar::<u32>(2), ins.dense::<u32>(3));
        let key = self.dropout.key([seed[0], seed[1]]);
        let (threshold, scale) = (self.dropout.threshold, self.dropout.scale() as f32);
        let [out] = outs.take::<f32, 1>();
        let shape = out.layout().shape();
        let cols = if shape.len() > 1 { shape[shape.len() - 1] } else { 1 };
        if x.is_empty() {
            return;
        }
        let (rows, tiles) = (x.len() / samples.len() / cols, cols.div_ceil(16));
        let out = out.reshape(&[samples.len(), rows, cols]);
        par_tiles(cx, x.len() * 4, [(out, [Cut::new(0, 1), Cut::new(1, 16)])], |[b, tile_row], [out]| {
            let out = out.dense();
            let x = &x[(b * rows + tile_row * 16) * cols..][..out.len()];
            let at = TileRow { key, step, sample: samples[b], plane: 0, tile_row };
            cx.scratch(words(tiles), |bits| {
                let bits = bytemuck::cast_slice_mut(bits);
                cx.simd(
                    #[inline(always)]
                    || {
                        at.bits(tiles, bits);
                        for (r, (out, x)) in out.chunks_exact_mut(cols).zip(x.chunks_exact(cols)).enumerate()
                        {
                            for ((o, &x), &b) in out.iter_mut().zip(x).zip(row(bits, tiles, r)) {
                                *o = if b >= threshold { x * scale } else { 0.0 };
                            }
                        }
                    },
                );
            });
        });
    }
}
