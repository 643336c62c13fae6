//! `dropout_weights`: each weight of an attention kept or not by its coordinates alone, in tiles as attention decides.

use super::dropout::by_coordinates;
use crate::lower::{Lowered, Lowering, c_float};
use ocelli_ir::ops::DropoutWeights;

pub fn lower(op: &DropoutWeights, cx: &Lowering) -> Option<Lowered> {
    let (threshold, site) = (op.dropout.threshold, op.dropout.site);
    let prologue = format!(
        "    const uint2 key = dropout_key(q0[0], q0[1], {:#x}u, {:#x}u);\n    \
         const u32 step = q1[0], sample = q2[c0];\n",
        site as u32,
        (site >> 32) as u32
    );
    // Two neighbours are decided by one call: the compiler sees that it is the same.
    let body = format!(
        "        const uint4 words = dropout_words(key, step, sample, c1, c2 / 16u, c3 / 16u, c2 % 8u * 4u + c3 % 8u / 2u);\n        \
         const u32 word = dropout_word(words, c2 % 16u / 8u, c3 % 16u / 8u);\n        \
         const float y0 = dropout_bit(word, c3 % 2u, {threshold}u) ? x0 * {} : 0.0f;\n",
        c_float(op.dropout.scale())
    );
    by_coordinates(cx, cx.ins.first()?.view.shape.0.clone(), [prologue, body])
}
