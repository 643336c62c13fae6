//! Ops of Llama-style decoders and SigLIP-style towers, against values and gradients of PyTorch: on the reference
//! evaluation in f64 and f32, and on the CPU executor with one and two threads.

use ocelli_cpu::CpuExecutor;
use ocelli_ir::executor::{Executor, Input};
use ocelli_ir::ops::Attention;
use ocelli_ir::reference::evaluate;
use ocelli_ir::tensor::{Data, Real, Tensor};
use ocelli_ir::{DType, Graph, GraphError, StateSpec, TensorType, Value};
use ocelli_passes::autodiff::{Wanted, gradients};
use ocelli_passes::compile;
use ocelli_testkit::host::{bytes, floats};
use ocelli_testkit::tensors::{Tensors, of_ops};
use ocelli_testkit::tolerance::{F64_BOUND, Kind, f32_bound, relative_difference};
use std::collections::HashMap;
use std::sync::Arc;

/// Inputs by name.
type Given = HashMap<String, Value>;

/// A case: its name, and its result from its inputs.
type Case = (&'static str, fn(&mut Graph, &Given) -> Result<Value, GraphError>);

const CASES: [Case; 8] = [
    ("rms_norm", |g, i| g.rms_norm(i["x"], i["weight"], 1e-5)),
    ("rope", |g, i| g.rope(i["x"], i["positions"], 10_000.0)),
    ("rope_of_rows", |g, i| g.rope(i["x"], i["positions"], 100.0)),
    ("swiglu_mlp", |g, i| {
        let (gate, up) = (g.linear(i["x"], i["gate"], None)?, g.linear(i["x"], i["up"], None)?);
        let inner = g.swiglu(gate, up)?;
        g.linear(inner, i["down"], None)
    }),
    ("grouped_attention", |g, i| {
        let op = Attention { causal: true, scale: 1.0 / 8.0_f64.sqrt(), kv_len: false, dropout: None };
        g.one(op, &[i["q"], i["k"], i["v"]])
    }),
    ("gelu_tanh", |g, i| g.gelu_tanh(i["x"])),
    ("linear_cross_entropy", |g, i| {
        g.linear_cross_entropy(i["hidden"], i["weight"], i["targets"], i["weights"])
    }),
    // One table, read at two places.
    ("tied_head", |g, i| {
        let x = g.gather_rows(i["table"], i["ids"])?;
        let hidden = g.linear(x, i["mix"], None)?;
        g.linear_cross_entropy(hidden, i["table"], i["targets"], i["weights"])
    }),
];

/// A case ready to run: outputs are the result, then the gradients.
struct Program {
    graph: Graph,
    inputs: Vec<(String, Tensor<f64>)>,
    /// Name and values that PyTorch has, in the order of the outputs.
    want: Vec<(String, Vec<f64>)>,
}

impl Program {
    fn new((name, build): Case, file: &Tensors) -> Self {
        let mut g = Graph::new();
        let (mut given, mut inputs) = (Given::new(), vec![]);
        for input in file.behind(&format!("{name}/in.")) {
            let (shape, data) = file.get(&format!("{name}/in.{input}"));
            let ids = ["positions", "targets", "ids"].contains(&input);
            let tensor = match ids {
                true => Tensor::u32(shape.clone(), data.iter().map(|&x| x as u32).collect()),
                false => Tensor::real(shape.clone(), data.to_vec()),
            };
            let dtype = if ids { DType::U32 } else { DType::F32 };
            given.insert(input.into(), g.input(input, TensorType::new(dtype, shape.clone())));
            inputs.push((input.to_string(), tensor));
        }
        let y = build(&mut g, &given).unwrap();
        let (loss, out) = match given.get("r") {
            Some(&r) => {
                let weighted = g.mul(y, r).unwrap();
                (g.sum_all(weighted).unwrap(), "out.y")
            }
            None => (y, "out.loss"),
        };
        g.output(out, y);
        let one = g.constant(1.0, DType::F32);
        let names = file.behind(&format!("{name}/g."));
        let wanted: Vec<Wanted<'_>> = names.iter().map(|&name| Wanted { value: given[name], name }).collect();
        let grads = gradients(&mut g, loss, one, &wanted).unwrap();
        names.iter().zip(grads).for_each(|(n, grad)| g.output(&format!("g.{n}"), grad));
        let want = |(out, _): &(String, Value)| (out.clone(), file.get(&format!("{name}/{out}")).1.to_vec());
        let want = g.outputs().iter().map(want).collect();
        Self { graph: g, inputs, want }
    }

    fn reference<R: Real>(&self) -> Vec<Vec<f64>> {
        let inputs = self.inputs.iter().map(|(n, t)| (n.clone(), t.to::<R>())).collect();
        let out = evaluate(&self.graph, &inputs, &mut HashMap::new()).unwrap();
        out.iter().map(|t| t.as_real().iter().map(|x| x.f64()).collect()).collect()
    }

    fn cpu(&self, threads: usize) -> Vec<Vec<f64>> {
        let executor = CpuExecutor::new(Some(threads)).unwrap();
        let spec = Arc::new(StateSpec::default());
        let plan = compile("golden", self.graph.clone(), &spec, executor.target()).unwrap();
        for launch in &plan.launches {
            let types: Vec<_> = launch.inputs.iter().map(|o| o.ty()).collect();
            assert!(executor.target().has_kernel(&launch.op, &types), "{} has no kernel", launch.op);
        }
        let mut state = executor.new_state(&spec, 0).unwrap();
        let mut program = executor.load(plan).unwrap();
        let inputs: Vec<Vec<u8>> = self.inputs.iter().map(|(_, t)| bytes(t)).collect();
        program.run(&mut *state, &inputs.iter().map(Input::from).collect::<Vec<_>>()).unwrap();
        (0..self.want.len()).map(|i| floats(&program.output(i).unwrap())).collect()
    }

    /// The outputs that are further from PyTorch than `bound` allows.
    fn far(&self, have: &[Vec<f64>], bound: impl Fn(Kind) -> f64) -> Vec<String> {
        let far = |((name, want), have): &(&(String, Vec<f64>), &Vec<f64>)| {
            let kind = if name.starts_with("g.") { Kind::Gradient } else { Kind::Value };
            relative_difference(have, want) > bound(kind)
        };
        self.want.iter().zip(have).filter(far).map(|((name, _), _)| name.clone()).collect()
    }
}

#[test]
fn ops_are_those_of_pytorch() {
    let file = of_ops("ops.safetensors");
    for case in CASES {
        let program = Program::new(case, &file);
        assert!(program.want.len() > 1, "{} has no gradient", case.0);
        let none: Vec<String> = vec![];
        assert_eq!(program.far(&program.reference::<f64>(), |_| F64_BOUND), none, "{} in f64", case.0);
        assert_eq!(program.far(&program.reference::<f32>(), f32_bound), none, "{} in f32", case.0);
        let one = program.cpu(1);
        assert_eq!(program.far(&one, f32_bound), none, "{} on the CPU", case.0);
        assert!(one == program.cpu(2), "{}: one and two threads differ", case.0);
    }
}

/// Each bound can fail: an input that is off by one part in five thousand is found in the result and in a gradient.
#[test]
fn bounds_find_a_slightly_wrong_input() {
    let whole = of_ops("ops.safetensors");
    for case in CASES {
        let mut found = vec![];
        let program = Program::new(case, &whole);
        for (input, _) in program.inputs.iter().filter(|(_, t)| matches!(t.data, Data::Real(_))) {
            let mut file = whole.clone();
            file.scale(&format!("{}/in.{input}", case.0), 1.0002);
            found.extend(program.far(&Program::new(case, &file).cpu(1), f32_bound));
        }
        for (name, _) in &program.want {
            assert!(found.contains(name), "{}: no input changes {name}", case.0);
        }
    }
}
