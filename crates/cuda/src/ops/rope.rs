//! `rope`: pairs of a head's elements turned by angles in f64, as everywhere.

use crate::elements::{Access, Loop, Place};
use crate::lower::{Arg, Lowered, Lowering};
use ocelli_ir::DType;
use ocelli_ir::ops::Rope;

pub fn lower(op: &Rope, cx: &Lowering) -> Option<Lowered> {
    let ([x, positions], [y]) = (&cx.ins[..], &cx.outs[..]) else { return None };
    let &[b, t, h, d] = x.shape() else { return None };
    let half = d / 2;
    // One thread a pair: both its halves are read and written.
    let place = vec![t * h * d, h * d, d, 1];
    let access = |arg, dtype, at: usize| Access {
        arg,
        dtype,
        // The second half starts where only single elements are sure to.
        align: if at == 0 { 256 } else { 1 },
        place: Place::Strides(place.clone()),
    };
    let second = |dtype: DType| half * dtype.size();
    let position =
        if positions.shape().len() == 1 { "q0[c1]".to_string() } else { format!("q0[c0 * {t}u + c1]") };
    let sign = if op.inverse { "-" } else { "" };
    let body = format!(
        "        double sine, cosine;\n        \
         sincos(double({position}) * pow({:e}, -2.0 * double(c3) / {d}.0), &sine, &cosine);\n        \
         const float s = {sign}float(sine), k = float(cosine);\n        \
         const float y0 = x0 * k - x1 * s, y1 = x1 * k + x0 * s;\n",
        op.theta
    );
    let one = Loop {
        space: vec![b, t, h, half],
        reads: vec![access(Arg::In(0, 0), x.dtype, 0), access(Arg::In(0, second(x.dtype)), x.dtype, 1)],
        writes: vec![access(Arg::Out(0, 0), y.dtype, 0), access(Arg::Out(0, second(y.dtype)), y.dtype, 1)],
        extra: vec![(Arg::In(1, 0), DType::U32)],
        body,
        coordinates: true,
        ..Loop::default()
    };
    Some(Lowered::kernel(one.kernel()))
}
