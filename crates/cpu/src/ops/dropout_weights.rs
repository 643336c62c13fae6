//! `dropout_weights`: sixteen queries of a head at a time, whose decisions are made together.

use super::dropout::Keys;
use super::{Kernel, Needs};
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Cut, Inputs, Outputs, par_tiles};
use crate::simd::philox::TileRow;
use ocelli_ir::ops::DropoutWeights;
use ocelli_ir::{DType, TensorType};

/// Rows of a tile, and columns.
const TILE: usize = 16;

/// 32-bit words for the decisions on a row of tiles, two to a word.
const fn words(keys: usize) -> usize {
    keys.next_multiple_of(TILE) * TILE / 2
}

impl Kernel for DropoutWeights {
    fn supports(&self, inputs: &[TensorType]) -> bool {
        inputs[0].dtype == DType::F32
    }

    fn needs(&self, inputs: &[TensorType]) -> Needs {
        Needs::scratch(words(inputs[0].shape[3]))
    }

    fn run(&self, cx: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let keyed = Keys { seed: ins.dense(1), step: ins.scalar(2), samples: ins.dense(3) };
        let (x, [out]) = (ins.dense::<f32>(0), outs.take::<f32, 1>());
        let &[b, heads, queries, keys] = out.layout().shape() else { return };
        if x.is_empty() {
            return;
        }
        let key = self.dropout.key([keyed.seed[0], keyed.seed[1]]);
        let (threshold, scale) = (self.dropout.threshold, self.dropout.scale() as f32);
        let out = out.reshape(&[b * heads, queries, keys]);
        par_tiles(
            cx,
            x.len() * 4,
            [(out, [Cut::new(0, 1), Cut::new(1, TILE)])],
            |[plane, tile_row], [out]| {
                let out = out.dense();
                let x = &x[(plane * queries + tile_row * TILE) * keys..][..out.len()];
                let (sample, plane) = (keyed.samples[plane / heads], plane % heads);
                let at = TileRow { key, step: keyed.step, sample, plane, tile_row };
                cx.scratch(words(keys), |bits| {
                    let columns: &mut [u16] = bytemuck::cast_slice_mut(bits);
                    cx.simd(
                        #[inline(always)]
                        || {
                            at.columns(keys.div_ceil(TILE), columns, TILE);
                            for (r, (out, x)) in
                                out.chunks_exact_mut(keys).zip(x.chunks_exact(keys)).enumerate()
                            {
                                for ((o, &x), column) in out.iter_mut().zip(x).zip(columns.chunks_exact(TILE))
                                {
                                    *o = if column[r] >= threshold { x * scale } else { 0.0 };
                                }
                            }
                        },
                    );
                });
            },
        );
    }
}
