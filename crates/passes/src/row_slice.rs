//! Pass `row_slice` (reassociating): rows that no one reads are not computed.
//!
//! Where a `slice` is all that reads a value, the slice moves in front of the op that makes it, as far as ops go whose
//! rows do not mix: element-wise ops, norms, linear layers, the queries of an attention. What lies behind a
//! differentiated program's slice gets shorter gradients of itself. A captioner that reads its vision tower at one
//! position is the case in mind; nothing here knows of it.

use crate::simplify::simplify;
use ocelli_ir::ops::Reshape;
use ocelli_ir::{Cut, Graph, GraphError, Node, Op, TensorType, Value};
use std::collections::HashMap;

/// The graph with slices moved towards its inputs.
///
/// # Errors
/// Never on a graph that was built by the builder; types are inferred anew.
pub fn row_slice(graph: &Graph) -> Result<Graph, GraphError> {
    // A reader that nothing needs would ask for all rows.
    let graph = simplify(graph)?;
    let needs = needs(&graph);
    if needs.iter().all(|n| !matches!(n, Need::Part(_))) {
        return Ok(graph);
    }
    let mut moved = Moved {
        from: &graph,
        needs: &needs,
        out: Graph::new(),
        values: HashMap::new(),
        parts: HashMap::new(),
    };
    graph.nodes().iter().try_for_each(|node| moved.node(node))?;
    for (name, v) in graph.outputs() {
        let value = moved.values[v];
        moved.out.output(name, value);
    }
    Ok(moved.out)
}

/// What of a value is read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Need {
    Nothing,
    Part(Cut),
    All,
}

impl Need {
    fn join(&mut self, other: Self) {
        *self = match (*self, other) {
            (Self::Nothing, x) | (x, Self::Nothing) => x,
            (a, b) if a == b => a,
            _ => Self::All,
        };
    }
}

/// What is read of each value, by index.
fn needs(graph: &Graph) -> Vec<Need> {
    let mut needs = vec![Need::Nothing; graph.values().len()];
    graph.outputs().iter().for_each(|(_, v)| needs[v.index()] = Need::All);
    for node in graph.nodes().iter().rev() {
        let parts = parts(graph, node, &needs);
        if parts.is_none() {
            // A part that the op cannot be told to make is made by making all.
            for v in &node.outputs {
                if needs[v.index()] != Need::Nothing {
                    needs[v.index()] = Need::All;
                }
            }
        }
        for (i, v) in node.inputs.iter().enumerate() {
            let part = parts.as_ref().and_then(|p| p[i]);
            needs[v.index()].join(part.map_or(Need::All, Need::Part));
        }
    }
    needs
}

/// The part of each input that a node reads; none if it reads all of every input.
fn parts(graph: &Graph, node: &Node, needs: &[Need]) -> Option<Vec<Option<Cut>>> {
    let shape = |v: Value| &graph.ty(v).shape;
    if let Op::Slice(slice) = &node.op {
        let (cut, from) = (Cut::of(slice, shape(node.inputs[0])), shape(node.inputs[0]));
        let makes_less = cut.kept < cut.len && needs[node.outputs[0].index()] == Need::All;
        // A view of what is there anyway gains nothing.
        let moves = makes_less && cut.narrowed(from).as_ref() == Some(shape(node.outputs[0]));
        return moves.then(|| vec![Some(cut)]);
    }
    let (first, others) = node.outputs.split_first()?;
    let Need::Part(cut) = needs[first.index()] else { return None };
    if others.iter().any(|v| needs[v.index()] != Need::Nothing) {
        return None;
    }
    let inputs: Vec<&TensorType> = node.inputs.iter().map(|&v| graph.ty(v)).collect();
    let parts = node.op.narrow(&cut, &inputs, graph.ty(*first))?;
    // Every part must have a shape to be made in.
    let made =
        parts.iter().zip(&node.inputs).all(|(part, &v)| part.is_none_or(|c| c.narrowed(shape(v)).is_some()));
    (made && cut.narrowed(shape(*first)).is_some()).then_some(parts)
}

struct Moved<'a> {
    from: &'a Graph,
    needs: &'a [Need],
    out: Graph,
    /// The new value of each old one: its needed part where only a part is needed.
    values: HashMap<Value, Value>,
    /// Parts taken of values that are made whole.
    parts: HashMap<(Value, Cut), Value>,
}

impl Moved<'_> {
    fn node(&mut self, node: &Node) -> Result<(), GraphError> {
        let parts = parts(self.from, node, self.needs);
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for (i, &v) in node.inputs.iter().enumerate() {
            inputs.push(match parts.as_ref().and_then(|p| p[i]) {
                Some(cut) => self.part(node, v, cut)?,
                None => self.values[&v],
            });
        }
        let narrowed = node.outputs.first().and_then(|v| match self.needs[v.index()] {
            Need::Part(cut) => cut.narrowed(&self.from.ty(*v).shape),
            _ => None,
        });
        let new = match (&node.op, narrowed) {
            // Its input is the part already.
            (Op::Slice(_), None) if parts.is_some() => inputs,
            (Op::Reshape(_), Some(shape)) => self.add(node, Reshape { shape }.into(), &inputs)?,
            (op, _) => self.add(node, op.clone(), &inputs)?,
        };
        self.values.extend(node.outputs.iter().copied().zip(new));
        Ok(())
    }

    fn add(&mut self, node: &Node, op: Op, inputs: &[Value]) -> Result<Vec<Value>, GraphError> {
        self.out.like(node, |g| g.many(op, inputs))
    }

    /// A part of an old value, in the shape that is left of the value's.
    fn part(&mut self, node: &Node, v: Value, cut: Cut) -> Result<Value, GraphError> {
        let whole = self.values[&v];
        if self.needs[v.index()] == Need::Part(cut) {
            return Ok(whole);
        }
        if let Some(&part) = self.parts.get(&(v, cut)) {
            return Ok(part);
        }
        let shape = &self.from.ty(v).shape;
        let part = self.out.like(node, |g| match cut.axis(shape) {
            Some(axis) => g.slice(whole, axis, cut.start, cut.kept),
            None => {
                let rows = g.reshape(whole, [cut.outer, cut.len, cut.inner])?;
                let rows = g.slice(rows, 1, cut.start, cut.kept)?;
                g.reshape(rows, cut.narrowed(shape).unwrap_or_default())
            }
        })?;
        self.parts.insert((v, cut), part);
        Ok(part)
    }
}
