//! `split`: views in every plan; a launch of it copies each part.

use super::Kernel;
use super::copy::{par_copy, stored};
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Elem, Inputs, Outputs};
use ocelli_ir::ops::Split;
use ocelli_ir::{DType, TensorType, View};

fn run<T: Elem>(op: &Split, cx: &Cx<'_>, ins: Inputs<'_>, mut outs: Outputs<'_>) {
    let src = ins.get::<T>(0);
    let len = src.layout.shape()[op.axis] / op.parts;
    for i in 0..op.parts {
        par_copy(cx, outs.get::<T>(i), &src.narrow(op.axis, i * len, len));
    }
}

impl Kernel for Split {
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
