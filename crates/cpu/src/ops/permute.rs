//! `permute`: a view in every plan; a launch of it copies.

use super::Kernel;
use super::copy::{copy_any, stored};
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Inputs, Outputs};
use ocelli_ir::ops::Permute;
use ocelli_ir::{TensorType, View};

impl Kernel for Permute {
    fn supports(&self, inputs: &[TensorType]) -> bool {
        stored(inputs)
    }

    fn reads(&self, _: usize, _: &View) -> bool {
        true
    }

    fn writes(&self, _: usize, _: &View) -> bool {
        true
    }

    fn run(&self, cx: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        copy_any!(cx, ins, outs, |x| x.permute(&self.axes), |y, _| y);
    }
}
