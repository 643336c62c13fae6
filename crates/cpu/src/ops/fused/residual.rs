//! `x + dropout(y)`: the sum is made while what dropout keeps is in a register.

use super::Body;
use crate::cx::Cx;
use crate::mem::{Inputs, Outputs};
use crate::ops::Needs;
use crate::ops::dropout::{self, Keys};
use ocelli_ir::ops::DropoutOp;
use ocelli_ir::{Op, TensorType};

/// The body, with the numbers of its inputs.
pub(super) struct Residual<'a> {
    op: &'a DropoutOp,
    /// What is dropped from, seed, step and sample indices.
    dropped: [usize; 4],
    /// What is added.
    plus: usize,
}

impl<'a> Residual<'a> {
    pub(super) fn of(body: Body<'a>) -> Option<Self> {
        let [dropout, add] = body.ops()?;
        let (Op::DropoutOp(op), Op::Add(_)) = (&dropout.op, &add.op) else { return None };
        let (made, sum) = (dropout.outputs[0], add.outputs[0]);
        let other = match add.inputs[..] {
            [a, b] if b == made => a,
            [a, b] if a == made => b,
            _ => return None,
        };
        let same = |v| body.graph.ty(v) == body.graph.ty(sum);
        let inputs = [0, 1, 2, 3].map(|i| body.input(dropout.inputs[i]));
        let [Some(y), Some(seed), Some(step), Some(samples)] = inputs else { return None };
        let fits = same(made) && same(other) && body.gives(&[sum]);
        fits.then_some(Self { op, dropped: [y, seed, step, samples], plus: body.input(other)? })
    }

    pub(super) fn needs(&self, inputs: &[TensorType]) -> Needs {
        dropout::needs(&inputs[self.plus])
    }

    pub(super) fn run(&self, cx: &Cx<'_>, ins: Inputs<'_>, outs: Outputs<'_>) {
        let [y, seed, step, samples] = self.dropped;
        let keys = Keys { seed: ins.dense(seed), step: ins.scalar(step), samples: ins.dense(samples) };
        let [out] = outs.take::<f32, 1>();
        dropout::run(cx, self.op.dropout, &keys, ins.dense(y), Some(ins.dense(self.plus)), out);
    }
}
