//! `dropout`: sixteen rows of a sample at a time, whose decisions are made together.

use super::{Kernel, Needs};
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Cut, Dst, Inputs, Outputs, par_tiles};
use crate::simd::philox::{TileRow, row, words};
use ocelli_ir::dropout::Dropout;
use ocelli_ir::ops::DropoutOp;
use ocelli_ir::{DType, TensorType};

/// What decisions depend on, beside the site and the coordinates.
pub(super) struct Keys<'a> {
    pub(super) seed: &'a [u32],
    pub(super) step: u32,
    pub(super) samples: &'a [u32],
}

impl Kernel for DropoutOp {
    fn supports(&self, inputs: &[TensorType]) -> bool {
        inputs[0].dtype == DType::F32
    }

    fn needs(&self, inputs: &[TensorType]) -> Needs {
        needs(&inputs[0])
    }

    fn run(&self, cx: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let keys = Keys { seed: ins.dense(1), step: ins.scalar(2), samples: ins.dense(3) };
        let [out] = outs.take::<f32, 1>();
        run(cx, self.dropout, &keys, ins.dense(0), None, out);
    }
}

/// Memory for the decisions on a tensor.
pub(super) fn needs(x: &TensorType) -> Needs {
    Needs::scratch(words(x.shape.rows().1.div_ceil(16)))
}

/// `out = dropout(x)`, or `plus + dropout(x)`.
pub(super) fn run(
    cx: &Cx<'_>,
    dropout: Dropout,
    keys: &Keys<'_>,
    x: &[f32],
    plus: Option<&[f32]>,
    out: Dst<'_, f32>,
) {
    let key = dropout.key([keys.seed[0], keys.seed[1]]);
    let (threshold, scale) = (dropout.threshold, dropout.scale() as f32);
    let (step, samples) = (keys.step, keys.samples);
    let shape = out.layout().shape();
    let cols = if shape.len() > 1 { shape[shape.len() - 1] } else { 1 };
    if x.is_empty() {
        return;
    }
    let (rows, tiles) = (x.len() / samples.len() / cols, cols.div_ceil(16));
    let out = out.reshape(&[samples.len(), rows, cols]);
    par_tiles(cx, x.len() * 4, [(out, [Cut::new(0, 1), Cut::new(1, 16)])], |[b, tile_row], [out]| {
        let out = out.dense();
        let first = (b * rows + tile_row * 16) * cols;
        let x = &x[first..][..out.len()];
        let plus = plus.map(|plus| &plus[first..][..out.len()]);
        let at = TileRow { key, step, sample: samples[b], plane: 0, tile_row };
        cx.scratch(words(tiles), |bits| {
            let bits = bytemuck::cast_slice_mut(bits);
            cx.simd(
                #[inline(always)]
                || {
                    at.bits(tiles, bits);
                    for (r, (out, x)) in out.chunks_exact_mut(cols).zip(x.chunks_exact(cols)).enumerate() {
                        let kept = x.iter().zip(row(bits, tiles, r)).map(
                            #[inline(always)]
                            |(&x, &b)| if b >= threshold { x * scale } else { 0.0 },
                        );
                        match plus {
                            None => out.iter_mut().zip(kept).for_each(
                                #[inline(always)]
                                |(o, kept)| *o = kept,
                            ),
                            Some(plus) => {
                                let plus = &plus[r * cols..][..cols];
                                out.iter_mut().zip(kept).zip(plus).for_each(
                                    #[inline(always)]
                                    |((o, kept), plus)| *o = plus + kept,
                                );
                            }
                        }
                    }
                },
            );
        });
    });
}
