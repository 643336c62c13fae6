//! `positions`: counts up.

use super::Kernel;
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Inputs, Outputs};
use ocelli_ir::TensorType;
use ocelli_ir::ops::Positions;

impl Kernel for Positions {
    fn supports(&self, _: &[TensorType]) -> bool {
        true
    }

    fn run(&self, _: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let start = ins.scalar::<u32>(0);
        let [out] = outs.take::<u32, 1>();
        out.dense().iter_mut().enumerate().for_each(|(i, o)| *o = start.wrapping_add(i as u32));
    }
}
