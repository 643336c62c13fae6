//! `step_gate`: one decision.

use super::Kernel;
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Inputs, Outputs};
use ocelli_ir::TensorType;
use ocelli_ir::ops::StepGate;

impl Kernel for StepGate {
    fn supports(&self, _: &[TensorType]) -> bool {
        true
    }

    fn run(&self, _: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        let [norm, weight, loss] = [0, 1, 2].map(|i| f64::from(ins.scalar::<f32>(i)));
        let [open] = outs.take::<u32, 1>();
        open.dense().fill(u32::from(StepGate::open(norm, weight, loss)));
    }
}
