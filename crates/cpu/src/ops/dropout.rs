//! `dropout`: some rows of a sample at a time.

use super::{Kernel, Needs};
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Cut, Dst, Inputs, Outputs, par_tiles};
use crate::simd::philox::{GROUP, Row};
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

/// Rows that are a thread's.
const ROWS: usize = 16;

/// Memory for the decisions on a row of a tensor.
pub(super) fn needs(x: &TensorType) -> Needs {
    Needs::scratch(words(x.shape.rows().1))
}

/// 32-bit words for the decisions on `cols` columns, two columns to a word.
fn words(cols: usize) -> usize {
    cols.next_multiple_of(GROUP) / 2
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
    let rows = x.len() / samples.len() / cols;
    let out = out.reshape(&[samples.len(), rows, cols]);
    par_tiles(cx, x.len() * 4, [(out, [Cut::new(0, 1), Cut::new(1, ROWS)])], |[b, part], [out]| {
        let out = out.dense();
        let first = (b * rows + part * ROWS) * cols;
        let x = &x[first..][..out.len()];
        let plus = plus.map(|plus| &plus[first..][..out.len()]);
        cx.scratch(words(cols), |bits| {
            let bits: &mut [u16] = bytemuck::cast_slice_mut(bits);
            cx.simd(
                #[inline(always)]
                || {
                    for (r, (out, x)) in out.chunks_exact_mut(cols).zip(x.chunks_exact(cols)).enumerate() {
                        Row { key, step, sample: samples[b], row: part * ROWS + r }.bits(bits);
                        let kept = x.iter().zip(&*bits).map(
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
