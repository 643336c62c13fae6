//! `swiglu_grad`: both gradients in one pass.

use super::Kernel;
use super::elementwise::CHUNK;
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Cut, Inputs, Outputs, par_tiles};
use crate::simd::math::sigmoid;
use ocelli_ir::ops::SwigluGrad;

impl Kernel for SwigluGrad {
    fn run(&self, cx: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let [gate, up, dy] = [0, 1, 2].map(|i| ins.dense::<f32>(i));
        let n = gate.len();
        let tiles = outs.take::<f32, 2>().map(|out| (out.reshape(&[n]), [Cut::new(0, CHUNK)]));
        par_tiles(cx, n * 4, tiles, |[i], tiles| {
            let [dgate, dup] = tiles.map(|t| t.dense());
            let [gate, up, dy] = [gate, up, dy].map(|v| &v[i * CHUNK..][..dgate.len()]);
            cx.simd(
                #[inline(always)]
                || {
                    let outs = dgate.iter_mut().zip(dup.iter_mut());
                    for (((dgate, dup), (&gate, &up)), &dy) in outs.zip(gate.iter().zip(up)).zip(dy) {
                        let open = sigmoid(gate);
                        *dgate = dy * up * open * gate.mul_add(1.0 - open, 1.0);
                        *dup = dy * gate * open;
                    }
                },
            );
        });
    }
}
