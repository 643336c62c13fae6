//! `fused` ops: one pass over memory for everything that is element by element, whatever lies between staying in
//! registers, in f32; by itself, or as the epilogue of the one product, or gradient of a norm, that it may hold. Behind those
//! there may also be sums of columns, and behind a product whose rows a tile holds whole, norms and their gradients.

mod hidden;
mod pixels;
mod rows;

use super::gemm::Product;
use super::gemm::hidden::Layer;
use super::{arithmetic, dropout, row_norm};
use crate::elements::{Access, Loop, Place, ReadName};
use crate::lower::{Arg, Lowered, Lowering, Tensor};
use hidden::Hidden;
use ocelli_ir::ops::{Fused, MatMul};
use ocelli_ir::{DType, Graph, Node, Op, Shape, Value, View};
use std::collections::HashMap;

/// One kernel for the whole body, if all of it works element by element over one space.
pub fn lower(op: &Fused, cx: &Lowering) -> Option<Lowered> {
    if let Some(done) = pixels::lower(op, cx) {
        return Some(done);
    }
    let body = &*op.body;
    let inputs = body.nodes().iter().filter(|n| matches!(n.op, Op::Input(_))).map(|n| n.outputs[0]);
    let inputs = inputs.enumerate().map(|(i, v)| (v, i)).collect();
    let hidden = Hidden::of(body, cx);
    if let Some(sums) = hidden.as_ref().filter(|h| h.last.is_none()) {
        let all = body.outputs().iter().all(|(_, v)| sums.results.contains(v));
        return if all { sums.layer.weights(cx.machine) } else { None };
    }
    let mut made = Made {
        body,
        cx,
        inputs,
        core: None,
        hidden,
        names: HashMap::new(),
        sums: Vec::new(),
        rows: Vec::new(),
        arrays: body.nodes().iter().any(|n| matches!(n.op, Op::MatMul(_)))
            && body.nodes().iter().any(rows::is_norm),
        one: Loop { name: ReadName::E, ..Loop::default() },
    };
    made.one.space = made.space()?;
    for node in body.nodes() {
        made.node(node)?;
    }
    let mut places = vec![None; made.sums.len()];
    for (i, (_, v)) in body.outputs().iter().enumerate() {
        let out = (Arg::Out(i, 0), &cx.outs[i]);
        match made.sums.iter().position(|s| s == v) {
            Some(sum) if out.1.dtype == DType::F32 && out.1.view.is_contiguous() => places[sum] = Some(out.0),
            Some(_) => return None,
            None if made.row_out(*v, out)? => {}
            None => made.write(i, *v)?,
        }
    }
    let places = places.into_iter().collect::<Option<Vec<_>>>()?;
    let machine = cx.machine;
    match made.core {
        Some(Core::Product(product)) => product.lower(made.one, &places, machine),
        Some(Core::Hidden(layer)) => layer.rows(made.one, &places, machine),
        Some(Core::Norm(inputs)) => {
            let ins: Vec<_> = inputs.iter().map(|&i| (Arg::In(i, 0), &cx.ins[i])).collect();
            row_norm::backward(&ins, &places, made.one, machine.processors)
        }
        None => Some(Lowered::kernel(made.one.kernel())),
    }
}

/// An op that is more than element by element.
enum Core {
    Product(Product),
    /// A product whose left operand is made by others.
    Hidden(Box<Layer>),
    /// The gradient of a norm: its inputs.
    Norm(Vec<usize>),
}

/// A kernel in the making.
struct Made<'a> {
    body: &'a Graph,
    cx: &'a Lowering,
    /// Numbers of the inputs.
    inputs: HashMap<Value, usize>,
    /// The op whose results the others go on from, if there is one.
    core: Option<Core>,
    /// The hidden layer, if there is one: its nodes are done with.
    hidden: Option<Hidden>,
    /// Variables that hold values.
    names: HashMap<Value, String>,
    /// Values that are sums of columns: first those of a norm's gradient that is the core.
    sums: Vec<Value>,
    /// Values of which each row has one element: a norm's mean and reciprocal deviation.
    rows: Vec<Value>,
    /// Variables are arrays of all neighbours that a thread has.
    arrays: bool,
    one: Loop,
}

impl Made<'_> {
    /// The space of all elements: that of the dropout, if there is one, else of the product or the first result.
    fn space(&self) -> Option<Vec<usize>> {
        let drops = self.body.nodes().iter().find(|n| matches!(n.op, Op::DropoutOp(_)));
        let core = |n: &&Node| matches!(n.op, Op::MatMul(_)) || rows::is_norm_gradient(n);
        let last = self.hidden.as_ref().and_then(|h| h.last.as_ref());
        let product = last.or_else(|| self.body.nodes().iter().find(core));
        match (drops, product) {
            (Some(node), _) => Some(dropout::space(&self.body.shape(node.outputs[0]))),
            (None, Some(node)) => Some(self.body.shape(node.outputs[0])),
            (None, None) => Some(self.body.shape(self.body.outputs().first()?.1)),
        }
    }

    fn numel(&self) -> usize {
        self.one.space.iter().product()
    }

    fn node(&mut self, node: &Node) -> Option<()> {
        let full = |v: &Value| self.body.ty(*v).shape.numel() == self.numel();
        if self.hidden.as_ref().is_some_and(|h| h.has(node)) {
            return Some(());
        }
        match &node.op {
            Op::Input(_) => Some(()),
            // The same elements in the same order: only the shape's name changes.
            Op::Reshape(_) => {
                let x = node.inputs[0];
                if let Some(&input) = self.inputs.get(&x) {
                    self.inputs.insert(node.outputs[0], input);
                } else {
                    let name = self.names.get(&x)?.clone();
                    self.names.insert(node.outputs[0], name);
                }
                Some(())
            }
            Op::Constant(_) => {
                let text = arithmetic::statements(&node.op, 0)?;
                self.declare(node, &text, &[])
            }
            Op::DropoutOp(op) => {
                if dropout::space(&self.body.shape(node.outputs[0])) != self.one.space {
                    return None;
                }
                let q = self.one.extra.len();
                for v in &node.inputs[1..] {
                    let input = *self.inputs.get(v)?;
                    self.one.extra.push((Arg::In(input, 0), DType::U32));
                }
                let [prologue, text] = dropout::statements(op, q);
                self.one.prologue.push_str(&prologue);
                self.one.coordinates = true;
                let x = self.read(node.inputs[0], &self.body.ty(node.outputs[0]).shape.clone())?;
                self.declare(node, &text, &[x])
            }
            Op::MatMul(op) => self.product(op, node),
            Op::LayerNorm(op) => self.norm(node, op.eps),
            Op::RmsNorm(op) => self.norm(node, op.eps),
            Op::LayerNormGrad(_) | Op::RmsNormGrad(_) => match self.core {
                Some(_) => self.norm_gradient(node),
                None => self.norm_core(node),
            },
            Op::ReduceSum(op) => self.column_sum(op, node),
            op if node.outputs.iter().all(full) => {
                let text = arithmetic::statements(op, node.inputs.len()).filter(|t| !t.contains("c_last"))?;
                let shape = self.body.ty(node.outputs[0]).shape.clone();
                let names = node.inputs.iter().map(|&v| self.read(v, &shape)).collect::<Option<Vec<_>>>()?;
                self.declare(node, &text, &names)
            }
            _ => None,
        }
    }

    fn product(&mut self, op: &MatMul, node: &Node) -> Option<()> {
        if let Some(hidden) = &self.hidden {
            hidden.last.as_ref().filter(|last| last.outputs == node.outputs)?;
            self.core = Some(Core::Hidden(Box::new(hidden.layer.clone())));
            return self.behind_product(node);
        }
        let views = [0, 1].map(|i| {
            let input = *self.inputs.get(&node.inputs[i])?;
            let view = View { offset: 0, ..self.cx.ins[input].view.clone() };
            Some((input, view.reshape(&self.body.ty(node.inputs[i]).shape)?))
        });
        let [Some((a, av)), Some((b, bv))] = views else { return None };
        let product = Product::new(op, [(a, &self.cx.ins[a], &av), (b, &self.cx.ins[b], &bv)])?;
        if product.numel() != self.numel() || self.core.replace(Core::Product(product)).is_some() {
            return None;
        }
        self.behind_product(node)
    }

    /// What a product makes, with its bias.
    fn behind_product(&mut self, node: &Node) -> Option<()> {
        let sums = self.sums();
        let shape = self.body.ty(node.outputs[0]).shape.clone();
        let mut names = vec![sums];
        if let Some(&bias) = node.inputs.get(2) {
            names.push(self.read(bias, &shape)?);
        }
        let text = if names.len() == 2 {
            "        const float y0 = x0 + x1;\n"
        } else {
            "        const float y0 = x0;\n"
        };
        self.declare(node, text, &names)
    }

    /// The variable of what a kernel hands to its epilogue.
    fn sums(&mut self) -> String {
        self.one.reads.push(Access::sums());
        format!("e{}", self.one.reads.len() - 1)
    }

    /// Statements as a block of their own, whose results become variables.
    fn declare(&mut self, node: &Node, text: &str, inputs: &[String]) -> Option<()> {
        let names: Vec<String> = node.outputs.iter().map(|v| self.variable(*v)).collect();
        self.one.body.push_str("        {\n");
        for (i, name) in inputs.iter().enumerate() {
            self.one.body.push_str(&format!("        const auto x{i} = {name};\n"));
        }
        self.one.body.push_str(text);
        for (i, name) in names.iter().enumerate() {
            self.one.body.push_str(&format!("        {name} = y{i};\n"));
        }
        self.one.body.push_str("        }\n");
        Some(())
    }

    /// Declares the variable of a value.
    fn variable(&mut self, v: Value) -> String {
        let ty = if self.body.ty(v).dtype.is_float() { "float" } else { "u32" };
        let name = self.array(ty, &format!("t{}", v.index()));
        self.names.insert(v, name.clone());
        name
    }

    /// Declares a variable, one for each neighbour, and says how it is written.
    fn array(&mut self, ty: &str, name: &str) -> String {
        if self.arrays {
            self.one.declared.push_str(&format!("    {ty} {name}[WIDTH];\n"));
            format!("{name}[v]")
        } else {
            self.one.body.push_str(&format!("        {ty} {name};\n"));
            name.into()
        }
    }

    /// The variable of a value, broadcast to `shape`, which has as many elements as the space.
    fn read(&mut self, v: Value, shape: &Shape) -> Option<String> {
        if let Some(name) = self.names.get(&v) {
            let constant = matches!(self.body.producer(v).op, Op::Constant(_));
            let scalar = self.body.ty(v).shape.numel() == 1;
            return (constant && scalar || self.body.ty(v).shape.numel() == self.numel())
                .then(|| name.clone());
        }
        let input = *self.inputs.get(&v)?;
        let t = &self.cx.ins[input];
        let view = View { offset: 0, ..t.view.clone() }.reshape(&self.body.ty(v).shape)?;
        let view = view.broadcast(shape)?.reshape(&self.one.space.clone().into())?;
        let access = Access {
            arg: Arg::In(input, 0),
            dtype: t.dtype,
            align: t.align,
            place: Place::Strides(view.strides),
        };
        let same = |a: &Access| a.arg == access.arg && a.place == access.place;
        let at = self.one.reads.iter().position(same).unwrap_or_else(|| {
            self.one.reads.push(access.clone());
            self.one.reads.len() - 1
        });
        Some(format!("e{at}"))
    }

    fn write(&mut self, i: usize, v: Value) -> Option<()> {
        let t: &Tensor = &self.cx.outs[i];
        if t.view.shape.numel() != self.numel() {
            return None;
        }
        let view = View { offset: 0, ..t.view.clone() }.reshape(&self.one.space.clone().into())?;
        let place = Place::Strides(view.strides);
        self.one.writes.push(Access { arg: Arg::Out(i, 0), dtype: t.dtype, align: t.align, place });
        let (name, at) = (self.names.get(&v)?, self.one.writes.len() - 1);
        self.one.body.push_str(&format!("        const auto y{at} = {name};\n"));
        Some(())
    }
}
