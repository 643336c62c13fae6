//! `reshape`: a launch of it is a copy of a view that no other view can describe.

use super::Kernel;
use super::copy::{copy_any, stored};
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Inputs, Outputs};
use ocelli_ir::ops::Reshape;
use ocelli_ir::{TensorType, View};

impl Kernel for Reshape {
    fn supports(&self, inputs: &[TensorType]) -> bool {
        stored(inputs)
    }

    fn reads(&self, _: usize, _: &View) -> bool {
        true
    }

    fn run(&self, cx: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        copy_any!(cx, ins, outs, |x| x, |y, shape| y.reshape(shape));
    }
}
