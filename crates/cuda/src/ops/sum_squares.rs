//! `sum_squares`: many tensors as one vector. Blocks sum chunks; one block adds the blocks' sums in their order.

use crate::lower::{Arg, Call, Defines, KernelCall, Lowered, Lowering, c_type};

/// Elements that a block takes.
const CHUNK: usize = 16384;

pub fn lower(cx: &Lowering) -> Option<Lowered> {
    let mut done = Lowered::default();
    let dtype = cx.ins.first().map_or(ocelli_ir::DType::F32, |t| t.dtype);
    if cx.ins.iter().any(|t| t.dtype != dtype) {
        return None;
    }
    for (i, t) in cx.ins.iter().enumerate() {
        let n = t.view.shape.numel();
        let chunk = |start: usize| (Arg::In(i, start * dtype.size()), (n - start).min(CHUNK) as u64);
        done.table.extend((0..n).step_by(CHUNK).map(chunk));
    }
    let parts = done.table.len();
    if parts == 0 {
        done.calls.push(Call::Zero(Arg::Out(0, 0), size_of::<f32>()));
        return Some(done);
    }
    let sums = done.reserve(parts * size_of::<f32>());
    let source =
        Defines::new().with("T", c_type(dtype)).with("PARTS", parts).source(include_str!("sum_squares.cu"));
    let call = |entry, blocks: usize, args| {
        Call::Kernel(KernelCall {
            entry,
            source: source.clone(),
            grid: [blocks as u32, 1, 1],
            block: 256,
            shared: 0,
            args,
        })
    };
    done.calls = vec![
        call("sum_squares", parts, vec![Arg::Table, sums]),
        call("add_parts", 1, vec![sums, Arg::Out(0, 0)]),
    ];
    Some(done)
}
