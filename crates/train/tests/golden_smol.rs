//! A small model of the kind of SmolVLM against PyTorch: logits, loss and the gradients of every weight, its token
//! table read at both ends, on the reference evaluation and on the CPU executor.

use ocelli_cpu::{CpuExecutor, CpuTarget};
use ocelli_ir::executor::{Executor, Input};
use ocelli_ir::reference::{RefState, evaluate};
use ocelli_ir::tensor::{Real, Tensor};
use ocelli_ir::{Graph, Op, SlotKind, StateSpec};
use ocelli_models::Model;
use ocelli_models::nn::{Context, Mode};
use ocelli_models::smol::SmolConfig;
use ocelli_passes::{PassCx, compile};
use ocelli_testkit::host::{bytes, floats};
use ocelli_testkit::tensors::{Tensors, of_ops};
use ocelli_testkit::tolerance::{F64_BOUND, Kind, f32_bound, relative_difference};
use ocelli_train::program::{self, Inputs, Pictures, Size};
use std::collections::HashMap;
use std::sync::Arc;

/// The model of `scripts/make_op_golden.py`.
const MODEL: SmolConfig = SmolConfig {
    img_size: 16,
    patch_size: 4,
    image_embed_dim: 16,
    image_n_head: 2,
    image_inner: 40,
    num_blks: 2,
    pixel_shuffle: 2,
    n_embd: 24,
    n_head: 4,
    n_kv_head: 2,
    n_inner: 32,
    n_layer: 2,
    vocab_size: 19,
    max_positions: 8,
    rope_theta: 10_000.0,
    tie_weights: true,
};
const SIZE: Size = Size { batch: 3, text: 7 };

/// Outputs by name.
type Found = Vec<(String, Vec<f64>)>;

struct Case {
    state: StateSpec,
    graphs: [Graph; 2],
    file: Tensors,
}

impl Case {
    fn new(file: Tensors) -> Self {
        let mut state = StateSpec::default();
        let mut cx = PassCx::new(&mut state, &CpuTarget);
        let gradients = program::mean_gradients(&mut cx, &MODEL, SIZE, Pictures::Floats).unwrap();
        let mut g = Graph::new();
        let inputs = Inputs::declare(&mut g, &MODEL, SIZE, Pictures::Floats);
        let mut cx = Context::new(&mut g, &mut state, Mode::Eval);
        let logits = MODEL.logits(&mut cx, inputs.images, inputs.tokens).unwrap();
        g.output("out.logits", logits);
        Self { state, graphs: [g, gradients], file }
    }

    fn inputs(&self) -> Vec<(&'static str, Tensor<f64>)> {
        let ids = |name: &str| {
            let (shape, data) = self.file.get(name);
            Tensor::u32(shape.clone(), data.iter().map(|&x| x as u32).collect())
        };
        let (shape, weights) = self.file.get("in.weights");
        let (_, pixels) = self.file.get("in.images");
        let side = MODEL.img_size;
        let at = |i: usize| {
            let (c, x, y, b) = (i % 3, i / 3 % side, i / 3 / side % side, i / 3 / side / side);
            pixels[((b * 3 + c) * side + y) * side + x]
        };
        vec![
            ("images", Tensor::from_fn([SIZE.batch, side, side, 3], at)),
            ("tokens", ids("in.tokens")),
            ("targets", ids("in.targets")),
            ("weights", Tensor::real(shape.clone(), weights.to_vec())),
            ("samples", Tensor::u32([SIZE.batch], vec![0, 1, 2])),
        ]
    }

    fn weight(&self, name: &str) -> Tensor<f64> {
        let (shape, data) = self.file.get(&format!("w.{name}"));
        Tensor::real(shape.clone(), data.to_vec())
    }

    fn reference<R: Real>(&self) -> Found {
        let inputs = self.inputs().into_iter().map(|(n, t)| (n.to_string(), t.to::<R>())).collect();
        let weights = self.state.iter().map(|(id, slot)| (id, self.weight(&slot.name).to()));
        let mut state: RefState<R> = weights.collect();
        let run = |g: &Graph| {
            let values = evaluate(g, &inputs, &mut state).unwrap();
            let values = values.iter().map(|t| t.as_real().iter().map(|x| x.f64()).collect());
            g.outputs().iter().map(|(name, _)| name.clone()).zip(values).collect::<Found>()
        };
        self.graphs.iter().flat_map(run).collect()
    }

    fn cpu(&self, threads: usize) -> Found {
        let executor = CpuExecutor::new(Some(threads)).unwrap();
        let spec = Arc::new(self.state.clone());
        let mut state = executor.new_state(&spec, 0).unwrap();
        for (id, slot) in spec.iter() {
            state.write(id, &bytes(&self.weight(&slot.name))).unwrap();
        }
        let inputs: HashMap<&str, Vec<u8>> = self.inputs().iter().map(|(n, t)| (*n, bytes(t))).collect();
        let mut found = Found::new();
        for graph in &self.graphs {
            let plan = compile("golden", graph.clone(), &spec, executor.target()).unwrap();
            for launch in &plan.launches {
                let types: Vec<_> = launch.inputs.iter().map(|o| o.ty()).collect();
                assert!(executor.target().has_kernel(&launch.op, &types), "{} has no kernel", launch.op);
            }
            let given: Vec<Input<'_>> =
                plan.inputs.iter().map(|(name, _)| Input::from(&inputs[name.as_str()])).collect();
            let mut program = executor.load(plan).unwrap();
            program.run(&mut *state, &given).unwrap();
            let names = graph.outputs().iter().enumerate();
            found.extend(names.map(|(i, (name, _))| (name.clone(), floats(&program.output(i).unwrap()))));
        }
        found
    }

    /// The outputs that are further from PyTorch than `bound` allows.
    fn far(&self, found: &Found, bound: impl Fn(Kind) -> f64) -> Vec<String> {
        let far = |name: &str, have: &[f64]| match name {
            "weight" => false,
            "loss" => relative_difference(have, self.file.get("out.loss").1) > bound(Kind::Value),
            "out.logits" => relative_difference(have, self.file.get(name).1) > bound(Kind::Value),
            // A bias of keys shifts all scores of a query alike: its gradient is 0, and rounding is all there is.
            name if name.ends_with("k_proj.bias") => {
                let other = self.file.get(&format!("g.{}", name.replace("k_proj", "q_proj"))).1;
                let largest = |x: &[f64]| x.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
                largest(have) > bound(Kind::Gradient) * largest(other)
            }
            name => relative_difference(have, self.file.get(&format!("g.{name}")).1) > bound(Kind::Gradient),
        };
        found.iter().filter(|(name, have)| far(name, have)).map(|(name, _)| name.clone()).collect()
    }
}

#[test]
fn the_model_is_that_of_pytorch() {
    let case = Case::new(of_ops("smol.safetensors"));
    let none: Vec<String> = vec![];
    assert_eq!(case.far(&case.reference::<f64>(), |_| F64_BOUND), none, "in f64");
    assert_eq!(case.far(&case.reference::<f32>(), f32_bound), none, "in f32");
    let one = case.cpu(1);
    assert_eq!(one.len(), 3 + case.state.len());
    assert_eq!(case.far(&one, f32_bound), none, "on the CPU");
    assert!(one == case.cpu(2), "one and two threads differ");
}

#[test]
fn bounds_find_a_slightly_wrong_weight() {
    for name in ["model.text_model.layers.1.self_attn.k_proj", "model.vision_model.encoder.layers.0.mlp.fc1"]
    {
        let mut file = of_ops("smol.safetensors");
        file.scale(&format!("w.{name}.weight"), 1.001);
        let case = Case::new(file);
        let far = case.far(&case.cpu(1), f32_bound);
        assert!(far.contains(&"out.logits".into()) && far.len() > 10, "{name}: {far:?}");
    }
}

/// A tied table is one slot and one read; an untied head is a parameter of its own.
#[test]
fn a_tied_table_is_one_parameter() {
    let file = of_ops("smol.safetensors");
    let case = Case::new(file);
    let mut ours: Vec<&str> = case.state.iter().map(|(_, s)| s.name.as_str()).collect();
    ours.sort_unstable();
    assert_eq!(ours, case.file.behind("w."), "names are those of Hugging Face");
    let table = case.state.find("model.text_model.embed_tokens.weight").unwrap();
    assert_eq!(case.state.get(table).kind, SlotKind::Parameter);
    for graph in &case.graphs {
        let read = |op: &Op| matches!(op, Op::StateRead(op) if op.slot == table);
        assert_eq!(graph.nodes().iter().filter(|node| read(&node.op)).count(), 1);
    }
    let mut state = StateSpec::default();
    let untied = SmolConfig { tie_weights: false, ..MODEL };
    let mut cx = PassCx::new(&mut state, &CpuTarget);
    program::mean_gradients(&mut cx, &untied, SIZE, Pictures::Floats).unwrap();
    assert_eq!(state.len(), case.state.len() + 1);
    assert!(state.find("lm_head.weight").is_some());
}

/// The loss of a training program never makes the logits.
#[test]
fn no_value_of_the_loss_is_as_large_as_the_logits() {
    let mut state = StateSpec::default();
    let large = SmolConfig { vocab_size: 50_000, ..MODEL };
    let mut cx = PassCx::new(&mut state, &CpuTarget);
    let g = program::mean_gradients(&mut cx, &large, SIZE, Pictures::Floats).unwrap();
    assert!(g.values().iter().any(|v| v.ty.shape[..] == [50_000, 24]), "the table's gradient");
    assert!(g.values().iter().all(|v| v.ty.shape.last() != Some(&50_000)), "logits");
}

#[test]
fn impossible_sizes_are_named() {
    let refused = |model: SmolConfig| model.check().unwrap_err().to_string();
    assert!(MODEL.check().is_ok());
    for (model, part) in [
        (SmolConfig { n_kv_head: 3, ..MODEL }, "n_head 4 is not a multiple of n_kv_head 3"),
        (SmolConfig { pixel_shuffle: 3, ..MODEL }, "4 is not a multiple of pixel_shuffle 3"),
        (SmolConfig { n_head: 8, ..MODEL }, "n_embd / n_head 3"),
        (SmolConfig { image_n_head: 0, ..MODEL }, "image_n_head is 0"),
        (SmolConfig { rope_theta: f64::NAN, ..MODEL }, "rope_theta"),
        (SmolConfig { max_positions: 1, ..MODEL }, "max_positions 1"),
    ] {
        let text = refused(model);
        assert!(text.contains(part), "{part} not in {text}");
    }
}
