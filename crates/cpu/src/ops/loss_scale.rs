//! `loss_scale`: one decision, in place.

use super::Kernel;
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Inputs, Outputs};
use ocelli_ir::TensorType;
use ocelli_ir::ops::LossScale;

impl Kernel for LossScale {
    fn supports(&self, _: &[TensorType]) -> bool {
        true
    }

    fn run(&self, _: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, mut outs: Outputs<'_>) {
        let (norm, apply): (f32, u32) = (ins.scalar(2), ins.scalar(3));
        let (old, good) = (outs.get::<f32>(0).dense()[0], outs.get::<u32>(1).dense()[0]);
        let (scale, good) = self.next(f64::from(old), good, f64::from(norm), apply != 0);
        outs.get::<f32>(0).dense()[0] = scale as f32;
        outs.get::<u32>(1).dense()[0] = good;
    }
}
