//! Pass `simplify` (exact): drops nodes that nothing needs. What is needed: outputs, state writes, and all they
//! depend on.

use ocelli_ir::{Graph, GraphError, Op};
use std::collections::HashMap;

/// The graph without dead nodes. Inputs stay even when unused: a program's inputs are its interface.
///
/// # Errors
/// Never on a graph that was built by the builder; types are inferred anew.
pub fn simplify(graph: &Graph) -> Result<Graph, GraphError> {
    let mut live = vec![false; graph.nodes().len()];
    graph.outputs().iter().for_each(|(_, v)| live[graph.values()[v.index()].node] = true);
    for (i, node) in graph.nodes().iter().enumerate().rev() {
        live[i] |= matches!(node.op, Op::StateWrite(_) | Op::Input(_));
        if live[i] {
            node.inputs.iter().for_each(|v| live[graph.values()[v.index()].node] = true);
        }
    }
    let mut out = Graph::new();
    let mut moved = HashMap::new();
    for (node, _) in graph.nodes().iter().zip(&live).filter(|(_, live)| **live) {
        let inputs: Vec<_> = node.inputs.iter().map(|v| moved[v]).collect();
        let new = out.take(graph, node, &inputs)?;
        moved.extend(node.outputs.iter().copied().zip(new));
    }
    graph.outputs().iter().for_each(|(name, v)| out.output(name, moved[v]));
    Ok(out)
}
