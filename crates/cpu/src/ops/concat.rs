//! `concat`: each part copied to its place. Most are written there by the launch that makes them, and then
//! there is no launch of this.

use super::Kernel;
use super::copy::par_copy;
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Inputs, Outputs};
use ocelli_ir::View;
use ocelli_ir::ops::Concat;

impl Kernel for Concat {
    fn reads(&self, _: usize, _: &View) -> bool {
        true
    }

    fn writes(&self, _: usize, _: &View) -> bool {
        true
    }

    fn run(&self, cx: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let [mut out] = outs.take::<f32, 1>();
        let mut start = 0;
        for i in 0..ins.len() {
            let part = ins.get::<f32>(i);
            let len = part.layout.shape()[self.axis];
            par_copy(cx, out.reborrow().narrow(self.axis, start, len), &part);
            start += len;
        }
    }
}
