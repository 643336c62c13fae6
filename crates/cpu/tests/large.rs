//! Shapes at which work is really cut into pieces: against the reference in f64, and on several numbers of
//! threads to the bit.

use ocelli_cpu::{CpuExecutor, CpuTarget};
use ocelli_ir::dropout::Dropout;
use ocelli_ir::op::{Fill, Gen, Sample};
use ocelli_ir::ops::*;
use ocelli_ir::{Op, TensorType};
use ocelli_testkit::case::{Case, Lie};

fn normal(shape: &[usize]) -> (TensorType, Fill) {
    (TensorType::f32(shape.to_vec()), Fill::Normal)
}

fn ints(shape: &[usize], below: u32) -> (TensorType, Fill) {
    (TensorType::u32(shape.to_vec()), Fill::Below(below))
}

fn check(op: impl Into<Op>, inputs: Vec<(TensorType, Fill)>, bound: f64) {
    let sample = Sample::new(op, inputs);
    let executors = [1, 2, 3].map(|n| CpuExecutor::new(Some(n)).unwrap());
    for lie in [Lie::Dense, Lie::Views] {
        let case = Case::new(&CpuTarget, &sample, &mut Gen::new(7), lie);
        case.check(&executors[1], bound, 0.0);
        let one = case.run(&executors[0]);
        assert!(
            one == case.run(&executors[1]) && one == case.run(&executors[2]),
            "{}: threads matter",
            sample.op
        );
    }
}

#[test]
fn matmul_with_many_rows() {
    for (ta, tb) in [(false, false), (false, true), (true, false), (true, true)] {
        let with = |x, y, swap| normal(&if swap { [y, x] } else { [x, y] });
        let inputs = vec![with(610, 70, ta), with(70, 130, tb), normal(&[130])];
        check(MatMul { ta, tb, bias: true }, inputs, 2e-6);
    }
}

#[test]
fn matmul_with_a_long_contraction() {
    check(MatMul { ta: true, tb: false, bias: false }, vec![normal(&[9000, 40]), normal(&[9000, 33])], 3e-6);
    check(
        MatMul { ta: true, tb: false, bias: true },
        vec![normal(&[9000, 5]), normal(&[9000, 70]), normal(&[70])],
        3e-6,
    );
}

#[test]
fn matmul_of_batches() {
    check(
        MatMul { ta: false, tb: true, bias: false },
        vec![normal(&[3, 5, 40, 64]), normal(&[3, 5, 90, 64])],
        2e-6,
    );
}

#[test]
fn layer_norm_of_many_rows() {
    let (rows, c) = ([4, 90], 200);
    let x = normal(&[rows[0], rows[1], c]);
    check(LayerNorm { eps: 1e-5 }, vec![x.clone(), normal(&[c]), normal(&[c])], 2e-6);
    let stats = [normal(&[360]), (TensorType::f32([360]), Fill::Range(0.5, 2.0))];
    check(LayerNormGrad, [vec![x.clone(), normal(&[c])], stats.to_vec(), vec![x]].concat(), 3e-6);
}

#[test]
fn layer_norm_far_from_zero() {
    // The rounding of the mean to f32 alone would be 100 times the bound.
    let x = (TensorType::f32([40, 130]), Fill::Range(1000.0, 1001.0));
    check(LayerNorm { eps: 1e-5 }, vec![x, normal(&[130]), normal(&[130])], 2e-6);
}

#[test]
fn rms_norm_of_many_rows() {
    let (x, c) = (normal(&[4, 90, 200]), normal(&[200]));
    check(RmsNorm { eps: 1e-5 }, vec![x.clone(), c.clone()], 1e-6);
    let factor = (TensorType::f32([360]), Fill::Range(0.5, 2.0));
    check(RmsNormGrad, vec![x.clone(), c, factor, x], 2e-6);
}

#[test]
fn rope_at_far_positions() {
    for positions in [&[130][..], &[3, 130]] {
        let inputs = vec![normal(&[3, 130, 4, 24]), ints(positions, 100_000)];
        check(Rope { theta: 10_000.0, inverse: false }, inputs, 1e-6);
    }
}

#[test]
fn sums_over_many_elements() {
    let x = normal(&[7, 300, 150]);
    for axes in [vec![], vec![0], vec![1], vec![2], vec![0, 1], vec![1, 2], vec![0, 2], vec![0, 1, 2]] {
        check(ReduceSum { axes }, vec![x.clone()], 3e-6);
    }
    check(SumSquares, vec![x, normal(&[40_000])], 1e-6);
}

#[test]
fn elementwise_of_many_elements() {
    check(Add, vec![normal(&[300, 150]), normal(&[150])], 1e-6);
    check(Mul, vec![normal(&[300, 150]), normal(&[300, 1])], 1e-6);
    check(Gelu, vec![normal(&[300, 150])], 1e-6);
    check(GeluGrad, vec![normal(&[300, 150]), normal(&[300, 150])], 1e-6);
    check(GeluTanh, vec![normal(&[300, 150])], 1e-6);
    check(GeluTanhGrad, vec![normal(&[300, 150]), normal(&[300, 150])], 1e-6);
    check(Swiglu, vec![normal(&[300, 150]); 2], 1e-6);
    check(SwigluGrad, vec![normal(&[300, 150]); 3], 1e-6);
    check(Softmax, vec![normal(&[300, 150])], 1e-6);
    check(Contiguous, vec![normal(&[30, 50, 40])], 0.0);
    check(Pad { axis: 1, before: 3, total: 70 }, vec![normal(&[30, 50, 40])], 0.0);
}

fn adam_inputs(n: usize) -> Vec<(TensorType, Fill)> {
    let scalar = TensorType::f32([]);
    vec![
        normal(&[n]),
        normal(&[n]),
        (TensorType::f32([n]), Fill::Range(0.1, 2.0)),
        normal(&[n]),
        (scalar.clone(), Fill::Range(0.5, 1.0)),
        (scalar, Fill::Range(0.001, 0.1)),
        (TensorType::u32([]), Fill::Range(1.0, 100.0)),
        (TensorType::u32([]), Fill::Range(1.0, 1.0)),
    ]
}

#[test]
fn adam_of_many_elements() {
    let op = Adam { beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.1, decoupled: true };
    check(op, adam_inputs(50_000), 1e-6);
}

#[test]
fn rows_of_a_large_vocabulary() {
    let (n, v) = (300, 500);
    let ids = ints(&[n], v as u32);
    let weights = (TensorType::f32([n]), Fill::Range(0.0, 2.0));
    check(CrossEntropy, vec![normal(&[n, v]), ids.clone(), weights.clone()], 1e-6);
    let more = [(TensorType::f32([n]), Fill::Range(6.0, 7.0)), normal(&[])];
    check(CrossEntropyGrad, [vec![normal(&[n, v]), ids.clone(), weights], more.to_vec()].concat(), 1e-6);
    check(GatherRows, vec![normal(&[v, 120]), ids.clone()], 0.0);
    check(ScatterRows { rows: v }, vec![ids, normal(&[n, 120])], 1e-6);
}

/// (rows, width, words): many tiles; many chunks of the vocabulary in the gradient; one of each.
const HEADS: [[usize; 3]; 3] = [[300, 70, 1500], [3000, 20, 1500], [40, 24, 78]];

#[test]
fn the_loss_of_a_large_head() {
    for [n, c, v] in HEADS {
        let inputs = [
            vec![
                normal(&[n, c]),
                (TensorType::f32([v, c]), Fill::Range(-0.5, 0.5)),
                ints(&[n], v as u32 + 9),
            ],
            vec![(TensorType::f32([n]), Fill::Range(0.0, 2.0))],
        ]
        .concat();
        check(LinearCrossEntropy, inputs.clone(), 1e-6);
        let more = vec![(TensorType::f32([n]), Fill::Range(7.0, 8.0)), normal(&[])];
        check(LinearCrossEntropyGrad, [inputs, more].concat(), 2e-6);
    }
}

#[test]
fn dropout_of_many_rows() {
    let op = DropoutOp { dropout: Dropout::new(0.1, "a.b").unwrap() };
    let keys = [ints(&[2], u32::MAX), ints(&[], 1000), ints(&[5], 1000)];
    check(op, [vec![normal(&[5, 65, 100])], keys.to_vec()].concat(), 1e-6);
}

#[test]
fn pixels_and_patches() {
    let picture = (TensorType::new(ocelli_ir::DType::U8, [4, 96, 96, 3]), Fill::Below(256));
    check(NormalizePixels::IMAGENET, vec![picture], 1e-6);
    check(Patchify { patch: 16 }, vec![normal(&[4, 96, 96, 3])], 0.0);
    check(Unpatchify { patch: 16, picture: [4, 96, 96, 3].into() }, vec![normal(&[4, 36, 768])], 0.0);
}

/// (batch, queries, keys, heads, key heads, width of a head)
const ATTENTIONS: [([usize; 6], bool); 5] = [
    ([2, 65, 65, 8, 8, 16], true),
    ([1, 130, 130, 3, 3, 24], true),
    ([2, 37, 37, 4, 4, 64], false),
    ([2, 40, 70, 6, 2, 20], false),
    ([1, 257, 257, 2, 1, 16], true),
];

#[test]
fn attention_of_many_keys() {
    for (i, ([b, tq, tk, h, g, d], causal)) in ATTENTIONS.into_iter().enumerate() {
        let (kv_len, dropout) = (i % 2 == 0, if i % 3 == 0 { Dropout::new(0.2, "attn") } else { None });
        let op = Attention { causal, scale: 1.0 / (d as f64).sqrt(), kv_len, dropout };
        let (q, kv, lse) = (
            normal(&[b, tq, h, d]),
            normal(&[b, tk, g, d]),
            (TensorType::f32([b, h, tq]), Fill::Range(4.0, 5.0)),
        );
        let mut extras = vec![];
        if kv_len {
            extras.push(ints(&[b], tk as u32 + 1));
        }
        if dropout.is_some() {
            extras.extend([ints(&[2], u32::MAX), ints(&[], 1000), ints(&[b], 1000)]);
        }
        check(op.clone(), [vec![q.clone(), kv.clone(), kv.clone()], extras.clone()].concat(), 2e-6);
        let inputs = [vec![q.clone(), kv.clone(), kv, q.clone(), lse, q], extras].concat();
        check(AttentionGrad { forward: op }, inputs, 4e-6);
    }
}
