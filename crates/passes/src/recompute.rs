//! Pass `recompute` (exact): what is cheap is computed again in the backward part instead of kept.
//!
//! Between the forward and the backward part of a step lie the activations, most of its memory. Norms, activation
//! functions, dropout and the like cost next to nothing to make from what is kept anyway: the backward part makes
//! its own, right where it needs them. Products and the residual stream are kept: making those again would cost a second
//! forward part (Chen et al. 2016, "Training deep nets with sublinear memory cost"; selective as in Korthikanti et al.
//! 2022). Dropout decides by coordinates, so it decides the same again.

use ocelli_ir::op::Storage;
use ocelli_ir::{Graph, GraphError, Node, Op, Phase, Value};
use std::collections::HashMap;

/// The graph whose backward part computes cheap activations again.
///
/// # Errors
/// Never on a graph that was built by the builder; types are checked anew.
pub fn recompute(graph: &Graph) -> Result<Graph, GraphError> {
    Ok(made_again(graph, &again(graph), |_, node| node.phase == Phase::Backward)?.graph)
}

/// Values of the new graph by those of the old.
type Values = HashMap<Value, Value>;

/// A graph of which a part computes values again.
pub(crate) struct Again {
    /// The graph.
    pub(crate) graph: Graph,
    /// Its values by those of the graph it was made from.
    pub(crate) first: Values,
    /// Those that are made again, likewise.
    pub(crate) second: Values,
}

/// The graph in which some nodes of the backward part, which `reads` knows by number, read their own of those values that
/// `again` says, by index: made again, once, where they first need them.
///
/// # Errors
/// Never on a graph that was built by the builder; types are checked anew.
pub(crate) fn made_again(
    graph: &Graph,
    again: &[bool],
    reads: impl Fn(usize, &Node) -> bool,
) -> Result<Again, GraphError> {
    let (mut out, mut first, mut second) = (Graph::new(), HashMap::new(), HashMap::new());
    for (i, node) in graph.nodes().iter().enumerate() {
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for &v in &node.inputs {
            let repeats = again[v.index()] && reads(i, node);
            inputs.push(if repeats {
                repeat(graph, again, v, &mut out, &first, &mut second)?
            } else {
                first[&v]
            });
        }
        let new = out.take(graph, node, &inputs)?;
        first.extend(node.outputs.iter().copied().zip(new));
    }
    graph.outputs().iter().for_each(|(name, v)| out.output(name, first[v]));
    Ok(Again { graph: out, first, second })
}

/// A value, computed again in the backward part, once.
fn repeat(
    graph: &Graph,
    again: &[bool],
    v: Value,
    out: &mut Graph,
    first: &Values,
    second: &mut Values,
) -> Result<Value, GraphError> {
    if let Some(&made) = second.get(&v) {
        return Ok(made);
    }
    let node = Node { phase: Phase::Backward, ..graph.producer(v).clone() };
    let mut inputs = Vec::with_capacity(node.inputs.len());
    for &input in &node.inputs {
        inputs.push(match again[input.index()] {
            true => repeat(graph, again, input, out, first, second)?,
            false => first[&input],
        });
    }
    let new = out.take(graph, &node, &inputs)?;
    second.extend(node.outputs.iter().copied().zip(new));
    Ok(second[&v])
}

/// For each value: whether the backward part makes it again.
fn again(graph: &Graph) -> Vec<bool> {
    // What the backward part reads is there, looked at in whatever way.
    let mut there = vec![false; graph.values().len()];
    for node in graph.nodes().iter().filter(|n| n.phase == Phase::Backward) {
        node.inputs.iter().for_each(|&v| there[graph.root(v).index()] = true);
    }
    let mut again = vec![false; graph.values().len()];
    for node in graph.nodes().iter().filter(|n| n.phase == Phase::Forward) {
        let can = |v: &Value| {
            let root = graph.root(*v);
            again[v.index()] || there[root.index()] || is_source(&graph.producer(root).op)
        };
        let view = graph.is_view(node);
        // A view is made again to look at what is made again.
        let makes = if view {
            again[node.inputs[0].index()]
        } else {
            is_cheap(&node.op) && node.inputs.iter().all(can)
        };
        node.outputs.iter().for_each(|v| again[v.index()] = makes);
    }
    again
}

/// Costs little for each element: no product, and no part of the residual stream.
fn is_cheap(op: &Op) -> bool {
    let makes = matches!(op.storage(0), Storage::Half | Storage::Stream);
    let kept = matches!(op, Op::Add(_) | Op::Sub(_) | Op::GatherRows(_)) || !op.operands().is_empty();
    matches!(op, Op::DropoutOp(_) | Op::DropoutWeights(_)) || (makes && !kept)
}

fn is_source(op: &Op) -> bool {
    matches!(op, Op::Input(_) | Op::StateRead(_) | Op::Constant(_))
}
