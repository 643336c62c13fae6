//! Reverse-mode differentiation: appends to a graph the nodes that compute gradients.
//!
//! The graph is walked backwards once; each node on a way from a wanted value to the loss adds its
//! vector-Jacobian product, under the module path of the node. Where several gradients meet they are added in
//! the order of the walk, so the result is the same on every run.

use ocelli_ir::op::Vjp;
use ocelli_ir::{Graph, GraphError, Op, Phase, Value};

/// The gradients of the scalar `loss` with respect to each of `wanted`, times `seed` (a scalar of the loss's
/// dtype: 1, or the loss scale).
///
/// # Errors
/// If a wanted value is not reached by the loss: it would be trained as if frozen, in silence. The error names
/// its state slot or input. If an op on the way has no gradient.
pub fn gradients(
    g: &mut Graph,
    loss: Value,
    seed: Value,
    wanted: &[Wanted<'_>],
) -> Result<Vec<Value>, GraphError> {
    let relevant = reached_from(g, wanted);
    let mut grads: Vec<Option<Value>> = vec![None; g.values().len()];
    grads[loss.index()] = Some(seed);
    let before = g.begin(Phase::Backward);
    for index in (0..g.nodes().len()).rev() {
        let node = g.nodes()[index].clone();
        let out_grads: Vec<Option<Value>> = node.outputs.iter().map(|v| grads[v.index()]).collect();
        let on_the_way = node.inputs.iter().any(|v| relevant[v.index()]);
        if !on_the_way || out_grads.iter().all(Option::is_none) {
            continue;
        }
        let in_grads = g.at_path(&node.scope, |g| {
            let (inputs, outputs) = (&node.inputs, &node.outputs);
            node.op.vjp(&mut Vjp { g, inputs, outputs, grads: &out_grads, op: node.op.name() })
        })?;
        for (&input, grad) in node.inputs.iter().zip(in_grads) {
            if !relevant[input.index()] {
                continue;
            }
            let new = grad
                .ok_or_else(|| g.error(node.op.name(), "it gives no gradient to an input that is trained"))?;
            let slot = &mut grads[input.index()];
            *slot = Some(match *slot {
                Some(old) => g.at_path(&node.scope, |g| g.add(old, new))?,
                None => new,
            });
        }
    }
    g.begin(before);
    wanted.iter().map(|w| grads[w.value.index()].ok_or_else(|| unreached(g, w))).collect()
}

/// A value whose gradient is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The value, usually a `state_read`.
    pub value: Value,
    /// Its name, for errors.
    pub name: &'a str,
}

/// For each value: whether it depends on one of the wanted ones (or is one).
fn reached_from(g: &Graph, wanted: &[Wanted<'_>]) -> Vec<bool> {
    let mut relevant = vec![false; g.values().len()];
    wanted.iter().for_each(|w| relevant[w.value.index()] = true);
    for node in g.nodes() {
        if node.inputs.iter().any(|v| relevant[v.index()]) {
            node.outputs.iter().for_each(|v| relevant[v.index()] = true);
        }
    }
    relevant
}

fn unreached(g: &Graph, w: &Wanted<'_>) -> GraphError {
    let scope = match &g.producer(w.value).op {
        Op::StateRead(_) => "parameter",
        _ => "value",
    };
    g.error(
        "autodiff",
        format!("the loss does not depend on {scope} '{}': it would never be trained", w.name),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocelli_ir::{DType, TensorType};

    #[test]
    fn a_parameter_that_the_loss_does_not_reach_is_named() {
        let mut g = Graph::new();
        let used = g.input("used", TensorType::f32([2]));
        let lost = g.input("head.weight", TensorType::f32([2]));
        let _dead_end = g.mul(used, lost).unwrap();
        let loss = g.sum_all(used).unwrap();
        let one = g.constant(1.0, DType::F32);
        let wanted = [Wanted { value: used, name: "used" }, Wanted { value: lost, name: "head.weight" }];
        assert!(gradients(&mut g, loss, one, &wanted[..1]).is_ok());
        let error = gradients(&mut g, loss, one, &wanted).unwrap_err();
        assert!(error.to_string().contains("'head.weight'"), "{error}");
    }

    #[test]
    fn a_gradient_that_reaches_an_op_without_one_is_an_error() {
        let mut g = Graph::new();
        let x = g.input("x", TensorType::f32([2]));
        let y = g.input("y", TensorType::f32([2]));
        let m = g.minimum(x, y).unwrap();
        let loss = g.sum_all(m).unwrap();
        let one = g.constant(1.0, DType::F32);
        let error = gradients(&mut g, loss, one, &[Wanted { value: x, name: "x" }]).unwrap_err();
        assert_eq!(error.op, "minimum");
    }
}
