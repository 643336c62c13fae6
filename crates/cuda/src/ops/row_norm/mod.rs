//! Norms of rows: `layer_norm`, `rms_norm` and their gradients. A warp takes a row, which it keeps in registers.
//!
//! Gradients of scale and shift are sums over all rows: each block sums those of its own rows, and a second kernel adds the
//! blocks' sums in their order.

use super::column_sum::Sums;
use crate::elements::{Access, Loop, Place};
use crate::lower::{Arg, Call, Defines, KernelCall, Lowered, Lowering, Tensor, c_float, c_type};
use ocelli_ir::DType;
use ocelli_ir::ops::{LayerNorm, RmsNorm};

/// Rows that a block takes at a time, one a warp.
const WARPS: usize = 8;
/// Longest row that a warp keeps in its registers.
const LONGEST: usize = 4096;

/// Extents, and how many neighbours a lane takes at once.
struct Rows {
    rows: usize,
    cols: usize,
    pack: usize,
}

impl Rows {
    /// None if a row is too long.
    fn new(x: &Tensor, all: &[&Tensor]) -> Option<Self> {
        let (rows, cols) = x.view.shape.rows();
        let fits = |pack: usize| {
            cols.is_multiple_of(32 * pack)
                && all.iter().all(|t| t.align.is_multiple_of((pack * t.dtype.size()).min(16)))
        };
        let pack = [8, 4, 2].into_iter().find(|&p| fits(p)).unwrap_or(1);
        (cols > 0 && cols <= LONGEST).then_some(Self { rows, cols, pack })
    }

    fn defines(&self) -> Defines {
        Defines::new()
            .with("ROWS", self.rows)
            .with("COLS", self.cols)
            .with("PACK", self.pack)
            .with("WARPS", WARPS)
    }

    fn blocks(&self) -> usize {
        self.rows.div_ceil(WARPS).max(1)
    }
}

fn call(entry: &'static str, source: String, blocks: usize, args: Vec<Arg>) -> Call {
    Call::Kernel(KernelCall {
        entry,
        source,
        grid: [blocks as u32, 1, 1],
        block: 32 * WARPS as u32,
        shared: 0,
        args,
    })
}

pub fn layer_norm(op: &LayerNorm, cx: &Lowering) -> Option<Lowered> {
    forward(cx, op.eps, true)
}

pub fn rms_norm(op: &RmsNorm, cx: &Lowering) -> Option<Lowered> {
    forward(cx, op.eps, false)
}

fn forward(cx: &Lowering, eps: f64, mean: bool) -> Option<Lowered> {
    let (x, y) = (&cx.ins[0], &cx.outs[0]);
    let rows = Rows::new(x, &cx.ins.iter().chain([y]).collect::<Vec<_>>())?;
    let defines = rows
        .defines()
        .with("TX", c_type(x.dtype))
        .with("TY", c_type(y.dtype))
        .with("TG", c_type(cx.ins[1].dtype));
    let defines = defines.with("TB", c_type(cx.ins.get(2).map_or(x.dtype, |t| t.dtype)));
    let source =
        defines.with("EPS", c_float(eps)).with("MEAN", u8::from(mean)).source(include_str!("forward.cu"));
    let args = (0..cx.ins.len()).map(|i| Arg::In(i, 0)).chain((0..cx.outs.len()).map(|i| Arg::Out(i, 0)));
    Some(Lowered {
        calls: vec![call("norm_rows", source, rows.blocks(), args.collect())],
        ..Lowered::default()
    })
}

pub fn layer_norm_grad(cx: &Lowering) -> Option<Lowered> {
    let ins: Vec<Operand> = cx.ins.iter().enumerate().map(|(i, t)| (Arg::In(i, 0), t)).collect();
    let f32 = cx.outs[1..].iter().all(|t| t.dtype == DType::F32 && t.view.is_contiguous());
    let sums: Vec<Arg> = (1..cx.outs.len()).map(|i| Arg::Out(i, 0)).collect();
    let dx = stored(&cx.outs[0]).filter(|_| f32)?;
    backward(&ins, &sums, dx, cx.machine.processors)
}

pub fn rms_norm_grad(cx: &Lowering) -> Option<Lowered> {
    layer_norm_grad(cx)
}

/// An operand: its address, and how it lies.
pub type Operand<'a> = (Arg, &'a Tensor);

/// What is done with dx where it is only stored.
fn stored(dx: &Tensor) -> Option<Loop> {
    let (rows, cols) = dx.view.shape.rows();
    let place = Place::Strides(vec![cols, 1]);
    let write = Access { arg: Arg::Out(0, 0), dtype: dx.dtype, align: dx.align, place };
    let (reads, body) = (vec![Access::sums()], "        const float y0 = x0;\n".into());
    dx.view.is_contiguous().then(|| Loop {
        space: vec![rows, cols],
        reads,
        writes: vec![write],
        body,
        ..Loop::default()
    })
}

/// The gradients of a norm: inputs as of the op (with a mean or without), what is done with dx, and where f32 sums of columns
/// go: those for scale (and shift), then those that `dx` adds to.
pub fn backward(ins: &[Operand<'_>], sums: &[Arg], dx: Loop, processors: usize) -> Option<Lowered> {
    let (x, gamma, dy) = (ins[0].1, ins[1].1, ins.last()?.1);
    let rows = Rows::new(x, &[x, gamma, dy])?;
    let mean = ins.len() == 5;
    let blocks = rows.blocks().min(2 * processors);
    // The widest that the operands and what is done with dx both take.
    let (pack, (text, args)) = [8, 4, 2, 1]
        .into_iter()
        .filter(|p| *p <= rows.pack)
        .find_map(|p| Some((p, dx.clone().epilogue(p)?)))?;
    let mut done = Lowered::default();
    let (cols, count) = (rows.cols, sums.len());
    let sums = Sums::new(&mut done, blocks, cols, sums);
    let defines = Rows { pack, ..rows }.defines().with("TX", c_type(x.dtype)).with("TG", c_type(gamma.dtype));
    let defines = defines.with("MEAN", u8::from(mean)).with("TDY", c_type(dy.dtype)).with("SUMS", count);
    let source = defines.source(&[&text, include_str!("backward.cu")].concat());
    let args = ins.iter().map(|i| i.0).chain([sums.parts]).chain(args).collect();
    done.calls.push(call("norm_rows_grad", source, blocks, args));
    Sums::make([sums], &mut done);
    Some(done)
}
