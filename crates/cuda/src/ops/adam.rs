//! `adam`: an optimiser step of one parameter, or of many in one launch.

use crate::lower::{Arg, Call, Defines, KernelCall, Lowered, Lowering, c_float, c_type};
use ocelli_ir::DType;
use ocelli_ir::ops::Adam;

/// Elements that a block takes.
const CHUNK: usize = 4096;

fn defines(op: &Adam) -> Defines {
    Defines::new()
        .with("BETA1", c_float(op.beta1))
        .with("BETA2", c_float(op.beta2))
        // 1 - b^t is -expm1(t log b): without it small t would lose digits in f32.
        .with("LOG_BETA1", c_float(op.beta1.ln()))
        .with("LOG_BETA2", c_float(op.beta2.ln()))
        .with("KEEP1", c_float(1.0 - op.beta1))
        .with("KEEP2", c_float(1.0 - op.beta2))
        .with("EPS", c_float(op.eps))
        .with("DECAY", c_float(op.weight_decay))
        .with("DECOUPLED", u8::from(op.decoupled))
        .with("CHUNK", CHUNK)
}

/// One parameter.
pub fn one(op: &Adam, cx: &Lowering) -> Option<Lowered> {
    let n = cx.ins.first()?.view.shape.numel();
    let aligned = cx.ins[..4].iter().chain(&cx.outs).all(|t| t.align >= 16);
    Some(many(op, &[n], &[None], aligned))
}

/// Parameters of these sizes. Inputs are p, m, v, g of the first, then of the second, and so on, then scale, lr, step and
/// apply; outputs p, m, v of the first, and so on, then the new p in 16 bits of those that `halves` has a type for, which is the
/// same for all. `aligned`: all of them start at multiples of 16 bytes.
pub fn many(op: &Adam, sizes: &[usize], halves: &[Option<DType>], aligned: bool) -> Lowered {
    let mut done = Lowered::default();
    let mut half_outs = 3 * sizes.len()..;
    for (i, (&n, half)) in sizes.iter().zip(halves).enumerate() {
        let half = half.and_then(|ty| half_outs.next().map(|out| (out, ty)));
        for start in (0..n).step_by(CHUNK) {
            let (at, count) = (start * size_of::<f32>(), (n - start).min(CHUNK) as u64);
            done.table.extend((0..4).map(|k| (Arg::In(4 * i + k, at), count)));
            done.table.extend((0..3).map(|k| (Arg::Out(3 * i + k, at), count)));
            // An entry without elements is none.
            done.table.push(match half {
                Some((out, ty)) => (Arg::Out(out, start * ty.size()), count),
                None => (Arg::Out(3 * i, at), 0),
            });
        }
    }
    let half = halves.iter().flatten().next().copied();
    let scalars = (0..4).map(|k| Arg::In(4 * sizes.len() + k, 0));
    done.calls.push(Call::Kernel(KernelCall {
        entry: "adam",
        source: defines(op)
            .with("ALIGNED", u8::from(aligned))
            .with("HALVES", u8::from(half.is_some()))
            .with("TH", c_type(half.unwrap_or(DType::Bf16)))
            .source(include_str!("adam.cu")),
        grid: [(done.table.len() / 8).max(1) as u32, 1, 1],
        block: 256,
        shared: 0,
        args: std::iter::once(Arg::Table).chain(scalars).collect(),
    }));
    if done.table.is_empty() {
        done.calls.clear();
    }
    done
}
