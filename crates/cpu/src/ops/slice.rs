//! `slice`: a view in every plan; a launch of it copies.

use super::Kernel;
use super::copy::{par_copy, stored};
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Elem, Inputs, Outputs};
use ocelli_ir::ops::Slice;
use ocelli_ir::{DType, TensorType, View};

fn run<T: Elem>(op: &Slice, cx: &Cx<'_>, ins: Inputs<'_>, outs: Outputs<'_>) {
    let [out] = outs.take::<T, 1>();
    par_copy(cx, out, &ins.get(0).narrow(op.axis, op.start, op.len));
}

impl Kernel for Slice {
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
        match ins.dtype(0) {
            DType::U8 => run::<u8>(self, cx, ins, outs),
            DType::U32 => run::<u32>(self, cx, ins, outs),
            _ => run::<f32>(self, cx, ins, outs),
        }
    }
}
