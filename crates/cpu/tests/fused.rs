//! The bodies that run as one: the same bits as their plain ops, at shapes that are cut into pieces, and no others.

use ocelli_cpu::{CpuExecutor, CpuTarget};
use ocelli_ir::dropout::Dropout;
use ocelli_ir::executor::Target;
use ocelli_ir::op::{Fill, Gen, Sample};
use ocelli_ir::ops::*;
use ocelli_ir::plan::{Launch, Operand, Place, Plan};
use ocelli_ir::{DType, Graph, Op, TensorType, Value, View};
use ocelli_testkit::case::{Case, Lie};
use std::collections::HashMap;

/// `x + dropout(y)`, the sum either way round.
fn residual(shape: [usize; 3], swap: bool) -> Graph {
    let mut g = Graph::new();
    let [x, y] = ["x", "y"].map(|n| g.input(n, TensorType::f32(shape)));
    let keys = key_types(shape[0]).map(|ty| g.input("key", ty));
    let op = DropoutOp { dropout: Dropout { threshold: 9000, site: 77 } };
    let dropped = g.one(op, &[y, keys[0], keys[1], keys[2]]).unwrap();
    let sum = if swap { g.add(dropped, x) } else { g.add(x, dropped) }.unwrap();
    g.output("sum", sum);
    g
}

/// A function of a product of `[m, k]` and `[k, n]`, which is given out too if `both`.
fn activated([m, n, k]: [usize; 3], ta: bool, bias: bool, function: impl Into<Op>, both: bool) -> Graph {
    let mut g = Graph::new();
    let a = g.input("a", TensorType::f32(if ta { [k, m] } else { [m, k] }));
    let b = g.input("b", TensorType::f32(if ta { [k, n] } else { [n, k] }));
    let bias = bias.then(|| g.input("bias", TensorType::f32([n])));
    let inputs: Vec<Value> = [a, b].into_iter().chain(bias).collect();
    let h = g.one(MatMul { ta, tb: !ta, bias: bias.is_some() }, &inputs).unwrap();
    let rows = g.reshape(h, [1, m, n]).unwrap();
    let y = g.one(function.into(), &[rows]).unwrap();
    if both {
        g.output("h", h);
    }
    g.output("y", y);
    g
}

/// The ops of a body one after the other, on the same inputs.
fn plain(case: &Case, body: &Graph) -> Plan {
    let mut at = 0;
    let mut given = case.plan.launches[0].inputs.iter();
    let mut made: HashMap<Value, Operand> = HashMap::new();
    let mut launches = vec![];
    for node in body.nodes() {
        let ty = body.ty(node.outputs[0]);
        let operand = match &node.op {
            Op::Input(_) => given.next().unwrap().clone(),
            Op::Reshape(op) => {
                let of = made[&node.inputs[0]].clone();
                Operand { view: of.view.reshape(&op.shape).unwrap(), ..of }
            }
            op => {
                let view = View::contiguous(ty.shape.clone());
                let out = Operand { place: Place::Arena(at), contents: 0, view, dtype: ty.dtype };
                at += ty.bytes().next_multiple_of(64);
                let inputs = node.inputs.iter().map(|v| made[v].clone()).collect();
                let (scope, outputs) = ("".into(), vec![out.clone()]);
                launches.push(Launch { op: op.clone(), scope, inputs, outputs, branch: 0, after: vec![] });
                out
            }
        };
        made.insert(node.outputs[0], operand);
    }
    let outputs = body.outputs().iter().map(|(name, v)| (name.clone(), made[v].clone())).collect();
    Plan { launches, outputs, arena_bytes: at, ..case.plan.clone() }
}

fn check(body: Graph) {
    let op = Fused::new(body.clone());
    let fill = |ty: &TensorType| if ty.dtype == DType::F32 { Fill::Normal } else { Fill::Below(1 << 20) };
    let inputs: Vec<_> = op.inputs().map(|i| (i.ty.clone(), fill(&i.ty))).collect();
    let types: Vec<_> = inputs.iter().map(|(ty, _)| ty.clone()).collect();
    assert!(CpuTarget.has_kernel(&op.clone().into(), &types), "{}", op.names());
    let sample = Sample::no_gradient(op, inputs);
    let executors = [1, 2].map(|n| CpuExecutor::new(Some(n)).unwrap());
    for lie in [Lie::Dense, Lie::Views] {
        let mut case = Case::new(&CpuTarget, &sample, &mut Gen::new(3), lie);
        case.check(&executors[1], 3e-6, 0.0);
        let fused = executors.each_ref().map(|e| case.run(e));
        case.plan = plain(&case, &body);
        assert!(fused[0] == case.run(&executors[0]) && fused[1] == fused[0], "{} {lie:?}", sample.op);
    }
}

#[test]
fn dropout_with_the_residual_sum() {
    check(residual([3, 50, 70], false));
    check(residual([2, 17, 33], true));
    check(residual([1, 1, 1], false));
}

#[test]
fn a_function_behind_its_product() {
    for both in [false, true] {
        check(activated([610, 130, 70], false, true, Gelu, both));
        check(activated([33, 20, 40], false, false, GeluTanh, both));
        // The contraction is cut into pieces.
        check(activated([5, 70, 9000], true, true, Gelu, both));
    }
}

#[test]
fn other_bodies_are_left_alone() {
    let takes = |body: Graph| {
        let op = Fused::new(body);
        let types: Vec<_> = op.inputs().map(|i| i.ty.clone()).collect();
        CpuTarget.has_kernel(&op.into(), &types)
    };
    assert!(takes(residual([2, 3, 4], false)));
    // What lies between is given out too.
    let mut both = residual([2, 3, 4], false);
    let dropped = both.nodes()[5].outputs[0];
    both.output("dropped", dropped);
    assert!(!takes(both));
    // One op more.
    let mut longer = Graph::new();
    let x = longer.input("x", TensorType::f32([4, 4]));
    let y = longer.matmul(x, x).and_then(|y| longer.gelu(y)).and_then(|y| longer.exp(y)).unwrap();
    longer.output("y", y);
    assert!(!takes(longer));
    // What lies between would be rounded.
    let mut half = Graph::new();
    let x = half.input("x", TensorType::new(DType::Bf16, [4, 4]));
    let op = MatMul { ta: false, tb: false, bias: false };
    let h = half.typed(op.into(), &[x, x], vec![TensorType::new(DType::Bf16, [4, 4])]).unwrap()[0];
    let y = half.gelu(h).unwrap();
    half.output("y", y);
    assert!(!takes(half));
}
