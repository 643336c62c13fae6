//! Hidden layers: products that read what other products make, changed element by element on the way, with everything
//! that reads such values. A device may have one kernel for a layer as a whole, in which what lies between, often the widest
//! values of a model, is never in memory.
//!
//! Such units cannot grow op by op: there is a kernel for the whole, not for each part. So they come first, as
//! candidates, and the target decides. A layer whose values the backward part reads too is made again there, from what the
//! first product reads: once for what goes back from row to row, and once for the sums over rows, which only the optimiser
//! waits for. Short products cost less than memory written and read. Either there are kernels for all parts, or nothing is done.

use super::groups::Groups;
use crate::recompute::{Again, made_again};
use ocelli_ir::executor::Target;
use ocelli_ir::{Graph, GraphError, Node, Op, Phase, Value};
use std::collections::{HashMap, HashSet};

/// A candidate.
struct Layer {
    /// The nodes that make the values between, first products included.
    makers: Vec<usize>,
    /// Makers and the nodes that read what they make, in the program's order.
    members: Vec<usize>,
    /// Another part of the program reads some of the values between.
    read_again: bool,
}

impl Layer {
    /// The value that its first product makes.
    fn first(&self, graph: &Graph) -> Value {
        graph.nodes()[self.makers[0]].outputs[0]
    }
}

/// The graph in which the backward part makes its own of each layer for whose parts the target then has kernels.
///
/// # Errors
/// Never on a graph that was built by the builder; types are checked anew.
pub(super) fn again(graph: &Graph, target: &dyn Target) -> Result<Graph, GraphError> {
    let groups = Groups::new(graph);
    let layers = read_again(&groups);
    if layers.is_empty() {
        return Ok(graph.clone());
    }
    let before = graph;
    let graph = &operands_once(&groups, &layers)?;
    let groups = Groups::new(graph);
    let mut layers = read_again(&groups);
    while !layers.is_empty() {
        let parts = Parts::new(&groups, &layers)?;
        let copies = Groups::new(&parts.sums.graph);
        let mut good = Vec::new();
        for layer in &layers {
            good.push(parts.have_kernels(layer.first(graph), &copies, target)?);
        }
        if good.iter().all(|&g| g) {
            return Ok(parts.sums.graph);
        }
        let mut good = good.into_iter();
        layers.retain(|_| good.next() == Some(true));
    }
    Ok(before.clone())
}

/// The layers of the forward part that another part reads too.
fn read_again(groups: &Groups<'_>) -> Vec<Layer> {
    let forward = starts(groups.graph).filter(|&n| groups.graph.nodes()[n].phase == Phase::Forward);
    forward.filter_map(|n| layer(groups, n)).filter(|l| l.read_again).collect()
}

/// The graph in which the backward part reads what the layers' first products read as the forward part made it, where it had made
/// its own of that (`recompute`): a layer that is made again needs it long before, and is many times as large.
fn operands_once(groups: &Groups<'_>, layers: &[Layer]) -> Result<Graph, GraphError> {
    let graph = groups.graph;
    let products =
        layers.iter().flat_map(|l| &l.makers).map(|&n| &graph.nodes()[n]).filter(|n| widens(graph, n));
    let operands: HashSet<usize> = products
        .map(|n| graph.values()[groups.root(n.inputs[0]).index()].node)
        .filter(|&n| graph.nodes()[n].phase == Phase::Forward)
        .collect();
    let twin = |node: &Node| {
        let same = |&&n: &&usize| {
            let other = &graph.nodes()[n];
            node.phase == Phase::Backward && other.op == node.op && other.inputs == node.inputs
        };
        operands.iter().find(same).map(|&n| &graph.nodes()[n].outputs)
    };
    let (mut out, mut values) = (Graph::new(), HashMap::new());
    // Ways to look at the operands, each once.
    let mut views: Vec<(&Node, Vec<Value>)> = Vec::new();
    for node in graph.nodes() {
        let inputs: Vec<Value> = node.inputs.iter().map(|v| values[v]).collect();
        let seen = |(n, of): &&(&Node, Vec<Value>)| n.op == node.op && *of == inputs;
        let new: Vec<Value> = match (twin(node), views.iter().find(seen)) {
            (Some(made), _) => made.iter().map(|v| values[v]).collect(),
            (None, Some((same, _))) => same.outputs.iter().map(|v| values[v]).collect(),
            (None, None) => out.take(graph, node, &inputs)?,
        };
        let of_operand = || operands.contains(&graph.values()[groups.root(node.outputs[0]).index()].node);
        if graph.is_view(node) && of_operand() {
            views.push((node, inputs));
        }
        values.extend(node.outputs.iter().copied().zip(new));
    }
    graph.outputs().iter().for_each(|(name, v)| out.output(name, values[v]));
    Ok(out)
}

/// A graph with copies of layers, in two steps.
struct Parts {
    /// The backward part has its own values between.
    backward: Again,
    /// Of these, sums over rows have theirs.
    sums: Again,
}

impl Parts {
    fn new(groups: &Groups<'_>, layers: &[Layer]) -> Result<Self, GraphError> {
        let backward = made_again(groups.graph, &between(groups, layers), |_, n| n.phase == Phase::Backward)?;
        let graph = &backward.graph;
        let copies = Groups::new(graph);
        let start =
            |l: &Layer| backward.second.get(&l.first(groups.graph)).map(|v| graph.values()[v.index()].node);
        let again: Vec<Layer> = layers.iter().filter_map(start).filter_map(|n| layer(&copies, n)).collect();
        let sums: HashSet<usize> = again
            .iter()
            .flat_map(|l| &l.members)
            .copied()
            .filter(|&m| sums_rows(&graph.nodes()[m].op))
            .collect();
        let sums = made_again(graph, &between(&copies, &again), |i, _| sums.contains(&i))?;
        Ok(Self { backward, sums })
    }

    /// True if the target has kernels for all parts of the layer with this first value.
    fn have_kernels(
        &self,
        first: Value,
        groups: &Groups<'_>,
        target: &dyn Target,
    ) -> Result<bool, GraphError> {
        let forward = self.backward.first.get(&first).and_then(|v| self.sums.first.get(v));
        let backward = self.backward.second.get(&first);
        let rows = backward.and_then(|v| self.sums.first.get(v));
        // Frozen weights have no sums.
        let sums = backward.and_then(|v| self.sums.second.get(v));
        for (value, needed) in [(forward, true), (rows, true), (sums, false)] {
            let start = value.map(|v| groups.graph.values()[v.index()].node);
            let part = start.and_then(|n| layer(groups, n)).filter(|l| !l.read_again);
            let kernel = match part {
                Some(part) => groups.has_kernel(&part.members, target)?,
                None => !needed && value.is_none(),
            };
            if !kernel {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// True for ops that sum over rows: gradients of weights and biases.
fn sums_rows(op: &Op) -> bool {
    match op {
        Op::MatMul(op) => op.ta,
        op => matches!(op, Op::ReduceSum(_)),
    }
}

/// Joins each layer that the target has a kernel for; true if there is one.
///
/// # Errors
/// Never on a graph that was built by the builder; types are checked anew.
pub(super) fn join(groups: &mut Groups<'_>, target: &dyn Target) -> Result<bool, GraphError> {
    let mut taken = vec![false; groups.graph.nodes().len()];
    let mut joined = false;
    for start in starts(groups.graph) {
        let Some(layer) = layer(groups, start).filter(|l| !l.read_again) else { continue };
        let free = layer.members.iter().all(|&m| !taken[m]);
        if free && groups.has_kernel(&layer.members, target)? && groups.join_all(&layer.members) {
            layer.members.iter().for_each(|&m| taken[m] = true);
            joined = true;
        }
    }
    Ok(joined)
}

/// For each value of a graph: whether it lies between, in one of the layers; a view of one does too.
fn between(groups: &Groups<'_>, layers: &[Layer]) -> Vec<bool> {
    let graph = groups.graph;
    let mut inside = vec![false; graph.values().len()];
    let makers = layers.iter().flat_map(|l| &l.makers).map(|&n| &graph.nodes()[n]);
    makers.flat_map(|n| &n.outputs).for_each(|v| inside[v.index()] = true);
    (0..inside.len()).map(|i| inside[groups.roots()[i].index()]).collect()
}

/// The products whose results are larger than what they are made of, row by row.
fn starts(graph: &Graph) -> impl Iterator<Item = usize> {
    graph.nodes().iter().enumerate().filter(|(_, n)| widens(graph, n)).map(|(i, _)| i)
}

fn widens(graph: &Graph, node: &Node) -> bool {
    let numel = |v: Value| graph.ty(v).shape.numel();
    matches!(&node.op, Op::MatMul(op) if !op.ta) && numel(node.outputs[0]) > numel(node.inputs[0])
}

/// The layer that a product starts; none if something reads its values that cannot belong to one.
fn layer(groups: &Groups<'_>, start: usize) -> Option<Layer> {
    let graph = groups.graph;
    let nodes = graph.nodes();
    let numel = |v: Value| graph.ty(v).shape.numel();
    let (phase, size) = (nodes[start].phase, numel(nodes[start].outputs[0]));
    let (mut makers, mut readers, mut read_again) = (vec![start], Vec::new(), false);
    let mut next = 0;
    while let Some(&maker) = makers.get(next) {
        next += 1;
        for v in &nodes[maker].outputs {
            if groups.given_out[v.index()] || numel(*v) != size {
                return None;
            }
            for &r in &groups.readers[v.index()] {
                let reader = &nodes[r];
                read_again |= reader.phase != phase;
                if reader.phase != phase || makers.contains(&r) || readers.contains(&r) {
                    continue;
                }
                if matches!(reader.op, Op::MatMul(_) | Op::ReduceSum(_)) {
                    readers.push(r);
                    continue;
                }
                makers.push(r);
                // What else it reads must be made by a product of the layer, too.
                for &other in &reader.inputs {
                    let by = graph.values()[groups.root(other).index()].node;
                    if !makers.contains(&by) {
                        (nodes[by].phase == phase && widens(graph, &nodes[by])).then_some(())?;
                        makers.push(by);
                    }
                }
            }
        }
    }
    let ends = readers.iter().any(|&r| matches!(nodes[r].op, Op::MatMul(_)));
    makers.sort_unstable();
    let mut members = [&makers[..], &readers].concat();
    members.sort_unstable();
    ends.then_some(Layer { makers, members, read_again })
}
