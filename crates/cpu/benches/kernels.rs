//! Speed of single launches at the published sizes: `cargo bench -p ocelli-cpu`, or with a word behind `--` only
//! the lines that contain it. Prints the best of many runs, GFLOP/s and GB/s as the ops count them.

use ocelli_cpu::CpuExecutor;
use ocelli_ir::dropout::Dropout;
use ocelli_ir::executor::{Executor, Input, Program};
use ocelli_ir::op::{Fill, Gen, Sample};
use ocelli_ir::ops::*;
use ocelli_ir::plan::{Launch, Operand, Place, Plan};
use ocelli_ir::tensor::{Data, Tensor};
use ocelli_ir::{Op, StateSpec, TensorType, View};
use std::sync::Arc;
use std::time::{Duration, Instant};

type Inputs = Vec<(TensorType, Fill)>;

fn normal(shape: &[usize]) -> (TensorType, Fill) {
    (TensorType::f32(shape.to_vec()), Fill::Normal)
}

fn ints(shape: &[usize], below: u32) -> (TensorType, Fill) {
    (TensorType::u32(shape.to_vec()), Fill::Below(below))
}

fn bytes(t: &Tensor<f32>) -> Vec<u8> {
    match &t.data {
        Data::Real(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Data::U32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Data::U8(v) => v.clone(),
    }
}

/// One launch, its inputs in program inputs, its outputs in the arena.
fn plan(op: Op, types: &[TensorType]) -> Plan {
    let operand = |place, ty: &TensorType| Operand {
        place,
        contents: 0,
        view: View::contiguous(ty.shape.clone()),
        dtype: ty.dtype,
    };
    let ins = types.iter().enumerate().map(|(i, ty)| operand(Place::Input(i), ty)).collect();
    let mut arena = 0;
    let outs = op.infer(&types.iter().collect::<Vec<_>>()).unwrap_or_default();
    let outs = outs.iter().map(|ty| {
        arena += ty.bytes().next_multiple_of(64);
        operand(Place::Arena(arena - ty.bytes().next_multiple_of(64)), ty)
    });
    let outs = outs.collect();
    let launch = Launch { op, scope: "".into(), inputs: ins, outputs: outs, branch: 0, after: vec![] };
    Plan {
        name: "bench".into(),
        launches: vec![launch],
        inputs: types.iter().map(|ty| ("x".into(), ty.clone())).collect(),
        outputs: vec![],
        arena_bytes: arena,
        state: Arc::new(StateSpec::default()),
    }
}

fn bench(filter: &str, executor: &CpuExecutor, what: &str, op: impl Into<Op>, inputs: Inputs) {
    let sample = Sample::new(op, inputs);
    let line = format!("{} {what}", sample.op);
    if !line.contains(filter) {
        return;
    }
    let data: Vec<Vec<u8>> = sample.draw::<f32>(&mut Gen::new(1)).iter().map(bytes).collect();
    let data: Vec<Input<'_>> = data.iter().map(Input::from).collect();
    let types: Vec<TensorType> = sample.inputs.iter().map(|(ty, _)| ty.clone()).collect();
    let plan = plan(sample.op, &types);
    let (flops, moved) = plan.cost();
    let ready = executor.new_state(&plan.state, 0).and_then(|s| Ok((s, executor.load_program(plan)?)));
    let (mut state, mut program) = match ready {
        Ok(ready) => ready,
        Err(e) => return eprintln!("{line}: {e}"),
    };
    let (mut best, begin) = (f64::INFINITY, Instant::now());
    while begin.elapsed() < Duration::from_millis(300) {
        match program.run_timed(&mut *state, &data) {
            Ok(times) => best = best.min(times[0].seconds),
            Err(e) => return eprintln!("{line}: {e}"),
        }
    }
    let s = best;
    let (gflops, gbytes) = (flops as f64 / s / 1e9, moved as f64 / s / 1e9);
    println!("{line:<44} {:>9.1} us {gflops:>8.1} GFLOP/s {gbytes:>7.1} GB/s", s * 1e6);
}

/// A linear layer and the two products of its gradient.
fn linear(run: &dyn Fn(&str, Op, Inputs), m: usize, k: usize, n: usize) {
    let op = |ta, tb, bias| MatMul { ta, tb, bias }.into();
    let what = |s: &str| format!("{m}x{k}x{n} {s}");
    run(&what("forward"), op(false, true, true), vec![normal(&[m, k]), normal(&[n, k]), normal(&[n])]);
    run(&what("data grad"), op(false, false, false), vec![normal(&[m, n]), normal(&[n, k])]);
    run(&what("weight grad"), op(true, false, false), vec![normal(&[m, n]), normal(&[m, k])]);
}

fn attention(run: &dyn Fn(&str, Op, Inputs), [b, t, h, d]: [usize; 4], causal: bool, dropout: bool) {
    let dropout = Dropout::new(0.1, "attn").filter(|_| dropout);
    let op = Attention { causal, scale: 1.0 / (d as f64).sqrt(), kv_len: false, dropout };
    let x = normal(&[b, t, h, d]);
    let keys = match dropout {
        Some(_) => vec![ints(&[2], 9), ints(&[], 9), ints(&[b], 9)],
        None => vec![],
    };
    let what = format!("B{b} T{t} H{h} D{d}{}", if dropout.is_some() { " dropout" } else { "" });
    run(&what, op.clone().into(), [vec![x.clone(); 3], keys.clone()].concat());
    let lse = (TensorType::f32([b, h, t]), Fill::Range(5.0, 6.0));
    let inputs = [vec![x.clone(); 4], vec![lse, x], keys].concat();
    run(&what, AttentionGrad { forward: op }.into(), inputs);
}

fn layers(run: &dyn Fn(&str, Op, Inputs), rows: usize, c: usize) {
    let (x, col) = (normal(&[rows, c]), normal(&[c]));
    let row = (TensorType::f32([rows]), Fill::Range(0.5, 1.0));
    let what = format!("{rows}x{c}");
    run(&what, LayerNorm { eps: 1e-5 }.into(), vec![x.clone(), col.clone(), col.clone()]);
    run(&what, LayerNormGrad.into(), vec![x.clone(), col, row.clone(), row, x.clone()]);
    run(&what, Add.into(), vec![x.clone(), x.clone()]);
    run(&what, ReduceSum { axes: vec![0] }.into(), vec![x.clone()]);
    let keys = vec![ints(&[2], 9), ints(&[], 9), ints(&[16], 9)];
    let op = DropoutOp { dropout: Dropout { threshold: 6554, site: 1 } };
    run(&what, op.into(), [vec![normal(&[16, rows / 16, c])], keys].concat());
    let wide = normal(&[rows, 4 * c]);
    let what = format!("{rows}x{}", 4 * c);
    run(&what, Gelu.into(), vec![wide.clone()]);
    run(&what, GeluGrad.into(), vec![wide.clone(), wide]);
}

/// The loss behind a large head, beside the products and the loss that it stands for.
fn large_head(run: &dyn Fn(&str, Op, Inputs), n: usize, c: usize, v: usize) {
    let (h, w, ids) =
        (normal(&[n, c]), (TensorType::f32([v, c]), Fill::Range(-0.1, 0.1)), ints(&[n], v as u32));
    let row = (TensorType::f32([n]), Fill::Range(10.0, 11.0));
    let inputs = vec![h, w, ids.clone(), row.clone()];
    let what = format!("{n}x{c}x{v}");
    run(&what, LinearCrossEntropy.into(), inputs.clone());
    let one = (TensorType::f32([]), Fill::Range(0.5, 1.0));
    run(&what, LinearCrossEntropyGrad.into(), [inputs, vec![row.clone(), one.clone()]].concat());
    linear(run, n, c, v);
    let logits = vec![normal(&[n, v]), ids, row.clone()];
    run(&format!("{n}x{v}"), CrossEntropy.into(), logits.clone());
    run(&format!("{n}x{v}"), CrossEntropyGrad.into(), [logits, vec![row, one]].concat());
}

/// What a decoder's block with rotary positions has beside its products.
fn decoder(run: &dyn Fn(&str, Op, Inputs), rows: usize, c: usize) {
    let (x, col, row) = (normal(&[rows, c]), normal(&[c]), (TensorType::f32([rows]), Fill::Range(0.5, 1.0)));
    let what = format!("{rows}x{c}");
    run(&what, RmsNorm { eps: 1e-5 }.into(), vec![x.clone(), col.clone()]);
    run(&what, RmsNormGrad.into(), vec![x.clone(), col, row, x]);
    let heads = vec![normal(&[1, rows, c / 64, 64]), ints(&[rows], rows as u32)];
    run(&what, Rope { theta: 10_000.0, inverse: false }.into(), heads);
    let wide = normal(&[rows, c / 3 * 8]);
    let what = format!("{rows}x{}", c / 3 * 8);
    run(&what, Swiglu.into(), vec![wide.clone(); 2]);
    run(&what, SwigluGrad.into(), vec![wide.clone(); 3]);
    run(&what, GeluTanh.into(), vec![wide.clone()]);
    run(&what, GeluTanhGrad.into(), vec![wide; 2]);
}

fn main() {
    let filter = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    let threads = std::env::var("OCELLI_THREADS").ok().and_then(|n| n.parse().ok());
    let executor = match CpuExecutor::new(threads) {
        Ok(executor) => executor,
        Err(e) => return eprintln!("{e}"),
    };
    println!("{} threads", executor.threads());
    let run = |what: &str, op: Op, inputs: Inputs| bench(&filter, &executor, what, op, inputs);
    for (k, n) in [(128, 384), (128, 128), (128, 512), (512, 128)] {
        linear(&run, 1040, k, n);
    }
    for (k, n) in [(512, 1536), (512, 512), (512, 2048), (2048, 512)] {
        linear(&run, 592, k, n);
    }
    linear(&run, 16_448, 128, 128);
    attention(&run, [16, 65, 8, 16], true, true);
    attention(&run, [16, 65, 8, 16], true, false);
    attention(&run, [16, 37, 8, 64], false, true);
    attention(&run, [4, 257, 8, 16], true, true);
    layers(&run, 1040, 128);
    layers(&run, 592, 512);
    let n = 1 << 22;
    let (p, one) = (normal(&[n]), (TensorType::f32([]), Fill::Range(0.5, 1.0)));
    let adam = Adam { beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.0, decoupled: true };
    let v = (TensorType::f32([n]), Fill::Range(0.1, 1.0));
    let step = (TensorType::u32([]), Fill::Range(1.0, 9.0));
    run("4 M", adam.into(), vec![p.clone(), p.clone(), v, p.clone(), one.clone(), one, step]);
    run("4 M", SumSquares.into(), vec![p]);
    let (ids, weights) = (ints(&[1040], 78), (TensorType::f32([1040]), Fill::Range(0.5, 1.0)));
    run("1040x78", CrossEntropy.into(), vec![normal(&[1040, 78]), ids.clone(), weights]);
    run("1040x128 of 78", GatherRows.into(), vec![normal(&[78, 128]), ids.clone()]);
    run("1040x128 to 78", ScatterRows { rows: 78 }.into(), vec![ids, normal(&[1040, 128])]);
    large_head(&run, 1024, 576, 49_152);
    decoder(&run, 1024, 576);
    let pictures = (TensorType::new(ocelli_ir::DType::U8, [16, 96, 96, 3]), Fill::Below(256));
    run("16x96x96x3", NormalizePixels::IMAGENET.into(), vec![pictures]);
    run("16x96x96x3", Patchify { patch: 16 }.into(), vec![normal(&[16, 96, 96, 3])]);
}
