//! `cast`: from floats, bytes or indices; what is stored in 16 bits is rounded behind it.

use super::Kernel;
use super::elementwise::unary;
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Inputs, Outputs};
use ocelli_ir::ops::Cast;
use ocelli_ir::{DType, TensorType, View};

impl Kernel for Cast {
    fn supports(&self, inputs: &[TensorType]) -> bool {
        matches!(inputs[0].dtype, DType::F32 | DType::U8 | DType::U32)
    }

    fn reads(&self, _: usize, _: &View) -> bool {
        true
    }

    fn run(&self, cx: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        match ins.dtype(0) {
            DType::U8 => unary::<u8>(cx, ins, outs, f32::from),
            DType::U32 => unary::<u32>(
                cx,
                ins,
                outs,
                #[inline(always)]
                |x| x as f32,
            ),
            _ => unary::<f32>(
                cx,
                ins,
                outs,
                #[inline(always)]
                |x| x,
            ),
        }
    }
}
