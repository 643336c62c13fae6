//! Running one launch, and reading one operand out.

use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Elem, Inputs, Outputs};
use crate::ops::{self, par_copy};
use half::{bf16, f16};
use ocelli_ir::{DType, Op};

/// Runs one launch, by its kernel or, as a `fallback`, by its reference evaluation.
pub(crate) fn run_launch(
    cx: &Cx<'_>,
    work: &mut Buffer,
    op: &Op,
    fallback: bool,
    ins: Inputs<'_>,
    mut outs: Outputs<'_>,
) {
    for &(o, i) in op.in_place() {
        match ins.dtype(i) {
            _ if ins.is_absent(i) => {}
            DType::U8 => par_copy(cx, outs.get::<u8>(o), &ins.get(i)),
            DType::U32 => par_copy(cx, outs.get::<u32>(o), &ins.get(i)),
            _ => par_copy(cx, outs.get::<f32>(o), &ins.get(i)),
        }
    }
    match ops::kernel(op) {
        Some(kernel) if !fallback => kernel.run(cx, work, ins, outs),
        _ => ops::reference::run(op, ins, outs),
    }
}

/// Copies the only operand to `out`, row-major.
pub(crate) fn gather(ins: Inputs<'_>, out: &mut [u8]) {
    fn copy<T: Elem>(ins: Inputs<'_>, out: &mut [u8]) {
        let src = ins.get::<T>(0);
        let walk = crate::walk::Walk::new([&src.layout]);
        let [step] = walk.inner();
        let size = size_of::<T>();
        walk.runs(0..src.layout.numel(), |at, len, [from]| {
            for (i, out) in out[at * size..(at + len) * size].chunks_exact_mut(size).enumerate() {
                out.copy_from_slice(bytemuck::bytes_of(&src.data[from + i * step]));
            }
        });
    }
    match ins.dtype(0) {
        DType::U8 => copy::<u8>(ins, out),
        DType::U32 => copy::<u32>(ins, out),
        DType::Bf16 => copy::<bf16>(ins, out),
        DType::F16 => copy::<f16>(ins, out),
        DType::F32 => copy::<f32>(ins, out),
    }
}
