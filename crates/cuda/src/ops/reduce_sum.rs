//! `reduce_sum`: sums over axes of a view, in an order that depends on shapes alone.
//!
//! Where neighbours of the result lie side by side in memory, a thread takes one of them and runs over the summed axes;
//! the rows are shared by several blocks if there are few results. Where the summed axis itself lies side by side, a warp
//! takes one result, or a part of one.

use super::column_sum::{self, Sums};
use crate::lower::{Arg, Call, Defines, KernelCall, Lowered, Lowering, c_type};
use ocelli_ir::DType;
use ocelli_ir::ops::ReduceSum;

/// Axes as (extent, stride), the innermost last, without those of one element; neighbours without a gap are joined.
fn joined(axes: impl Iterator<Item = (usize, usize)>) -> Vec<(usize, usize)> {
    let mut out: Vec<(usize, usize)> = Vec::new();
    for (n, s) in axes.filter(|a| a.0 != 1) {
        match out.last_mut() {
            Some(last) if last.1 == n * s => *last = (last.0 * n, s),
            _ => out.push((n, s)),
        }
    }
    out
}

/// The offset of element number `name` of these axes, as an expression.
fn offset(name: &str, axes: &[(usize, usize)]) -> String {
    let mut rest = name.to_string();
    let mut terms = Vec::new();
    for (i, &(n, s)) in axes.iter().enumerate().rev() {
        let at = if i == 0 { rest.clone() } else { format!("{rest} % {n}u") };
        terms.push(format!("u64({at}) * {s}u"));
        rest = format!("({rest} / {n}u)");
    }
    if terms.is_empty() { "0".into() } else { terms.join(" + ") }
}

pub fn lower(op: &ReduceSum, cx: &Lowering) -> Option<Lowered> {
    let (x, y) = (&cx.ins[0], &cx.outs[0]);
    let axes = |summed: bool| {
        let all = x.view.shape.iter().copied().zip(x.view.strides.iter().copied()).enumerate();
        joined(all.filter(move |(i, _)| op.axes.contains(i) == summed).map(|(_, a)| a))
    };
    let (kept, summed) = (axes(false), axes(true));
    let count = |axes: &[(usize, usize)]| axes.iter().map(|a| a.0).product::<usize>();
    let (results, terms) = (count(&kept), count(&summed));
    let mut done = Lowered::default();
    let by_warps = kept.last().is_none_or(|a| a.1 != 1) && summed.last().is_some_and(|a| a.1 == 1);
    // Enough blocks to fill the device, each with rows enough to be worth it.
    let columns = results.div_ceil(32).max(1);
    let (blocks, least) = if by_warps { (results.div_ceil(8).max(1), 512) } else { (columns, 64) };
    let splits = (4 * cx.machine.processors / blocks).clamp(1, terms.div_ceil(least).max(1));
    let late = y.dtype == DType::F32 && y.view.is_contiguous();
    let sums = (splits > 1 && late).then(|| Sums::new(&mut done, splits, results, &[Arg::Out(0, 0)]));
    let (to, dtype) = match &sums {
        Some(sums) => (sums.parts, DType::F32),
        None if splits > 1 => (done.reserve(splits * results * size_of::<f32>()), DType::F32),
        None => (Arg::Out(0, 0), y.dtype),
    };
    let source = Defines::new()
        .with("T", c_type(x.dtype))
        .with("TO", c_type(dtype))
        .with("RESULTS", results)
        .with("TERMS", terms)
        .with("SPLITS", splits)
        .with("KEPT(i)", format!("({})", offset("(i)", &kept)))
        .with("SUMMED(i)", format!("({})", offset("(i)", &summed)))
        .source(include_str!("reduce_sum.cu"));
    done.calls.push(Call::Kernel(KernelCall {
        entry: if by_warps { "sum_by_warps" } else { "sum_by_threads" },
        source,
        grid: [blocks as u32, splits as u32, 1],
        block: 256,
        shared: 0,
        args: vec![Arg::In(0, 0), to],
    }));
    match sums {
        Some(sums) => Sums::make([sums], &mut done),
        None if splits > 1 => {
            done.calls.push(column_sum::call(to, splits, results, Arg::Out(0, 0), y.dtype));
        }
        None => {}
    }
    Some(done)
}
