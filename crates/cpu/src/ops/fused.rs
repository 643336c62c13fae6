//! `fused`: the bodies that are run as one, each recognised by its own file. All are equal to the plain ops to the
//! bit, so no value between may be one that is rounded to 16 bits.

mod activated;
mod residual;

use super::{Kernel, Needs};
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Inputs, Outputs};
use activated::Activated;
use ocelli_ir::ops::Fused;
use ocelli_ir::{DType, Graph, Node, Op, TensorType, Value, View};
use residual::Residual;

/// The bodies that are known.
enum Known<'a> {
    Residual(Residual<'a>),
    Activated(Activated<'a>),
}

/// A body, its inputs and what it makes told apart.
#[derive(Clone, Copy)]
struct Body<'a> {
    graph: &'a Graph,
}

impl<'a> Body<'a> {
    /// The ops that compute, if there are `N` of them; those that follow each other by a reshape count as neighbours.
    fn ops<const N: usize>(self) -> Option<[&'a Node; N]> {
        let works = |n: &&Node| !matches!(n.op, Op::Input(_) | Op::Reshape(_));
        let mut ops = self.graph.nodes().iter().filter(works);
        let found = [(); N].map(|()| ops.next());
        if ops.next().is_some() || found.iter().any(Option::is_none) {
            return None;
        }
        Some(found.map(|node| node.unwrap_or(&self.graph.nodes()[0])))
    }

    /// Which input a value is.
    fn input(self, v: Value) -> Option<usize> {
        let inputs = self.graph.nodes().iter().filter(|n| matches!(n.op, Op::Input(_)));
        inputs.map(|n| n.outputs[0]).position(|input| input == v)
    }

    /// The values that are outputs, in order, if these are all.
    fn gives(self, values: &[Value]) -> bool {
        self.graph.outputs().iter().map(|(_, v)| v).eq(values)
    }
}

fn known(op: &Fused) -> Option<Known<'_>> {
    let body = Body { graph: &op.body };
    if body.graph.values().iter().any(|v| matches!(v.ty.dtype, DType::Bf16 | DType::F16)) {
        return None;
    }
    Residual::of(body).map(Known::Residual).or_else(|| Activated::of(body).map(Known::Activated))
}

impl Kernel for Fused {
    fn supports(&self, _: &[TensorType]) -> bool {
        known(self).is_some()
    }

    fn reads(&self, input: usize, view: &View) -> bool {
        matches!(known(self), Some(Known::Activated(op)) if op.reads(input, view))
    }

    fn needs(&self, inputs: &[TensorType]) -> Needs {
        match known(self) {
            Some(Known::Residual(op)) => op.needs(inputs),
            Some(Known::Activated(op)) => op.needs(inputs),
            None => Needs::default(),
        }
    }

    fn run(&self, cx: &Cx<'_>, work: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        match known(self) {
            Some(Known::Residual(op)) => op.run(cx, ins, outs),
            Some(Known::Activated(op)) => op.run(cx, work, ins, outs),
            // `supports` said no to it.
            None => super::reference::run(&self.clone().into(), ins, outs),
        }
    }
}
