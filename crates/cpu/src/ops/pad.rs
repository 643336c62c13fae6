//! `pad`: a copy with zeros around it.

use super::Kernel;
use super::copy::par_copy;
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Inputs, Outputs};
use ocelli_ir::View;
use ocelli_ir::ops::Pad;

impl Kernel for Pad {
    fn reads(&self, _: usize, _: &View) -> bool {
        true
    }

    fn writes(&self, _: usize, _: &View) -> bool {
        true
    }

    fn run(&self, cx: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let src = ins.get::<f32>(0);
        let len = src.layout.shape()[self.axis];
        let [mut out] = outs.take::<f32, 1>();
        out.reborrow().narrow(self.axis, 0, self.before).fill(0.0);
        par_copy(cx, out.reborrow().narrow(self.axis, self.before, len), &src);
        out.narrow(self.axis, self.before + len, self.total - self.before - len).fill(0.0);
    }
}
