//! The small graph that the ops of a unit are together.

use super::groups::Groups;
use ocelli_ir::{Graph, GraphError, Op, Value};
use std::collections::HashMap;

/// A unit as a graph of its own.
pub(super) struct Body {
    /// Inputs first, then the ops in the program's order, without module or part: equal bodies are equal.
    pub(super) graph: Graph,
    /// The values of the program that are its inputs.
    pub(super) inputs: Vec<Value>,
    /// The values of the program that are its outputs: what others read, or look at.
    pub(super) outputs: Vec<Value>,
}

/// The body of some nodes, given in their order.
///
/// # Errors
/// Never on a graph that was built by the builder; types are checked anew.
pub(super) fn of(groups: &Groups<'_>, members: &[usize]) -> Result<Body, GraphError> {
    let from = groups.graph;
    let mut inputs = Vec::new();
    for &v in members.iter().flat_map(|&m| &from.nodes()[m].inputs) {
        if !comes_along(groups, members, v) && !inputs.contains(&v) {
            inputs.push(v);
        }
    }
    let mut new = Copy { from, graph: Graph::new(), values: HashMap::new() };
    for (i, &v) in inputs.iter().enumerate() {
        let input = new.graph.input(&i.to_string(), from.ty(v).clone());
        new.values.insert(v, input);
    }
    let mut outputs = Vec::new();
    for &m in members {
        new.node(m)?;
        outputs.extend(from.nodes()[m].outputs.iter().filter(|v| groups.read_outside(**v, members)));
    }
    for (i, v) in outputs.iter().enumerate() {
        new.graph.output(&i.to_string(), new.values[v]);
    }
    Ok(Body { graph: new.graph, inputs, outputs })
}

/// True if a value is made inside: by one of the nodes or of nothing, perhaps seen in another way.
fn comes_along(groups: &Groups<'_>, members: &[usize], v: Value) -> bool {
    let node = groups.graph.values()[groups.root(v).index()].node;
    matches!(groups.graph.nodes()[node].op, Op::Constant(_)) || members.binary_search(&node).is_ok()
}

struct Copy<'a> {
    from: &'a Graph,
    graph: Graph,
    values: HashMap<Value, Value>,
}

impl Copy<'_> {
    fn node(&mut self, node: usize) -> Result<(), GraphError> {
        let node = &self.from.nodes()[node];
        for &v in &node.inputs {
            // A view of what is inside, or a constant.
            if !self.values.contains_key(&v) {
                self.node(self.from.values()[v.index()].node)?;
            }
        }
        let inputs: Vec<Value> = node.inputs.iter().map(|v| self.values[v]).collect();
        let types = node.outputs.iter().map(|&v| self.from.ty(v).clone()).collect();
        let new = self.graph.typed(node.op.clone(), &inputs, types)?;
        self.values.extend(node.outputs.iter().copied().zip(new));
        Ok(())
    }
}
