//! What the ops that only move elements share.

use crate::cx::Cx;
use crate::layout::Layout;
use crate::mem::{Dst, Elem, Inputs, Outputs, Src, par_parts};
use ocelli_ir::{DType, TensorType};

/// Copies a tensor into another of the same shape.
pub fn par_copy<T: Elem>(cx: &Cx<'_>, out: Dst<'_, T>, src: &Src<'_, T>) {
    par_parts(cx, out, src, |out, src| out.copy_from(src));
}

/// Copies the only input, its axes turned by `src`, into the only output, its axes turned by `dst` to match the
/// shape that it is given.
pub fn copy_as<T: Elem>(
    cx: &Cx<'_>,
    ins: Inputs<'_>,
    outs: Outputs<'_>,
    src: impl Fn(Layout) -> Layout,
    dst: impl for<'a> Fn(Dst<'a, T>, &[usize]) -> Dst<'a, T>,
) {
    let [out] = outs.take::<T, 1>();
    let Src { data, layout } = ins.get(0);
    let from = Src::new(data, src(layout));
    par_copy(cx, dst(out, from.layout.shape()), &from);
}

/// Runs `copy_as` in the dtype of the input.
macro_rules! copy_any {
    ($cx:expr, $ins:expr, $outs:expr, $src:expr, $dst:expr) => {
        match $ins.dtype(0) {
            ocelli_ir::DType::U8 => $crate::ops::copy::copy_as::<u8>($cx, $ins, $outs, $src, $dst),
            ocelli_ir::DType::U32 => $crate::ops::copy::copy_as::<u32>($cx, $ins, $outs, $src, $dst),
            _ => $crate::ops::copy::copy_as::<f32>($cx, $ins, $outs, $src, $dst),
        }
    };
}
pub(super) use copy_any;

/// True if the elements are of a type that this executor stores.
pub fn stored(inputs: &[TensorType]) -> bool {
    inputs.iter().all(|ty| matches!(ty.dtype, DType::F32 | DType::U32 | DType::U8))
}
