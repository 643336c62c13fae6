//! Walks the registry: the gradient of every op agrees with finite differences in f64, and every op that has
//! none says so.

use ocelli_ir::op::{Gen, Sample};
use ocelli_ir::ops::registry;
use ocelli_ir::reference::evaluate;
use ocelli_ir::tensor::Tensor;
use ocelli_ir::{DType, Graph, Value};
use ocelli_passes::autodiff::{Wanted, gradients};
use ocelli_testkit::differences;
use ocelli_testkit::tolerance::relative_difference;
use std::collections::HashMap;

/// A graph `loss = sum(w * f(inputs))` over all differentiable outputs, with weights as inputs.
struct Harness {
    graph: Graph,
    inputs: HashMap<String, Tensor<f64>>,
    wanted: Vec<(String, Value)>,
    loss: Value,
}

fn harness(sample: &Sample, g: &mut Gen) -> Harness {
    let mut graph = Graph::new();
    let mut inputs = HashMap::new();
    let mut args = Vec::new();
    for (i, ((ty, _), tensor)) in sample.inputs.iter().zip(sample.draw::<f64>(g)).enumerate() {
        let name = format!("x{i}");
        args.push(graph.input(&name, ty.clone()));
        inputs.insert(name, tensor);
    }
    let outputs = graph.many(sample.op.clone(), &args).unwrap();
    let mut loss = graph.constant(0.0, DType::F32);
    for (i, &o) in sample.differentiable.iter().enumerate() {
        let name = format!("w{i}");
        let ty = graph.ty(outputs[o]).clone();
        inputs.insert(name.clone(), g.tensor(&ty, ocelli_ir::op::Fill::Normal));
        let w = graph.input(&name, ty);
        let weighted = graph.mul(outputs[o], w).unwrap();
        let sum = graph.sum_all(weighted).unwrap();
        loss = graph.add(loss, sum).unwrap();
    }
    // The gradient flows to every float input but the row weights of a cross entropy, which are data.
    let is_data = |i: usize| match sample.op.name() {
        "cross_entropy" => i == 2,
        "linear_cross_entropy" => i == 3,
        _ => false,
    };
    let wanted = args
        .iter()
        .enumerate()
        .filter(|(i, v)| graph.ty(**v).dtype.is_float() && !is_data(*i))
        .map(|(i, &v)| (format!("x{i}"), v))
        .collect();
    Harness { graph, inputs, wanted, loss }
}

/// Largest relative difference between the op's gradients and finite differences, for one random sample.
fn check(make: fn(&mut Gen) -> Sample, seed: u64) -> Option<f64> {
    let mut g = Gen::new(seed);
    let sample = make(&mut g);
    if sample.differentiable.is_empty() {
        return None;
    }
    let mut h = harness(&sample, &mut g);
    let mut plain = h.graph.clone();
    plain.output("loss", h.loss);
    let one = h.graph.constant(1.0, DType::F32);
    let wanted: Vec<Wanted> = h.wanted.iter().map(|(name, value)| Wanted { value: *value, name }).collect();
    let grads = gradients(&mut h.graph, h.loss, one, &wanted).unwrap();
    wanted.iter().zip(&grads).for_each(|(w, &v)| h.graph.output(w.name, v));
    let have = evaluate(&h.graph, &h.inputs, &mut HashMap::new()).unwrap();
    let mut worst = 0.0_f64;
    for ((name, _), have) in h.wanted.iter().zip(have) {
        let x = h.inputs[name].clone();
        let want = differences::gradient(x.as_real(), |x| {
            let mut inputs = h.inputs.clone();
            let shape = inputs[name].shape.clone();
            inputs.insert(name.clone(), Tensor::real(shape, x.to_vec()));
            evaluate(&plain, &inputs, &mut HashMap::new()).unwrap()[0].as_real()[0]
        });
        // Gradients that are all zero (a row that sees no key) compare absolutely.
        let size = want.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
        worst = worst.max(relative_difference(have.as_real(), &want) * size.min(1.0));
    }
    Some(worst)
}

#[test]
fn every_vjp_agrees_with_finite_differences() {
    let mut checked = 0;
    for (name, make) in registry() {
        let worst = (0..60).filter_map(|seed| check(make, seed)).reduce(f64::max);
        if let Some(worst) = worst {
            assert!(worst < 2e-7, "{name}: off by {worst:.2e}");
            checked += 1;
        }
    }
    assert!(checked >= 20, "only {checked} ops have a gradient");
}

/// The bound can fail: a gradient that is wrong by one part in a million is found.
#[test]
fn a_slightly_wrong_gradient_is_found() {
    let x = [0.3, -1.2, 0.8];
    let want = differences::gradient(&x, |x| x.iter().map(|v| v.exp()).sum());
    let wrong: Vec<f64> = x.iter().map(|v| v.exp() * (1.0 + 1e-6)).collect();
    assert!(relative_difference(&wrong, &want) > 2e-7);
}

/// An op either has a gradient or answers with an error when one reaches it; none cuts it in silence.
#[test]
fn ops_without_gradient_say_so() {
    for (name, make) in registry() {
        let mut g = Gen::new(1);
        let sample = make(&mut g);
        let is_source = sample.inputs.is_empty();
        if !sample.differentiable.is_empty() || is_source || name == "state_write" {
            continue;
        }
        let mut h = harness(&sample, &mut g);
        let args: Vec<Value> = h.wanted.iter().map(|w| w.1).collect();
        let Some(node) = h.graph.nodes().iter().find(|n| n.op == sample.op).cloned() else {
            panic!("{name}")
        };
        let grad = node.outputs.first().map(|&v| h.graph.zeros(h.graph.ty(v).clone()));
        let mut vjp = ocelli_ir::op::Vjp {
            g: &mut h.graph,
            inputs: &node.inputs,
            outputs: &node.outputs,
            grads: &vec![grad; node.outputs.len()],
            op: node.op.name(),
        };
        let answer = node.op.vjp(&mut vjp);
        let cut = args.is_empty() || answer.is_err();
        assert!(cut, "{name} drops a gradient in silence");
    }
}
