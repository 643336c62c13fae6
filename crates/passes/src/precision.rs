//! Pass `precision` (precision): how wide each float value is stored.
//!
//! Every op computes in f32 whatever it reads and writes, so a program in mixed precision is the same program with some
//! values stored in 16 bits: what products multiply and make, and what lies between them. Weights, moments, statistics,
//! long sums and all that an optimiser reads keep 32 bits. Casts stand only where a product reads a value that
//! has 32 bits for others. The residual stream is a policy (rule 12): PyTorch's autocast keeps it in f32.
//!
//! The values that ops only move about (views, joins, dropout) share one width with what they are made from.

use ocelli_ir::op::Storage;
use ocelli_ir::{DType, Graph, GraphError, Node, Op, Value};
use std::collections::HashMap;

/// A policy of mixed precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Precision {
    /// The 16-bit type: bf16 or f16.
    pub half: DType,
    /// Type of the residual stream: f32 or `half`.
    pub stream: DType,
}

/// The graph with each float value stored as the policy says.
///
/// # Errors
/// Never on a graph that was built by the builder in f32; types are checked anew.
pub fn precision(graph: &Graph, policy: Precision) -> Result<Graph, GraphError> {
    let widths = Widths::new(graph, policy);
    let mut out = Graph::new();
    let mut values: HashMap<Value, Value> = HashMap::new();
    let mut halves: HashMap<Value, Value> = HashMap::new();
    // Weights that products multiply get their 16 bits at the start, one behind the other: a device casts them all at once.
    for node in graph.nodes().iter().filter(|n| matches!(n.op, Op::StateRead(_))) {
        let weight = node.outputs[0];
        if widths.dtype(graph, weight) == DType::F32 && is_operand(graph, weight) {
            let read = out.take(graph, node, &[])?[0];
            values.insert(weight, read);
        }
    }
    for read in values.values().copied().collect::<std::collections::BTreeSet<_>>() {
        let node = out.producer(read).clone();
        halves.insert(read, out.like(&node, |g| g.cast(read, policy.half))?);
    }
    for node in graph.nodes() {
        if node.outputs.first().is_some_and(|v| values.contains_key(v)) {
            continue;
        }
        let mut inputs: Vec<Value> = node.inputs.iter().map(|v| values[v]).collect();
        for &i in node.op.operands() {
            let value = inputs[i];
            inputs[i] = match halves.get(&value) {
                Some(&half) => half,
                None => out.like(node, |g| g.cast(value, policy.half))?,
            };
            halves.insert(value, inputs[i]);
        }
        let types = (node.outputs.iter())
            .map(|&v| {
                let mut ty = graph.ty(v).clone();
                ty.dtype = widths.dtype(graph, v);
                ty
            })
            .collect();
        let new = out.like(node, |g| g.typed(node.op.clone(), &inputs, types))?;
        values.extend(node.outputs.iter().copied().zip(new));
    }
    graph.outputs().iter().for_each(|(name, v)| out.output(name, values[v]));
    Ok(out)
}

/// True if a product multiplies this value.
fn is_operand(graph: &Graph, v: Value) -> bool {
    graph.nodes().iter().any(|n| n.op.operands().iter().any(|&i| n.inputs[i] == v))
}

/// What is known of values that share one width.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    /// Someone needs 32 bits, or it has them and is not ours to change.
    wide: bool,
    /// An optimiser reads it: sums that lead to it keep their digits.
    kept: bool,
    /// It belongs to the residual stream.
    stream: bool,
    /// Something else than a product reads it.
    read: bool,
}

struct Widths {
    /// For each value, another of its class, or itself.
    parent: Vec<usize>,
    classes: Vec<Class>,
    policy: Precision,
}

impl Widths {
    fn new(graph: &Graph, policy: Precision) -> Self {
        let n = graph.values().len();
        let mut widths = Self { parent: (0..n).collect(), classes: vec![Class::default(); n], policy };
        for node in graph.nodes().iter().filter(|n| moves(&n.op)) {
            let floats: Vec<Value> = floats(graph, node).collect();
            floats.windows(2).for_each(|pair| widths.join(pair[0], pair[1]));
        }
        graph.nodes().iter().for_each(|node| widths.made(graph, node));
        // Readers come later than what they read: backwards, each class is known before what it is summed from.
        graph.outputs().iter().for_each(|(_, v)| widths.class(*v).wide = true);
        graph.nodes().iter().rev().for_each(|node| widths.read(graph, node));
        widths
    }

    fn root(&self, v: Value) -> usize {
        let mut at = v.index();
        while self.parent[at] != at {
            at = self.parent[at];
        }
        at
    }

    fn join(&mut self, a: Value, b: Value) {
        let (a, b) = (self.root(a), self.root(b));
        // The older value: chains stay short.
        self.parent[a.max(b)] = a.min(b);
    }

    fn class(&mut self, v: Value) -> &mut Class {
        let root = self.root(v);
        &mut self.classes[root]
    }

    /// What the op that makes values says of them.
    fn made(&mut self, graph: &Graph, node: &Node) {
        for (i, &v) in node.outputs.iter().enumerate() {
            let class = self.class(v);
            match node.op.storage(i) {
                Storage::Wide => class.wide = true,
                Storage::Stream => class.stream = true,
                Storage::Half | Storage::Moves => {}
            }
            // A single number costs nothing: norms, rates, scales.
            class.wide |= graph.ty(v).shape.numel() == 1;
        }
    }

    /// What the op that reads values needs of them.
    fn read(&mut self, graph: &Graph, node: &Node) {
        let sum = matches!(node.op, Op::Add(_) | Op::Sub(_)) && self.class(node.outputs[0]).kept;
        for (i, &v) in node.inputs.iter().enumerate().filter(|(_, v)| graph.ty(**v).dtype.is_float()) {
            let class = self.class(v);
            if sum || !(moves(&node.op) || node.op.reads_half()) {
                (class.wide, class.kept) = (true, true);
            }
            class.read |= !moves(&node.op) && !node.op.operands().contains(&i);
        }
    }

    fn dtype(&self, graph: &Graph, v: Value) -> DType {
        let have = graph.ty(v).dtype;
        let class = self.classes[self.root(v)];
        match class {
            _ if have != DType::F32 || class.wide => have,
            Class { stream: true, read: true, .. } => self.policy.stream,
            _ => self.policy.half,
        }
    }
}

fn moves(op: &Op) -> bool {
    op.storage(0) == Storage::Moves
}

/// The float values that a node reads and makes.
fn floats<'a>(graph: &'a Graph, node: &'a Node) -> impl Iterator<Item = Value> + 'a {
    node.inputs.iter().chain(&node.outputs).copied().filter(|&v| graph.ty(v).dtype.is_float())
}
