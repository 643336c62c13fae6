//! `increment`: counters, in place.

use super::Kernel;
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Inputs, Outputs};
use ocelli_ir::TensorType;
use ocelli_ir::ops::Increment;

impl Kernel for Increment {
    fn supports(&self, _: &[TensorType]) -> bool {
        true
    }

    fn run(&self, _: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let by = if ins.len() == 2 { ins.scalar(1) } else { 1 };
        let [x] = outs.take::<u32, 1>();
        x.dense().iter_mut().for_each(|x| *x = x.wrapping_add(by));
    }
}
