//! Attention at the shapes of models, each direction: heads that tensor cores take, whole and streamed, few queries, valid lengths.

use ocelli_ir::TensorType;
use ocelli_ir::dropout::Dropout;
use ocelli_ir::op::{Fill, Sample};
use ocelli_ir::ops::{Attention, AttentionGrad};

/// Batch, queries, keys, query heads, key heads, width of a head; causal, valid lengths, threshold of dropout.
type Shape = ([usize; 6], bool, bool, u16);

const SHAPES: &[Shape] = &[
    // The decoder and the vision transformer of the default model.
    ([2, 257, 257, 2, 2, 16], true, false, 6554),
    ([3, 257, 257, 1, 1, 16], true, true, 6554),
    ([2, 37, 37, 2, 2, 64], false, false, 6554),
    // Its last block reads one query.
    ([3, 1, 37, 2, 2, 64], false, false, 6554),
    ([2, 2, 37, 2, 1, 24], false, true, 6554),
    ([2, 3, 300, 2, 2, 9], false, true, 40_000),
    // A caption that is being written.
    ([3, 1, 257, 4, 2, 16], false, true, 0),
    // Streamed, and grouped heads.
    ([1, 350, 350, 4, 2, 16], true, false, 6554),
    ([1, 70, 90, 2, 1, 128], false, true, 40_000),
    ([2, 64, 64, 2, 2, 32], true, true, 0),
    ([2, 100, 100, 1, 1, 24], true, false, 33_000),
];

/// A sample of both directions for each shape.
pub fn attentions() -> Vec<Sample> {
    SHAPES.iter().flat_map(|shape| [false, true].map(|grad| sample(shape, grad))).collect()
}

fn sample(&([b, tq, tk, h, g, d], causal, kv_len, threshold): &Shape, grad: bool) -> Sample {
    let dropout = (threshold > 0).then_some(Dropout { threshold, site: 77 << 32 | 5 });
    let op = Attention { causal, scale: 1.0 / (d as f64).sqrt(), kv_len, dropout };
    let normal = |shape: [usize; 4]| (TensorType::f32(shape), Fill::Normal);
    let (q, kv) = ([b, tq, h, d], [b, tk, g, d]);
    let mut inputs = vec![normal(q), normal(kv), normal(kv)];
    if grad {
        // Above the scores, so that no weight is large.
        inputs.extend([normal(q), (TensorType::f32([b, h, tq]), Fill::Range(4.0, 6.0)), normal(q)]);
    }
    if kv_len {
        inputs.push((TensorType::u32([b]), Fill::Below(tk as u32 + 1)));
    }
    if dropout.is_some() {
        let keys = [TensorType::u32([2]), TensorType::u32([]), TensorType::u32([b])];
        inputs.extend(keys.map(|ty| (ty, Fill::Below(1 << 20))));
    }
    if grad { Sample::no_gradient(AttentionGrad { forward: op }, inputs) } else { Sample::new(op, inputs) }
}
