//! Pass `fuse`: groups as large as the target takes them, and the same program to the bit.

use ocelli_ir::dropout::Dropout;
use ocelli_ir::executor::Target;
use ocelli_ir::op::{Fill, Gen};
use ocelli_ir::ops::{Adam, DropoutOp, Fused, GeluGrad, Increment, MatMul, ReduceSum};
use ocelli_ir::reference::evaluate;
use ocelli_ir::{DType, Graph, Init, Op, Phase, Slot, SlotKind, StateSpec, TensorType, Value, View};
use ocelli_passes::fuse::fuse;
use ocelli_passes::recompute::recompute;
use ocelli_passes::{compile, verify};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A device that has kernels for the fused ops that it says yes to.
struct Device(fn(&Fused) -> bool);

impl Target for Device {
    fn name(&self) -> &str {
        "test"
    }
    fn has_kernel(&self, op: &Op, _: &[TensorType]) -> bool {
        if let Op::Fused(op) = op { (self.0)(op) } else { true }
    }
    fn reads_view(&self, _: &Op, _: usize, _: &View) -> bool {
        true
    }
    fn writes_view(&self, _: &Op, _: usize, _: &View) -> bool {
        true
    }
    fn alignment(&self) -> usize {
        64
    }
}

/// The ops of a body that compute or move something.
fn ops(op: &Fused) -> Vec<&'static str> {
    op.body
        .nodes()
        .iter()
        .map(|n| n.op.name())
        .filter(|n| !["input", "constant", "reshape"].contains(n))
        .collect()
}

fn is_elementwise(name: &str) -> bool {
    ["add", "sub", "mul", "div", "minimum", "maximum", "sqrt", "exp", "cos", "gelu", "dropout"]
        .contains(&name)
}

const NOTHING: Device = Device(|_| false);
const ELEMENTWISE: Device = Device(|op| ops(op).into_iter().all(is_elementwise));
const PRODUCTS: Device =
    Device(|op| ops(op)[0] == "matmul" && ops(op)[1..].iter().all(|name| is_elementwise(name)));
const NORMS: Device = Device(|op| ops(op) == ["layer_norm", "matmul"]);
const ALL: Device = Device(|_| true);
/// The three parts of a hidden layer: forward, from row to row, sums over rows.
const LAYERS: Device = Device(|op| is_part(op, 3));
/// The last of them is missing.
const NO_SUMS: Device = Device(|op| is_part(op, 2));

fn is_part(op: &Fused, parts: usize) -> bool {
    let known: [&[&str]; 3] = [
        &["matmul", "gelu", "matmul"],
        &["matmul", "matmul", "gelu_grad", "matmul"],
        &["matmul", "gelu", "matmul", "matmul", "gelu_grad", "matmul", "reduce_sum"],
    ];
    known[..parts].contains(&&ops(op)[..])
}

fn matrix(g: &mut Graph, name: &str) -> Value {
    g.input(name, TensorType::f32([8, 8]))
}

/// The launches of a program without state.
fn launches(g: &Graph, device: &Device) -> Vec<String> {
    let plan = compile("test", g.clone(), &Arc::default(), device).unwrap();
    plan.launches.iter().map(|l| l.op.to_string()).collect()
}

fn chain(g: &mut Graph, x: Value, n: usize) -> Value {
    (0..n).fold(x, |x, _| g.exp(x).unwrap())
}

#[test]
fn a_chain_is_one_launch_if_the_target_says_so() {
    let mut g = Graph::new();
    let x = matrix(&mut g, "x");
    let y = chain(&mut g, x, 5);
    g.output("y", y);
    assert_eq!(launches(&g, &ELEMENTWISE), ["fused exp+exp+exp+exp+exp"]);
    assert_eq!(launches(&g, &NOTHING), ["exp"; 5]);
    assert_eq!(fuse(&g, &NOTHING).unwrap(), g);
}

#[test]
fn the_hash_of_a_plan_sees_what_is_fused() {
    let hash = |first: fn(&mut Graph, Value) -> Value, second: fn(&mut Graph, Value) -> Value| {
        let mut g = Graph::new();
        let x = matrix(&mut g, "x");
        let y = first(&mut g, x);
        let y = second(&mut g, y);
        g.output("y", y);
        let plan = compile("test", g, &Arc::default(), &ELEMENTWISE).unwrap();
        assert_eq!(plan.launches.len(), 1);
        plan.hash()
    };
    let (exp, sqrt) = (|g: &mut Graph, v| g.exp(v).unwrap(), |g: &mut Graph, v| g.sqrt(v).unwrap());
    assert_eq!(hash(exp, sqrt), hash(exp, sqrt));
    assert_ne!(hash(exp, sqrt), hash(sqrt, exp));
}

#[test]
fn what_others_read_is_an_output_and_what_is_read_twice_one_input() {
    let mut g = Graph::new();
    let x = matrix(&mut g, "x");
    let a = g.exp(x).unwrap();
    let b = g.mul(a, x).unwrap();
    let product = g.matmul(a, a).unwrap();
    let half = g.constant(0.5, DType::F32);
    let c = g.mul(b, half).unwrap();
    [("c", c), ("product", product)].into_iter().for_each(|(n, v)| g.output(n, v));
    // The product does not feed the others: it runs behind them.
    let plan = compile("test", g, &Arc::default(), &ELEMENTWISE).unwrap();
    let names: Vec<String> = plan.launches.iter().map(|l| l.op.to_string()).collect();
    assert_eq!(names, ["fused exp+mul+mul", "matmul"]);
    assert_eq!((plan.launches[0].inputs.len(), plan.launches[0].outputs.len()), (1, 2));
}

#[test]
fn no_path_leaves_a_group_and_comes_back() {
    let mut g = Graph::new();
    let x = matrix(&mut g, "x");
    let a = g.exp(x).unwrap();
    let sum = g.one(ReduceSum { axes: vec![1] }, &[a]).unwrap();
    let b = g.div(a, sum).unwrap();
    let y = g.sqrt(b).unwrap();
    g.output("y", y);
    assert_eq!(launches(&g, &ELEMENTWISE), ["exp", "reduce_sum", "fused div+sqrt"]);
}

#[test]
fn parts_of_the_program_stay_apart() {
    let mut g = Graph::new();
    let x = matrix(&mut g, "x");
    let a = chain(&mut g, x, 2);
    g.begin(Phase::Backward);
    let b = chain(&mut g, a, 2);
    g.output("y", b);
    assert_eq!(launches(&g, &ELEMENTWISE), ["fused exp+exp", "fused exp+exp"]);
}

/// `x + dropout(gelu(x w^T + bias))` of rows of captions; also what the function saw, as a backward part reads it.
fn mlp(both: bool) -> Graph {
    let mut g = Graph::new();
    let x = g.input("x", TensorType::f32([2, 4, 8]));
    let (w, bias) = (matrix(&mut g, "w"), g.input("bias", TensorType::f32([8])));
    let (seed, step) = (g.input("seed", TensorType::u32([2])), g.input("step", TensorType::u32([])));
    let samples = g.input("samples", TensorType::u32([2]));
    let h = g.linear(x, w, Some(bias)).unwrap();
    let y = g.gelu(h).unwrap();
    let dropout = DropoutOp { dropout: Dropout { threshold: 9000, site: 7 } };
    let y = g.one(dropout, &[y, seed, step, samples]).unwrap();
    let y = g.add(x, y).unwrap();
    if both {
        g.output("h", h);
    }
    g.output("y", y);
    g
}

#[test]
fn a_product_takes_what_is_behind_it_through_reshapes() {
    assert_eq!(launches(&mlp(false), &PRODUCTS), ["fused matmul+gelu+dropout+add"]);
    assert_eq!(launches(&mlp(false), &ELEMENTWISE), ["matmul", "fused gelu+dropout+add"]);
    let plan = compile("test", mlp(true), &Arc::default(), &PRODUCTS).unwrap();
    assert_eq!(plan.launches.len(), 1);
    // What the product makes comes out as the product made it; its reader looks at it in its own way.
    assert_eq!(plan.launches[0].outputs[0].view, View::contiguous([8, 8]));
    assert_eq!(plan.outputs[0].1.view, View::contiguous([2, 4, 8]));
}

#[test]
fn a_norm_goes_before_its_product_and_says_its_module() {
    let mut g = Graph::new();
    let (x, w) = (g.input("x", TensorType::f32([2, 4, 8])), matrix(&mut g, "w"));
    let [gain, shift] = ["gain", "shift"].map(|n| g.input(n, TensorType::f32([8])));
    g.enter("block");
    g.enter("norm");
    let n = g.layer_norm(x, gain, shift).unwrap();
    g.leave();
    g.enter("qkv");
    let y = g.linear(n, w, None).unwrap();
    g.output("y", y);
    let plan = compile("test", g, &Arc::default(), &NORMS).unwrap();
    let l = &plan.launches[0];
    assert_eq!((plan.launches.len(), &*l.op.to_string(), &*l.scope), (1, "fused layer_norm+matmul", "block"));
}

/// An op far before the other that reads what it makes; it reads `n` values that no one else does.
fn far_apart(n: usize) -> Vec<String> {
    let mut g = Graph::new();
    let x = matrix(&mut g, "x");
    let [a, b] = [0, 1].map(|_| g.matmul(x, x).unwrap());
    let early = if n == 2 { g.mul(a, b) } else { g.exp(a) }.unwrap();
    let other = (0..3).fold(x, |y, _| g.matmul(y, x).unwrap());
    let late = g.add(early, other).unwrap();
    [("y", late), ("b", if n == 2 { late } else { b })].into_iter().for_each(|(n, v)| g.output(n, v));
    // Not through `simplify`, which would make one of the equal products.
    let fused = fuse(&g, &ELEMENTWISE).unwrap();
    verify::graph(&fused, &StateSpec::default()).unwrap();
    fused.nodes().iter().map(|n| n.op.to_string()).filter(|n| n.starts_with("fused")).collect()
}

#[test]
fn nothing_lives_longer_than_what_it_saves() {
    assert_eq!(far_apart(1), ["fused exp+add"], "one value waits instead of another");
    assert!(far_apart(2).is_empty(), "two would wait instead of one");
}

#[test]
fn what_works_in_place_still_does() {
    let mut state = StateSpec::default();
    let mut slot = |name: &str, ty| {
        let slot = Slot { name: name.into(), ty, kind: SlotKind::Moment, init: Init::Zeros };
        state.declare(slot).unwrap()
    };
    let slots = ["p", "m", "v"].map(|n| slot(n, TensorType::f32([8, 8])));
    let count = slot("count", TensorType::u32([]));
    let mut g = Graph::new();
    let x = matrix(&mut g, "x");
    let grad = chain(&mut g, x, 2);
    let (one, n) = (g.constant(1.0, DType::F32), g.read(&state, count));
    let n = g.one(Increment, &[n]).unwrap();
    let old = slots.map(|s| g.read(&state, s));
    let op = Adam { beta1: 0.9, beta2: 0.99, eps: 1e-8, weight_decay: 0.0, decoupled: false };
    let new = g.many(op, &[old[0], old[1], old[2], grad, one, one, n, n]).unwrap();
    slots.iter().zip(new).for_each(|(&s, v)| g.write(&state, s, v).unwrap());
    g.write(&state, count, n).unwrap();
    let plan = compile("adam", g, &Arc::new(state), &ALL).unwrap();
    let names: Vec<String> = plan.launches.iter().map(|l| l.op.to_string()).collect();
    assert_eq!(names, ["fused exp+exp", "increment", "constant 1", "adam"]);
}

/// A hidden layer and, if it is wanted, its gradients.
fn layer(gradients: bool) -> Graph {
    let mut g = Graph::new();
    let x = g.input("x", TensorType::f32([6, 8]));
    layer_of(&mut g, x, gradients);
    g
}

/// The same of a value.
fn layer_of(g: &mut Graph, x: Value, gradients: bool) {
    let [dy, w, v] = [("dy", [6, 8]), ("w", [24, 8]), ("v", [8, 24])]
        .map(|(name, shape)| g.input(name, TensorType::f32(shape)));
    let [b, c] = [("b", 24), ("c", 8)].map(|(name, n)| g.input(name, TensorType::f32([n])));
    let h = g.linear(x, w, Some(b)).unwrap();
    let a = g.gelu(h).unwrap();
    let y = g.linear(a, v, Some(c)).unwrap();
    g.output("y", y);
    if !gradients {
        return;
    }
    g.begin(Phase::Backward);
    let turned = MatMul { ta: true, tb: false, bias: false };
    let dv = g.one(turned.clone(), &[dy, a]).unwrap();
    let da = g.matmul(dy, v).unwrap();
    let dh = g.one(GeluGrad, &[h, da]).unwrap();
    let dw = g.one(turned, &[dh, x]).unwrap();
    let db = g.one(ReduceSum { axes: vec![0] }, &[dh]).unwrap();
    let dx = g.matmul(dh, w).unwrap();
    [("dv", dv), ("dw", dw), ("db", db), ("dx", dx)].into_iter().for_each(|(n, v)| g.output(n, v));
}

#[test]
fn a_hidden_layer_is_made_again_where_it_is_read_again() {
    assert_eq!(launches(&layer(false), &LAYERS), ["fused matmul+gelu+matmul"]);
    let mut made = launches(&layer(true), &LAYERS);
    made.sort();
    let sums = "fused matmul+gelu+matmul+matmul+gelu_grad+matmul+1 more";
    assert_eq!(made, ["fused matmul+gelu+matmul", sums, "fused matmul+matmul+gelu_grad+matmul"]);
    // All parts or none: a copy for nothing would cost a product.
    let (g, plain) = (layer(true), launches(&layer(true), &NOTHING));
    assert_eq!(launches(&g, &NO_SUMS), plain);
    assert_eq!(fuse(&g, &NO_SUMS).unwrap(), g);
}

#[test]
fn a_layer_whose_operand_the_backward_part_makes_again_reads_the_first_one() {
    // `x` is a norm's result, which `recompute` makes again for the gradient of `w`.
    let mut g = Graph::new();
    let input = |g: &mut Graph, name: &str, shape: &[usize]| g.input(name, TensorType::f32(shape.to_vec()));
    let x = input(&mut g, "x", &[6, 8]);
    let [gain, shift] = ["gain", "shift"].map(|name| input(&mut g, name, &[8]));
    let norm = g.layer_norm(x, gain, shift).unwrap();
    layer_of(&mut g, norm, true);
    let fused = fuse(&recompute(&g).unwrap(), &LAYERS).unwrap();
    let names: Vec<String> = fused.nodes().iter().map(|n| n.op.to_string()).collect();
    assert_eq!(names.iter().filter(|n| n.starts_with("fused")).count(), 3, "{names:?}");
    assert_eq!(names.iter().filter(|n| *n == "layer_norm").count(), 1, "{names:?}");
    // Without kernels for layers it stays as `recompute` left it.
    assert_eq!(fuse(&recompute(&g).unwrap(), &NOTHING).unwrap(), recompute(&g).unwrap());
}

#[test]
fn a_layer_that_is_made_again_is_the_same_to_the_bit() {
    let g = layer(true);
    let fused = fuse(&g, &LAYERS).unwrap();
    verify::graph(&fused, &StateSpec::default()).unwrap();
    let mut draw = Gen::new(5);
    let inputs = g.nodes().iter().filter_map(|n| if let Op::Input(i) = &n.op { Some(i) } else { None });
    let inputs: HashMap<_, _> =
        inputs.map(|i| (i.name.to_string(), draw.tensor::<f64>(&i.ty, Fill::Normal))).collect();
    let run = |g: &Graph| evaluate(g, &inputs, &mut HashMap::new()).unwrap();
    assert!(run(&g) == run(&fused));
}

#[test]
fn a_hidden_layer_that_others_look_at_stays_in_memory() {
    let mut g = layer(true);
    let h = g.nodes().iter().find(|n| n.op.name() == "matmul").unwrap().outputs[0];
    g.output("h", h);
    assert_eq!(launches(&g, &LAYERS), launches(&g, &NOTHING));
}

/// A random program of element-wise ops, products, sums and views, of two parts.
fn random(draw: &mut Gen, n: usize) -> Graph {
    let mut g = Graph::new();
    let mut values: Vec<Value> = ["x", "y"].map(|name| matrix(&mut g, name)).to_vec();
    for i in 0..n {
        if i == n / 2 {
            g.begin(Phase::Backward);
        }
        // Rather the latest.
        let reach = values.len().min(if draw.one_in(4) { usize::MAX } else { 4 });
        let mut pick = || values[values.len() - draw.dim(1, reach)];
        let (a, b) = (pick(), pick());
        let v = match draw.dim(0, 9) {
            0 | 1 => g.add(a, b),
            2 => g.minimum(a, b),
            3 => g.sub(a, b),
            4 => g.cos(a),
            5 => g.gelu(a),
            6 => g.matmul(a, b).and_then(|v| g.cos(v)),
            7 => g.reshape(a, [4, 2, 8]).and_then(|v| g.cos(v)).and_then(|v| g.reshape(v, [8, 8])),
            8 => g.permute(a, vec![1, 0]),
            _ => g.one(ReduceSum { axes: vec![1] }, &[a]).and_then(|v| g.add(v, b)),
        };
        values.push(v.unwrap());
        if draw.one_in(8) {
            g.output(&format!("y{i}"), values[values.len() - 1]);
        }
    }
    g.output("last", values[values.len() - 1]);
    g
}

/// The ops of a graph that are launches and that something needs, those in bodies too.
fn work(g: &Graph) -> Vec<&'static str> {
    let mut needed: Vec<Value> = g.outputs().iter().map(|(_, v)| *v).collect();
    for node in g.nodes().iter().rev() {
        if node.outputs.iter().any(|v| needed.contains(v)) {
            needed.extend(&node.inputs);
        }
    }
    let of = |n: &ocelli_ir::Node| match &n.op {
        Op::Fused(op) => work(&op.body),
        op if g.is_view(n) || matches!(op, Op::Input(_) | Op::Constant(_)) => vec![],
        op => vec![op.name()],
    };
    let live = |n: &&ocelli_ir::Node| n.outputs.iter().any(|v| needed.contains(v));
    let mut work: Vec<_> = g.nodes().iter().filter(live).flat_map(of).collect();
    work.sort_unstable();
    work
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) })]

    #[test]
    fn any_program_is_the_same_to_the_bit(seed: u64) {
        let mut draw = Gen::new(seed);
        let n = draw.dim(2, 40);
        let g = random(&mut draw, n);
        let ty = TensorType::f32([8, 8]);
        let inputs = ["x", "y"].map(|n| (n.to_string(), draw.tensor::<f64>(&ty, Fill::Normal)));
        let inputs: HashMap<_, _> = inputs.into_iter().collect();
        let want = evaluate(&g, &inputs, &mut HashMap::new()).unwrap();
        for device in [&ELEMENTWISE, &PRODUCTS, &ALL] {
            let fused = fuse(&g, device).unwrap();
            prop_assert_eq!(verify::graph(&fused, &StateSpec::default()), Ok(()));
            prop_assert!(evaluate(&fused, &inputs, &mut HashMap::new()).unwrap() == want);
            prop_assert!(fuse(&g, device).unwrap() == fused);
            prop_assert_eq!(work(&fused), work(&g), "each op once");
            compile("random", g.clone(), &Arc::default(), device).unwrap();
        }
    }
}

#[test]
fn thousands_of_ops_take_no_time() {
    let n = 6000;
    let wild = random(&mut Gen::new(1), n);
    let mut long = Graph::new();
    let x = matrix(&mut long, "x");
    let y = chain(&mut long, x, n);
    long.output("y", y);
    for (g, device) in [(&wild, &ELEMENTWISE), (&wild, &ALL), (&wild, &NOTHING), (&long, &ALL)] {
        let begin = Instant::now();
        fuse(g, device).unwrap();
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    }
}
