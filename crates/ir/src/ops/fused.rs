//! `fused`: several ops that an executor runs as one. It holds its plain definition, a small graph: that is its
//! oracle, its fallback, and what an executor looks at to choose a kernel.

use super::dropout::{DropoutOp, sample_keys};
use super::{Gelu, Input, LayerNorm, MatMul};
use crate::dropout::Dropout;
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Vjp};
use crate::ops::Op;
use crate::reference;
use crate::tensor::{Real, Tensor};
use crate::{Graph, GraphError, TensorType, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// Names that [`Fused::names`] gives at most.
const NAMED: usize = 6;

/// The inputs of the body, in order, are the op's inputs, and its outputs, in order, the op's outputs; their names do not
/// matter. The types are exactly the body's, 16 bits included. The body touches no state and holds no `fused`.
#[derive(Clone, Debug, PartialEq)]
pub struct Fused {
    /// The plain definition.
    pub body: Arc<Graph>,
}

impl Fused {
    /// A fused op from its plain definition.
    pub fn new(body: Graph) -> Self {
        Self { body: Arc::new(body) }
    }

    /// The inputs of the body, in order.
    pub fn inputs(&self) -> impl Iterator<Item = &Input> {
        self.body.nodes().iter().filter_map(|n| if let Op::Input(op) = &n.op { Some(op) } else { None })
    }

    /// The names of the ops that compute something, as in `dropout+add`.
    pub fn names(&self) -> String {
        let works = |n: &&crate::Node| !matches!(n.op, Op::Input(_) | Op::Constant(_)) && !self.body.is_view(n);
        let names: Vec<&str> = self.body.nodes().iter().filter(works).map(|n| n.op.name()).collect();
        match names.get(NAMED..) {
            Some(more) if !more.is_empty() => format!("{}+{} more", names[..NAMED].join("+"), more.len()),
            _ => names.join("+"),
        }
    }
}

impl OpDef for Fused {
    const NAME: &'static str = "fused";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        let want: Vec<&Input> = self.inputs().collect();
        super::common::arity(inputs, want.len())?;
        for (i, (ty, want)) in inputs.iter().zip(want).enumerate() {
            super::common::exact(ty, &want.ty, &format!("input {i}"))?;
        }
        let plain = |op: &Op| !matches!(op, Op::StateRead(_) | Op::StateWrite(_) | Op::Fused(_));
        match self.body.nodes().iter().find(|n| !plain(&n.op)) {
            Some(node) => Err(format!("its body may not hold {}", node.op)),
            None => Ok(self.body.outputs().iter().map(|(_, v)| self.body.ty(*v).clone()).collect()),
        }
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let given = self.inputs().zip(inputs).map(|(i, &t)| (i.name.to_string(), t.clone())).collect();
        let Ok(values) = reference::values(&self.body, &given, &HashMap::new()) else { return vec![] };
        self.body.outputs().iter().map(|(_, v)| values[v.index()].clone()).collect()
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        cx.none("ops are fused behind differentiation")
    }

    fn sample(g: &mut Gen) -> Sample {
        let mut body = Graph::new();
        let (b, t, c) = (g.dim(1, 3), g.dim(1, 9), g.dim(1, 20));
        let fills = match g.dim(0, 3) {
            0 => residual(&mut body, b, t, c),
            1 => product(&mut body, [b, t, c, g.dim(1, 70)], !g.one_in(3)),
            2 => twice(&mut body, b, t),
            _ => normed(&mut body, b, t, c + 8),
        };
        // The graphs above are right by themselves: that their ops refuse them is a defect, which `infer` then shows.
        let fills = fills.unwrap_or_default();
        let op = Self::new(body);
        let inputs = op.inputs().zip(fills).map(|(i, fill)| (i.ty.clone(), fill)).collect();
        Sample::no_gradient(op, inputs)
    }

    fn flops(&self, _: &[&TensorType], _: &[&TensorType]) -> u64 {
        let types = |values: &[Value]| values.iter().map(|&v| self.body.ty(v)).collect::<Vec<_>>();
        let cost = |n: &crate::Node| n.op.flops(&types(&n.inputs), &types(&n.outputs));
        self.body.nodes().iter().map(cost).sum()
    }
}

/// What fills the inputs of a sample's body.
type Fills = Result<Vec<Fill>, GraphError>;

/// `x + dropout(y)`.
fn residual(g: &mut Graph, b: usize, t: usize, c: usize) -> Fills {
    let ty = TensorType::f32([b, t, c]);
    let (x, y) = (g.input("x", ty.clone()), g.input("y", ty));
    let keys = sample_keys(b);
    let names = ["seed", "step", "samples"];
    let keyed: Vec<Value> = keys.iter().zip(names).map(|((ty, _), name)| g.input(name, ty.clone())).collect();
    let dropout = Dropout { threshold: 20_000, site: 0x0123_4567_89ab_cdef };
    let dropped = g.one(DropoutOp { dropout }, &[y, keyed[0], keyed[1], keyed[2]])?;
    let sum = g.add(x, dropped)?;
    g.output("sum", sum);
    Ok([Fill::Normal, Fill::Normal].into_iter().chain(keys.into_iter().map(|(_, fill)| fill)).collect())
}

/// `gelu(x w^T + bias)`, and what the function saw if that is wanted.
fn product(g: &mut Graph, [b, t, c, n]: [usize; 4], both: bool) -> Fills {
    let (x, w) = (g.input("x", TensorType::f32([b * t, c])), g.input("w", TensorType::f32([n, c])));
    let bias = g.input("bias", TensorType::f32([n]));
    let h = g.one(MatMul { ta: false, tb: true, bias: true }, &[x, w, bias])?;
    let rows = g.reshape(h, [b, t, n])?;
    let y = g.one(Gelu, &[rows])?;
    if both {
        g.output("h", h);
    }
    g.output("y", y);
    Ok(vec![Fill::Normal; 3])
}

/// `x + c`, its square root and its product with `x`: an input and a value that are used twice, three outputs.
fn twice(g: &mut Graph, b: usize, t: usize) -> Fills {
    let x = g.input("x", TensorType::f32([b, t]));
    let c = g.constant(0.5, crate::DType::F32);
    let sum = g.add(x, c)?;
    let (root, product) = (g.sqrt(sum)?, g.mul(sum, x)?);
    [("sum", sum), ("root", root), ("product", product)].into_iter().for_each(|(n, v)| g.output(n, v));
    Ok(vec![Fill::Range(0.5, 2.0)])
}

/// A layer norm before a product; of rows so long that none varies too little to be normed well.
fn normed(g: &mut Graph, b: usize, t: usize, c: usize) -> Fills {
    let x = g.input("x", TensorType::f32([b, t, c]));
    let (gain, shift) = (g.input("gain", TensorType::f32([c])), g.input("shift", TensorType::f32([c])));
    let w = g.input("w", TensorType::f32([5, c]));
    let normed = g.many(LayerNorm { eps: 1e-5 }, &[x, gain, shift])?[0];
    let y = g.linear(normed, w, None)?;
    g.output("y", y);
    Ok(vec![Fill::Normal; 4])
}
