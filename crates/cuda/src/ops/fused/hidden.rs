//! Fused ops with products at both ends: hidden layers, found in a body.

use crate::lower::{Arg, Lowering, Matrix, Tensor};
use crate::ops::gemm::hidden::{First, Last, Layer, Weight};
use crate::ops::{arithmetic, matmul};
use ocelli_ir::ops::MatMul;
use ocelli_ir::{DType, Graph, Node, Op, Value, View};
use std::collections::{HashMap, HashSet};

/// A hidden layer of a body.
pub struct Hidden {
    /// What its kernels do.
    pub layer: Layer,
    /// The node whose result the epilogue goes on from, if there is one.
    pub last: Option<Node>,
    /// What its nodes make, views included; but for the last one.
    inside: HashSet<Value>,
    /// Results of the fused op that its own kernels make.
    pub results: HashSet<Value>,
}

impl Hidden {
    /// True if a node belongs to the layer, and not to the epilogue.
    pub fn has(&self, node: &Node) -> bool {
        node.outputs.iter().any(|v| self.inside.contains(v) || self.results.contains(v))
    }

    /// The layer of a body, if it has one.
    pub fn of(body: &Graph, cx: &Lowering) -> Option<Self> {
        Search::new(body, cx).layer()
    }
}

struct Search<'a> {
    body: &'a Graph,
    cx: &'a Lowering,
    /// Numbers of the inputs, and of views of them.
    inputs: HashMap<Value, usize>,
    /// Expressions of what is made inside, views included.
    names: HashMap<Value, String>,
    firsts: Vec<First>,
    /// Rows and columns of what first products make.
    extents: Option<(usize, usize)>,
    statements: String,
    /// What leaves the element-by-element part.
    made: Vec<String>,
    last: Option<(Node, Last)>,
    weights: Vec<Weight>,
    sum: Option<(usize, Arg)>,
    results: HashSet<Value>,
}

impl<'a> Search<'a> {
    fn new(body: &'a Graph, cx: &'a Lowering) -> Self {
        let inputs = body.nodes().iter().filter(|n| matches!(n.op, Op::Input(_))).map(|n| n.outputs[0]);
        Self {
            body,
            cx,
            inputs: inputs.enumerate().map(|(i, v)| (v, i)).collect(),
            names: HashMap::new(),
            firsts: Vec::new(),
            extents: None,
            statements: String::new(),
            made: Vec::new(),
            last: None,
            weights: Vec::new(),
            sum: None,
            results: HashSet::new(),
        }
    }

    fn layer(mut self) -> Option<Hidden> {
        for node in self.body.nodes() {
            self.node(node)?;
        }
        let (m, h) = self.extents?;
        let (node, last) = self.last.unzip();
        let stores = self.made.iter().enumerate().map(|(i, name)| format!("    u[{i}] = {name};\n"));
        let statements = self.statements + &stores.collect::<String>();
        let layer = Layer {
            m,
            h,
            firsts: self.firsts,
            statements,
            made: self.made.len(),
            last,
            weights: self.weights,
            sum: self.sum,
        };
        let kept = |v: &Value| self.body.outputs().iter().any(|(_, out)| out == v);
        let none_kept = !self.names.keys().any(kept);
        let few = (1..=2).contains(&layer.firsts.len());
        let ends = layer.last.is_some() || !layer.weights.is_empty();
        (none_kept && few && ends).then(|| Hidden {
            layer,
            last: node,
            inside: self.names.into_keys().collect(),
            results: self.results,
        })
    }

    fn node(&mut self, node: &Node) -> Option<()> {
        let inside: Vec<bool> = node.inputs.iter().map(|v| self.names.contains_key(v)).collect();
        match &node.op {
            Op::Reshape(_) => {
                let (x, y) = (node.inputs[0], node.outputs[0]);
                if let Some(&input) = self.inputs.get(&x) {
                    self.inputs.insert(y, input);
                } else if let Some(name) = self.names.get(&x).cloned() {
                    self.names.insert(y, name);
                }
                Some(())
            }
            Op::MatMul(op) if inside.iter().any(|&i| i) => self.reader(op, node),
            Op::MatMul(op) => self.first(op, node),
            Op::ReduceSum(op) if inside[0] => {
                let rows = self.body.shape(node.inputs[0]).len() == 2 && op.axes == [0];
                let made = self.made(node.inputs[0])?;
                let to = self.result(node.outputs[0])?;
                (rows && self.sum.replace((made, to)).is_none()).then_some(())
            }
            op if !inside.is_empty() && inside.iter().all(|&i| i) => {
                let text = arithmetic::statements(op, inside.len()).filter(|t| !t.contains("c_last"))?;
                let name = format!("v{}", node.outputs[0].index());
                (node.outputs.len() == 1).then_some(())?;
                self.statements.push_str(&format!("    float {name};\n    {{\n"));
                for (i, v) in node.inputs.iter().enumerate() {
                    self.statements.push_str(&format!("        const float x{i} = {};\n", self.names[v]));
                }
                // What is made is stored in 16 bits.
                self.statements.push_str(&text.replace("HALF_RESULTS", "true"));
                self.statements.push_str(&format!("        {name} = y0;\n    }}\n"));
                self.names.insert(node.outputs[0], name);
                Some(())
            }
            // The epilogue's.
            _ => (!inside.iter().any(|&i| i)).then_some(()),
        }
    }

    /// A matrix that is an input.
    fn matrix(&self, v: Value, turned: bool) -> Option<Matrix> {
        let input = *self.inputs.get(&v)?;
        let t = &self.cx.ins[input];
        let view = View { offset: 0, ..t.view.clone() }.reshape(&self.body.ty(v).shape)?;
        (view.shape.len() == 2).then_some(())?;
        matmul::matrix(Arg::In(input, 0), &Tensor { view, ..t.clone() }, turned)
    }

    /// A product of inputs.
    fn first(&mut self, op: &MatMul, node: &Node) -> Option<()> {
        let (a, b) = (self.matrix(node.inputs[0], op.ta)?, self.matrix(node.inputs[1], op.tb)?);
        let e = op.extents(&self.body.shape(node.inputs[0]), &self.body.shape(node.inputs[1])).ok()?;
        let bias = match node.inputs.get(2) {
            Some(v) => {
                let input = *self.inputs.get(v)?;
                let t = &self.cx.ins[input];
                (t.view.is_contiguous() && t.align >= 16).then_some(())?;
                Some((Arg::In(input, 0), t.dtype))
            }
            None => None,
        };
        (*self.extents.get_or_insert((e.m, e.n)) == (e.m, e.n)).then_some(())?;
        self.names.insert(node.outputs[0], format!("t[{}]", self.firsts.len()));
        self.firsts.push(First { a, b, k: e.k, bias });
        Some(())
    }

    /// A product that reads what is made inside.
    fn reader(&mut self, op: &MatMul, node: &Node) -> Option<()> {
        let (a, b) = (node.inputs[0], node.inputs[1]);
        if !op.ta && self.names.contains_key(&a) {
            let made = self.made(a)?;
            let b = self.matrix(b, op.tb)?;
            let n = *self.body.shape(node.outputs[0]).last()?;
            return self.last.replace((node.clone(), Last { made, b, n })).is_none().then_some(());
        }
        // Both sides are rows, which are summed over: one is made, the other is given.
        (op.ta && !op.tb && node.inputs.len() == 2).then_some(())?;
        let turned = !self.names.contains_key(&a);
        let (made, rows) = if turned { (b, a) } else { (a, b) };
        let (made, rows) = (self.made(made)?, self.matrix(rows, false)?);
        let to = self.result(node.outputs[0])?;
        self.weights.push(Weight { made, rows, turned, to });
        Some(())
    }

    /// The number of a value among what is made.
    fn made(&mut self, v: Value) -> Option<usize> {
        let name = self.names.get(&v)?.clone();
        Some(self.made.iter().position(|n| *n == name).unwrap_or_else(|| {
            self.made.push(name);
            self.made.len() - 1
        }))
    }

    /// The address of a result in f32.
    fn result(&mut self, v: Value) -> Option<Arg> {
        let i = self.body.outputs().iter().position(|(_, out)| *out == v)?;
        let out = &self.cx.outs[i];
        (out.dtype == DType::F32 && out.view.is_contiguous()).then_some(())?;
        self.results.insert(v);
        Some(Arg::Out(i, 0))
    }
}
