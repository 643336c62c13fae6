//! Pass `simplify` (exact): drops nodes that nothing needs, and makes equal ones once. What is needed: outputs, state
//! writes, and all they depend on. Equal are nodes of one part of the program with the same op, inputs and types: what the
//! backward part makes again on purpose stays (`recompute`), and so do filled tensors, which cost less to make than to keep.

use ocelli_ir::{Graph, GraphError, Node, Op, Phase, Value};
use std::collections::HashMap;

/// The graph without dead nodes and without equal ones. Inputs stay even when unused: a program's inputs are its
/// interface.
///
/// # Errors
/// Never on a graph that was built by the builder; types are inferred anew.
pub fn simplify(graph: &Graph) -> Result<Graph, GraphError> {
    let live = live(graph);
    let mut out = Graph::new();
    let mut moved = HashMap::new();
    let mut made: HashMap<Key, Vec<usize>> = HashMap::new();
    for (node, _) in graph.nodes().iter().zip(&live).filter(|(_, live)| **live) {
        let inputs: Vec<Value> = node.inputs.iter().map(|v| moved[v]).collect();
        let alike = made.entry((node.op.name(), node.phase, inputs.clone())).or_default();
        let types = |g: &Graph, n: &Node| n.outputs.iter().map(|&v| g.ty(v).clone()).collect::<Vec<_>>();
        let same = |&&n: &&usize| {
            let other = &out.nodes()[n];
            same_op(&other.op, &node.op) && types(&out, other) == types(graph, node)
        };
        let new = match alike.iter().find(same).filter(|_| may_be_shared(graph, node)) {
            Some(&n) => out.nodes()[n].outputs.clone(),
            None => {
                alike.push(out.nodes().len());
                out.take(graph, node, &inputs)?
            }
        };
        moved.extend(node.outputs.iter().copied().zip(new));
    }
    graph.outputs().iter().for_each(|(name, v)| out.output(name, moved[v]));
    Ok(out)
}

/// What equal nodes have in common, and few others: the op's name, the part of the program, the inputs.
type Key = (&'static str, Phase, Vec<Value>);

/// True for ops that do the same. Numbers are the same bit by bit: 0 and -0 are equal and not the same, and no number
/// that is none equals itself.
fn same_op(a: &Op, b: &Op) -> bool {
    match (a, b) {
        (Op::Constant(a), Op::Constant(b)) => a.value.to_bits() == b.value.to_bits() && a.ty == b.ty,
        (a, b) => a == b,
    }
}

/// The nodes that something needs.
pub(crate) fn live(graph: &Graph) -> Vec<bool> {
    let mut live = vec![false; graph.nodes().len()];
    graph.outputs().iter().for_each(|(_, v)| live[graph.values()[v.index()].node] = true);
    for (i, node) in graph.nodes().iter().enumerate().rev() {
        live[i] |= matches!(node.op, Op::StateWrite(_) | Op::Input(_));
        if live[i] {
            node.inputs.iter().for_each(|v| live[graph.values()[v.index()].node] = true);
        }
    }
    live
}

/// True for nodes without effects whose result is worth keeping.
fn may_be_shared(graph: &Graph, node: &Node) -> bool {
    match &node.op {
        Op::StateWrite(_) | Op::Input(_) => false,
        Op::Constant(_) => node.outputs.iter().all(|&v| graph.ty(v).shape.numel() == 1),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocelli_ir::dropout::Dropout;
    use ocelli_ir::ops::DropoutOp;
    use ocelli_ir::{DType, TensorType};

    fn names(g: &Graph) -> Vec<&'static str> {
        simplify(g).unwrap().nodes().iter().map(|n| n.op.name()).filter(|n| *n != "input").collect()
    }

    #[test]
    fn equal_nodes_of_one_part_are_one() {
        let mut g = Graph::new();
        let x = g.input("x", TensorType::f32([2, 3]));
        let twice = |g: &mut Graph| {
            let [a, b] = [0, 1].map(|_| g.exp(x).and_then(|y| g.sqrt(y)).unwrap());
            g.add(a, b).unwrap()
        };
        let y = twice(&mut g);
        g.begin(Phase::Backward);
        let z = twice(&mut g);
        [("y", y), ("z", z)].into_iter().for_each(|(n, v)| g.output(n, v));
        assert_eq!(names(&g), ["exp", "sqrt", "add", "exp", "sqrt", "add"]);
    }

    #[test]
    fn what_differs_in_anything_stays() {
        let mut g = Graph::new();
        let [x, y] = ["x", "y"].map(|n| g.input(n, TensorType::f32([2, 3])));
        let keys = [TensorType::u32([2]), TensorType::u32([]), TensorType::u32([2])];
        let keys: Vec<Value> =
            keys.into_iter().enumerate().map(|(i, t)| g.input(&i.to_string(), t)).collect();
        let mut drop = |site, x| {
            let op = DropoutOp { dropout: Dropout { threshold: 7, site } };
            g.one(op, &[x, keys[0], keys[1], keys[2]]).unwrap()
        };
        let dropped = [drop(1, x), drop(1, x), drop(2, x), drop(1, y)];
        dropped.into_iter().enumerate().for_each(|(i, v)| g.output(&i.to_string(), v));
        assert_eq!(names(&g), ["dropout"; 3]);
    }

    #[test]
    fn zeros_of_another_sign_stay_apart() {
        let mut g = Graph::new();
        for (i, value) in [0.0, -0.0, 0.0, -0.0].into_iter().enumerate() {
            let zero = g.constant(value, DType::F32);
            g.output(&i.to_string(), zero);
        }
        assert_eq!(names(&g), ["constant"; 2]);
    }

    #[test]
    fn numbers_are_shared_and_filled_tensors_are_not() {
        let mut g = Graph::new();
        for i in 0..2 {
            let one = g.constant(1.0, DType::F32);
            let zeros = g.zeros(TensorType::f32([4]));
            let sum = g.add(one, zeros).unwrap();
            g.output(&format!("sum {i}"), sum);
        }
        assert_eq!(names(&g), ["constant", "constant", "add", "constant", "add"]);
    }
}
