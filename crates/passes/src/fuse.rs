//! Pass `fuse` (reassociating): ops that follow each other become one op, where the device has a kernel for it.
//!
//! It joins an op with one that makes what it reads, and the two with a third, as long as the target says that it has a
//! kernel for what they are together ([`Fused`] holds that as a small graph). Only one pattern is looked for, before that:
//! layers with products at both ends (`hidden`). The new graph means the same as the old one to the bit; a kernel may keep in 32 bits what lies between, or add in another order.
//!
//! Ops of one unit belong to one part of the program. Views are looked through: one that lies between two ops of a unit
//! comes along into its body, and so does a constant; who else looks at the result in another way does so outside.
//! Ops that work in place stay alone, for a fused op has no such pairs. Of what ran between the
//! two ops of a unit, what needs the first runs after the unit and the rest before it, so that nothing is read before it is
//! made; what would have to live longer for that is weighed in `groups`.

mod body;
mod groups;
mod hidden;

use groups::Groups;
use ocelli_ir::executor::Target;
use ocelli_ir::ops::Fused;
use ocelli_ir::{Graph, GraphError, Node, Op, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// The graph with the ops joined that the target has kernels for.
///
/// # Errors
/// Never on a graph that was built by the builder; types are checked anew.
pub fn fuse(graph: &Graph, target: &dyn Target) -> Result<Graph, GraphError> {
    let graph = &hidden::again(graph, target)?;
    let mut groups = Groups::new(graph);
    let mut joined = hidden::join(&mut groups, target)?;
    for node in 0..graph.nodes().len() {
        while groups.grow(node, target)? {
            joined = true;
        }
    }
    if !joined {
        return Ok(graph.clone());
    }
    let mut new = Builder { from: graph, out: Graph::new(), values: HashMap::new() };
    // The program's interface, in its order.
    for node in graph.nodes().iter().filter(|n| matches!(n.op, Op::Input(_))) {
        new.take(node)?;
    }
    for members in groups.units() {
        match members {
            [node] => new.take(&graph.nodes()[*node])?,
            members => new.fused(&groups, members)?,
        }
    }
    for (name, v) in graph.outputs() {
        let value = new.value(*v)?;
        new.out.output(name, value);
    }
    Ok(new.out)
}

/// The new graph under construction.
struct Builder<'a> {
    from: &'a Graph,
    out: Graph,
    /// New values by old ones.
    values: HashMap<Value, Value>,
}

impl Builder<'_> {
    /// The new value of an old one; views and sources are made where they are first read.
    fn value(&mut self, v: Value) -> Result<Value, GraphError> {
        if !self.values.contains_key(&v) {
            let from = self.from;
            self.take(from.producer(v))?;
        }
        Ok(self.values[&v])
    }

    fn all(&mut self, values: &[Value]) -> Result<Vec<Value>, GraphError> {
        values.iter().map(|&v| self.value(v)).collect()
    }

    /// A node as it was.
    fn take(&mut self, node: &Node) -> Result<(), GraphError> {
        let inputs = self.all(&node.inputs)?;
        let new = self.out.take(self.from, node, &inputs)?;
        self.values.extend(node.outputs.iter().copied().zip(new));
        Ok(())
    }

    /// Several nodes as one.
    fn fused(&mut self, groups: &Groups<'_>, members: &[usize]) -> Result<(), GraphError> {
        let body = body::of(groups, members)?;
        let inputs = self.all(&body.inputs)?;
        let nodes: Vec<&Node> = members.iter().map(|&m| &self.from.nodes()[m]).collect();
        let like = Node { scope: common(&nodes), ..nodes[0].clone() };
        let op = Fused::new(body.graph);
        let new = self.out.like(&like, |g| g.many(op, &inputs))?;
        self.values.extend(body.outputs.into_iter().zip(new));
        Ok(())
    }
}

/// The innermost module that holds all nodes.
fn common(nodes: &[&Node]) -> Arc<str> {
    let mut path: Vec<&str> = nodes[0].scope.split('.').collect();
    for node in nodes {
        let same = path.iter().zip(node.scope.split('.')).take_while(|(a, b)| **a == *b).count();
        path.truncate(same);
    }
    path.join(".").into()
}
