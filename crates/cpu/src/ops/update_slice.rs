//! `update_slice`: rows of the patch copied into the base, in place.

use super::Kernel;
use super::copy::par_copy;
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Elem, Inputs, Outputs};
use ocelli_ir::ops::UpdateSlice;
use ocelli_ir::{DType, TensorType, View};

/// Copies the patch in at most two pieces: up to the end of the axis, and on from its start.
fn run<T: Elem>(op: &UpdateSlice, cx: &Cx<'_>, ins: Inputs<'_>, outs: Outputs<'_>) {
    let [mut base] = outs.take::<T, 1>();
    let patch = ins.get::<T>(1);
    let (extent, rows) = (base.layout().shape()[op.axis], patch.layout.shape()[op.axis]);
    if rows == 0 {
        return;
    }
    let start = UpdateSlice::row(ins.scalar(2), 0, extent);
    let first = rows.min(extent - start);
    par_copy(cx, base.reborrow().narrow(op.axis, start, first), &patch.narrow(op.axis, 0, first));
    par_copy(cx, base.narrow(op.axis, 0, rows - first), &patch.narrow(op.axis, first, rows - first));
}

impl Kernel for UpdateSlice {
    fn supports(&self, inputs: &[TensorType]) -> bool {
        matches!(inputs[0].dtype, DType::F32 | DType::U32)
    }

    fn reads(&self, input: usize, _: &View) -> bool {
        input == 1
    }

    fn run(&self, cx: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        match ins.dtype(1) {
            DType::U32 => run::<u32>(self, cx, ins, outs),
            _ => run::<f32>(self, cx, ins, outs),
        }
    }
}
