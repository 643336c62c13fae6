//! A golden case as programs, state and inputs, and the report of how much of each bound was used.
#![allow(dead_code)] // each test binary uses its part

pub mod machine;

use ocelli_cpu::CpuTarget;
use ocelli_ir::tensor::Tensor;
use ocelli_ir::{Graph, Shape, Slot, SlotId, SlotKind, StateSpec};
use ocelli_models::Model;
use ocelli_models::nn::{Context, Mode, Residual};
use ocelli_models::seemore::{self, SeemoreConfig};
use ocelli_passes::PassCx;
use ocelli_testkit::golden::Golden;
use ocelli_testkit::tolerance::{Kind, relative_difference};
use ocelli_train::program::{self, Inputs, Optimizer, Pictures, RunSlots, Size};

pub struct Case {
    pub golden: Golden,
    pub state: StateSpec,
    pub slots: RunSlots,
    /// Outputs `out.logits` and `out.image_features`.
    pub logits: Graph,
    /// Outputs loss, weight and `g.NAME`.
    pub gradients: Graph,
    pub train: Graph,
    pub size: Size,
}

impl Case {
    pub fn new(golden: &Golden) -> Self {
        let c = &golden.config;
        let model = SeemoreConfig {
            img_size: c.img_size,
            patch_size: c.patch_size,
            image_embed_dim: c.image_embed_dim,
            num_blks: c.num_blks,
            n_embd: c.n_embd,
            n_head: c.n_head,
            n_layer: c.n_layer,
            vocab_size: c.vocab_size,
            max_positions: c.max_positions,
            dropout: c.dropout,
            emb_dropout: c.dropout,
            blk_dropout: c.dropout,
            residual: Residual::Published,
        };
        let (shape, _) = golden.get("in.tokens");
        let size = Size { batch: shape[0], text: shape[1] };
        let mut state = StateSpec::default();
        let o = &golden.optimizer;
        let optimizer = Optimizer { beta1: o.betas[0], beta2: o.betas[1], eps: o.eps, ..Optimizer::ADAM };
        let mut cx = PassCx::new(&mut state, &CpuTarget);
        let train = program::train(&mut cx, &model, size, Pictures::Floats, &optimizer).unwrap();
        let gradients = program::mean_gradients(&mut cx, &model, size, Pictures::Floats).unwrap();
        let logits = logits(&mut state, &model, size);
        let slots = RunSlots::declare(&mut state).unwrap();
        let case = Self { golden: golden.clone(), state, slots, logits, gradients, train, size };
        let mut ours: Vec<String> = case.parameters().map(|(_, s)| s.name.clone()).collect();
        ours.sort();
        assert_eq!(ours, golden.parameters(), "parameter names");
        case
    }

    pub fn parameters(&self) -> impl Iterator<Item = (SlotId, &Slot)> {
        self.state.iter().filter(|(_, s)| s.kind == SlotKind::Parameter)
    }

    pub fn steps(&self) -> usize {
        self.golden.optimizer.steps
    }

    /// The contents a slot starts with.
    pub fn initial(&self, slot: &Slot) -> Tensor<f64> {
        match slot.name.as_str() {
            "optimizer.lr" => Tensor::real([], vec![self.golden.optimizer.lr]),
            name if slot.kind == SlotKind::Parameter => {
                let (shape, data) = self.golden.get(&format!("w.{name}"));
                assert_eq!(shape, &slot.ty.shape, "{name}");
                Tensor::real(shape.clone(), data.to_vec())
            }
            _ => Tensor::zeros(&slot.ty),
        }
    }

    /// The program inputs, in the order of declaration.
    pub fn inputs(&self) -> Vec<(String, Tensor<f64>)> {
        let Size { batch, text } = self.size;
        let ids = |name: &str| -> Vec<u32> { self.golden.get(name).1.iter().map(|&x| x as u32).collect() };
        let targets = ids("in.targets");
        let behind = |fill: u32| {
            targets
                .chunks(text)
                .flat_map(|row| std::iter::once(fill).chain(row.iter().copied()))
                .collect::<Vec<_>>()
        };
        let weights = (0..batch * (text + 1)).map(|i| if i % (text + 1) == 0 { 0.0 } else { 1.0 }).collect();
        vec![
            ("images".into(), rgb_last(self.golden.get("in.images"))),
            ("tokens".into(), Tensor::u32([batch, text], ids("in.tokens"))),
            ("targets".into(), Tensor::u32([batch, text + 1], behind(0))),
            ("weights".into(), Tensor::real([batch, text + 1], weights)),
            ("samples".into(), Tensor::u32([batch], (0..batch as u32).collect())),
        ]
    }
}

/// Logits and image features as outputs.
fn logits(state: &mut StateSpec, model: &SeemoreConfig, size: Size) -> Graph {
    let mut g = Graph::new();
    let inputs = Inputs::declare(&mut g, model, size, Pictures::Floats);
    let mut cx = Context::new(&mut g, state, Mode::Eval);
    let features = seemore::image_features(&mut cx, model, inputs.images).unwrap();
    let logits = model.logits(&mut cx, inputs.images, inputs.tokens).unwrap();
    g.output("out.logits", logits);
    g.output("out.image_features", features);
    g
}

/// `[B, 3, S, S]` to `[B, S, S, 3]`.
fn rgb_last((shape, data): (&Shape, &[f64])) -> Tensor<f64> {
    let [b, c, h, w] = shape[..] else { panic!("pictures {shape}") };
    Tensor::from_fn([b, h, w, c], |i| {
        let (ch, x, y, n) = (i % c, i / c % w, i / c / w % h, i / c / w / h);
        data[((n * c + ch) * h + y) * w + x]
    })
}

/// Collects how much of each bound was used.
pub struct Report<'a> {
    case: &'a Case,
    what: String,
    bounds: [(Kind, f64, f64, String); 3],
}

impl<'a> Report<'a> {
    pub fn new(case: &'a Case, what: &str, bound: impl Fn(Kind) -> f64) -> Self {
        let bounds = [Kind::Value, Kind::Gradient, Kind::Trained].map(|k| (k, bound(k), 0.0, String::new()));
        Self { case, what: what.into(), bounds }
    }

    fn add(&mut self, kind: Kind, name: &str, have: &[f64], want: &[f64]) {
        let entry = self.bounds.iter_mut().find(|b| b.0 == kind).unwrap();
        let share = relative_difference(have, want) / entry.1;
        if share > entry.2 || entry.3.is_empty() {
            (entry.2, entry.3) = (share, name.to_string());
        }
    }

    /// Compares a run of `case.logits` or `case.gradients`.
    pub fn outputs(&mut self, graph: &Graph, values: &[Vec<f64>]) {
        for ((name, _), have) in graph.outputs().iter().zip(values) {
            match name.as_str() {
                "weight" => {}
                "loss" => {
                    let (weight, want) = (values[1][0], self.case.golden.get("out.loss").1.to_vec());
                    self.add(Kind::Value, "out.loss", &[have[0] / weight], &want);
                }
                name if name.starts_with("out.") => {
                    let want = self.case.golden.get(name).1.to_vec();
                    self.add(Kind::Value, name, have, &want);
                }
                name => {
                    let want = self.case.golden.get(&format!("g.{name}")).1.to_vec();
                    self.add(Kind::Gradient, name, have, &want);
                }
            }
        }
    }

    /// Compares the losses before each training step, as one tensor.
    pub fn losses(&mut self, have: &[f64]) {
        let want = self.case.golden.get("train.losses").1.to_vec();
        self.add(Kind::Value, "train.losses", have, &want);
    }

    /// Compares a weight after training, where the case has it.
    pub fn trained(&mut self, name: &str, have: &[f64]) {
        if let Some((_, want)) = self.case.golden.find(&format!("after.{name}")) {
            let want = want.to_vec();
            self.add(Kind::Trained, name, have, &want);
        }
    }

    /// The bounds that were exceeded, each with the share that was used. Nothing is printed.
    #[allow(dead_code)] // one of the test binaries breaks a case on purpose
    pub fn exceeded(&self) -> Vec<(Kind, f64)> {
        self.bounds.iter().filter(|b| b.2 > 1.0).map(|b| (b.0, b.2)).collect()
    }

    /// Prints how much of each bound was used, and fails if any was exceeded.
    pub fn finish(self) {
        let name = &self.case.golden.name;
        for (kind, bound, share, worst) in &self.bounds {
            println!(
                "golden {name} {}: {kind:?} uses {:.0}% of {bound:.0e} (worst: {worst})",
                self.what,
                share * 100.0
            );
        }
        for (kind, bound, share, worst) in &self.bounds {
            assert!(
                *share <= 1.0,
                "golden {name} {}: {kind:?} {worst} is {share:.2} times the bound {bound:.0e}",
                self.what
            );
        }
    }
}
