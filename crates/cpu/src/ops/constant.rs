//! `constant`: fills its output.

use super::Kernel;
use super::copy::stored;
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Cut, Elem, Inputs, Outputs, par_tiles};
use ocelli_ir::ops::Constant;
use ocelli_ir::{DType, TensorType};

/// Elements that one task fills.
const CHUNK: usize = 64 * 1024;

fn fill<T: Elem>(cx: &Cx<'_>, outs: Outputs<'_>, value: T) {
    let [out] = outs.take::<T, 1>();
    let n = out.layout().numel();
    par_tiles(cx, n, [(out.reshape(&[n]), [Cut::new(0, CHUNK)])], |_, [out]| out.dense().fill(value));
}

impl Kernel for Constant {
    fn supports(&self, _: &[TensorType]) -> bool {
        stored(std::slice::from_ref(&self.ty))
    }

    fn run(&self, cx: &Cx<'_>, _: &mut Buffer, _: Inputs<'_>, outs: Outputs<'_>) {
        match self.ty.dtype {
            DType::U8 => fill(cx, outs, self.value as u8),
            DType::U32 => fill(cx, outs, self.value as u32),
            _ => fill(cx, outs, self.value as f32),
        }
    }
}
