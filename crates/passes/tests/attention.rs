//! Pass `attention`: values and gradients of the plain definition are those of the op, in f64, the dropped elements
//! included, for every kind of attention that the registry makes.

use ocelli_ir::op::{Fill, Gen};
use ocelli_ir::ops::{Attention, registry};
use ocelli_ir::reference::evaluate;
use ocelli_ir::tensor::Tensor;
use ocelli_ir::{DType, Graph, Op, TensorType, Value};
use ocelli_passes::attention::materialise;
use ocelli_passes::autodiff::{Wanted, gradients};
use ocelli_testkit::tolerance::relative_difference;
use std::collections::HashMap;

/// A forward graph `loss = sum(w * attention(..))` with what fills its inputs.
fn forward(seed: u64) -> (Attention, Graph, HashMap<String, Tensor<f64>>) {
    let make = registry().into_iter().find(|(name, _)| *name == "attention").unwrap().1;
    let mut gen_ = Gen::new(seed);
    let sample = make(&mut gen_);
    let Op::Attention(op) = sample.op.clone() else { unreachable!() };
    let (mut g, mut inputs, mut args) = (Graph::new(), HashMap::new(), Vec::new());
    for (i, ((ty, _), tensor)) in sample.inputs.iter().zip(sample.draw::<f64>(&mut gen_)).enumerate() {
        args.push(g.input(&format!("x{i}"), ty.clone()));
        inputs.insert(format!("x{i}"), tensor);
    }
    let o = g.one(op.clone(), &args).unwrap();
    let ty = g.ty(o).clone();
    inputs.insert("w".into(), gen_.tensor(&ty, Fill::Normal));
    let w = g.input("w", ty);
    let loss = g.mul(o, w).and_then(|weighted| g.sum_all(weighted)).unwrap();
    g.output("o", o);
    g.output("loss", loss);
    (op, g, inputs)
}

/// The output, and the gradients of queries, keys and values.
fn evaluated(mut g: Graph, inputs: &HashMap<String, Tensor<f64>>) -> Vec<Tensor<f64>> {
    let [o, loss] = [0, 1].map(|i| g.outputs()[i].1);
    g.take_outputs();
    g.output("o", o);
    let of = |node: &&ocelli_ir::Node, name: &str| matches!(&node.op, Op::Input(i) if &*i.name == name);
    let args: Vec<(String, Value)> = (0..3)
        .map(|i| format!("x{i}"))
        .map(|name| (name.clone(), g.nodes().iter().find(|n| of(n, &name)).unwrap().outputs[0]))
        .collect();
    let wanted: Vec<Wanted<'_>> = args.iter().map(|(name, value)| Wanted { value: *value, name }).collect();
    let one = g.constant(1.0, DType::F32);
    let grads = gradients(&mut g, loss, one, &wanted).unwrap();
    grads.into_iter().enumerate().for_each(|(i, v)| g.output(&i.to_string(), v));
    evaluate(&g, inputs, &mut HashMap::new()).unwrap()
}

#[test]
fn plain_attention_is_attention() {
    let mut seen = [0; 4];
    for seed in 0..60 {
        let (op, graph, inputs) = forward(seed);
        let plain = materialise(&graph).unwrap();
        assert!(!plain.nodes().iter().any(|n| matches!(n.op, Op::Attention(_))));
        let grouped = inputs["x0"].shape[2] != inputs["x1"].shape[2];
        for (count, is) in seen.iter_mut().zip([op.causal, op.kv_len, op.dropout.is_some(), grouped]) {
            *count += usize::from(is);
        }
        let names = ["o", "dq", "dk", "dv"];
        let [want, have] = [graph, plain].map(|g| evaluated(g, &inputs));
        for ((name, want), have) in names.into_iter().zip(want).zip(have) {
            assert_eq!(want.shape, have.shape, "seed {seed}: {name}");
            // Gradients that are all zero (no key is seen) compare absolutely.
            let size = want.as_real().iter().fold(0.0_f64, |m, x| m.max(x.abs()));
            let off = relative_difference(have.as_real(), want.as_real()) * size.min(1.0);
            assert!(off < 1e-12, "seed {seed}, {op:?}: {name} is off by {off:.1e}");
        }
    }
    assert!(seen.iter().all(|&n| n >= 10), "{seen:?}");
}

/// The bound can fail: other elements dropped are seen.
#[test]
fn dropping_other_elements_is_found() {
    let (seed, (_, graph, inputs)) = (0..60)
        .map(|seed| (seed, forward(seed)))
        .find(|(_, (op, _, inputs))| op.dropout.is_some() && inputs["x0"].shape[2] > 1)
        .unwrap();
    let plain = materialise(&graph).unwrap();
    let mut other = Graph::new();
    let mut values: HashMap<Value, Value> = HashMap::new();
    for node in plain.nodes() {
        let inputs: Vec<Value> = node.inputs.iter().map(|v| values[v]).collect();
        let op = match node.op.clone() {
            Op::DropoutWeights(op) => ocelli_ir::ops::DropoutOp { dropout: op.dropout }.into(),
            op => op,
        };
        values.extend(node.outputs.iter().copied().zip(other.many(op, &inputs).unwrap()));
    }
    plain.outputs().iter().for_each(|(name, v)| other.output(name, values[v]));
    let [want, have] = [graph, other].map(|g| evaluated(g, &inputs).remove(0));
    let off = relative_difference(have.as_real(), want.as_real());
    assert!(off > 1e-3, "seed {seed}: only {off:.1e}");
}

/// An attention whose row sums are read is left alone: the plain definition has none.
#[test]
fn row_sums_that_are_read_are_kept() {
    let mut g = Graph::new();
    let [q, k, v] = ["q", "k", "v"].map(|name| g.input(name, TensorType::f32([1, 3, 2, 4])));
    let op = Attention { causal: true, scale: 1.0, kv_len: false, dropout: None };
    let both = g.many(op, &[q, k, v]).unwrap();
    g.output("lse", both[1]);
    let plain = materialise(&g).unwrap();
    assert!(plain.nodes().iter().any(|n| matches!(n.op, Op::Attention(_))));
}
