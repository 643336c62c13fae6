//! `attention` and its gradient, which never hold a T x T matrix (Dao et al. 2022).
//!
//! 16 bits run on tensor cores: `forward.cu`, and backward in one launch where a sample's head fits in shared memory
//! (`backward.cu`), else in three (`delta.cu`, `backward_tiled.cu`); so does f32 as TF32, if that is allowed. Exact f32, and
//! heads that are no multiple of 8, run on the simple kernels; a few queries on kernels of their own (`few.rs`). Operands of
//! several types are brought to f32 first: mixed precision makes none.

mod few;

use crate::elements::{Access, Loop, Place};
use crate::lower::{Arg, Call, Defines, KernelCall, Lowered, Lowering, Machine, Tensor, c_float, c_type};
use ocelli_ir::ops::{Attention, AttentionExtents};
use ocelli_ir::{DType, View};

const SHARED: &str = include_str!("shared.cuh");
const SIMPLE: &str = include_str!("simple.cuh");
const TILES: &str = include_str!("tiles.cuh");
const GRADIENT: &str = include_str!("backward_tile.cuh");

/// An operand: its address and how it lies.
type Operand = (Arg, Tensor);

/// All that both directions need.
struct Cx<'a> {
    op: &'a Attention,
    e: AttentionExtents,
    dtype: DType,
    /// q, k, v, o, do, dq, dk, dv as far as there are any, with their names in the sources.
    operands: Vec<(&'static str, Operand)>,
    extras: Vec<Arg>,
    lse: Arg,
    machine: Machine,
}

pub fn forward(op: &Attention, cx: &Lowering) -> Option<Lowered> {
    let mut done = Lowered::default();
    let tensors = [("Q", 0), ("K", 1), ("V", 2)].map(|(name, i)| (name, (Arg::In(i, 0), cx.ins[i].clone())));
    let o = ("O", (Arg::Out(0, 0), cx.outs[0].clone()));
    let (attention, behind) = alike(op, cx, &mut done, (3, Arg::Out(1, 0)), tensors.into(), vec![o])?;
    attention.forward(&mut done)?;
    done.calls.extend(behind);
    Some(done)
}

pub fn backward(op: &Attention, cx: &Lowering) -> Option<Lowered> {
    let mut done = Lowered::default();
    let reads = [("Q", 0), ("K", 1), ("V", 2), ("O", 3), ("DO", 5)];
    let tensors = reads.map(|(name, i)| (name, (Arg::In(i, 0), cx.ins[i].clone())));
    let writes =
        [("DQ", 0), ("DK", 1), ("DV", 2)].map(|(name, i)| (name, (Arg::Out(i, 0), cx.outs[i].clone())));
    let (attention, behind) = alike(op, cx, &mut done, (6, Arg::In(4, 0)), tensors.into(), writes.into())?;
    attention.backward(&mut done)?;
    done.calls.extend(behind);
    Some(done)
}

/// Operands of one type: those that are not are copied to f32, results through f32. The calls are to follow the kernels.
fn alike<'a>(
    op: &'a Attention,
    cx: &Lowering,
    done: &mut Lowered,
    (inputs, lse): (usize, Arg),
    reads: Vec<(&'static str, Operand)>,
    writes: Vec<(&'static str, Operand)>,
) -> Option<(Cx<'a>, Vec<Call>)> {
    let e = op.extents(cx.ins[0].shape(), cx.ins[1].shape(), cx.ins[2].shape()).ok()?;
    if e.b * e.tq * e.tk * e.h * e.d == 0 || e.d > 256 {
        return None;
    }
    let extras = (inputs..cx.ins.len()).map(|i| Arg::In(i, 0)).collect();
    let one = reads.iter().chain(&writes).all(|(_, (_, t))| t.dtype == cx.ins[0].dtype);
    let mut attention =
        Cx { op, e, dtype: cx.ins[0].dtype, operands: vec![], extras, lse, machine: cx.machine };
    if one {
        attention.operands = [reads, writes].concat();
        return Some((attention, vec![]));
    }
    attention.dtype = DType::F32;
    for (name, (arg, t)) in reads {
        let to = wide(done, &t);
        done.calls.push(convert((arg, &t), (to.0, &to.1)));
        attention.operands.push((name, to));
    }
    let mut behind = Vec::new();
    for (name, (arg, t)) in writes {
        let from = wide(done, &t);
        behind.push(convert((from.0, &from.1), (arg, &t)));
        attention.operands.push((name, from));
    }
    Some((attention, behind))
}

/// Room for a tensor in f32.
fn wide(done: &mut Lowered, t: &Tensor) -> Operand {
    let arg = done.reserve(t.view.shape.numel() * size_of::<f32>());
    (arg, Tensor { dtype: DType::F32, view: View::contiguous(t.view.shape.clone()), align: 256 })
}

fn convert(from: (Arg, &Tensor), to: (Arg, &Tensor)) -> Call {
    let access = |(arg, t): (Arg, &Tensor)| Access {
        arg,
        dtype: t.dtype,
        align: t.align,
        place: Place::Strides(t.view.strides.clone()),
    };
    Call::Kernel(Loop::copy(from.1.view.shape.0.clone(), access(from), access(to)).kernel())
}

impl Cx<'_> {
    fn arg(&self, name: &str) -> Option<Arg> {
        self.operands.iter().find(|(n, _)| *n == name).map(|(_, (arg, _))| *arg)
    }

    /// Arguments by name, then those of mask and dropout, then others.
    fn args(&self, names: &[&str], behind: &[Arg]) -> Option<Vec<Arg>> {
        let named = names.iter().map(|n| if *n == "LSE" { Some(self.lse) } else { self.arg(n) });
        let named = named.collect::<Option<Vec<_>>>()?;
        Some([&named, &self.extras[..], behind].concat())
    }

    fn defines(&self) -> Defines {
        let (e, op) = (self.e, self.op);
        let (threshold, site) = op.dropout.map_or((0, 0), |d| (d.threshold, d.site));
        let mut all = Defines::new()
            .with("T", c_type(self.dtype))
            .with("HEAD", e.d)
            .with("TQ", e.tq)
            .with("TK", e.tk)
            .with("H", e.h)
            .with("G", e.g)
            .with("B", e.b)
            .with("CAUSAL", u8::from(op.causal))
            .with("KV_LEN", u8::from(op.kv_len))
            .with("DROPOUT", threshold)
            .with("SITE_LO", format!("{:#x}u", site as u32))
            .with("SITE_HI", format!("{:#x}u", (site >> 32) as u32))
            .with("SCALE", c_float(op.scale));
        for (name, (_, t)) in &self.operands {
            for (axis, stride) in ["SB", "ST", "SH"].into_iter().zip(&t.view.strides) {
                all = all.with(&format!("{name}_{axis}"), stride);
            }
        }
        all
    }

    /// True if tensor cores can take all operands.
    fn cores(&self) -> bool {
        (self.dtype.size() == 2 || self.machine.tf32)
            && self.op.scale != 0.0
            && self.e.d.is_multiple_of(8)
            && self.e.d <= 128
            && self.operands.iter().all(|(_, (_, t))| aligned(t))
    }

    /// Bytes of a row in shared memory: padded so that no two rows that are read at once meet in a bank.
    fn row(&self) -> usize {
        let d = self.e.d;
        if self.dtype == DType::F32 {
            return 4 * if d.is_multiple_of(16) { d + 4 } else { d + 12 };
        }
        let chunks = d.div_ceil(16) * 2;
        16 * if matches!(chunks, 2 | 4) || chunks.is_multiple_of(8) { chunks } else { chunks + 1 }
    }

    /// The text for tensor cores: what all kernels share, and this one.
    fn text(&self, parts: &[&str]) -> String {
        let fragments = match self.dtype {
            DType::F32 => include_str!("fragments_tf32.cuh"),
            _ => include_str!("fragments_16.cuh"),
        };
        [&[SHARED, fragments, TILES], parts].concat().concat()
    }

    fn forward(&self, done: &mut Lowered) -> Option<()> {
        if self.few(false) {
            return self.few_forward(done);
        }
        let (e, row) = (self.e, self.row());
        let (tiles, keys) = (e.tq.div_ceil(16), e.tk.div_ceil(16));
        let behind = [self.arg("O")?, self.lse];
        let args = self.args(&["Q", "K", "V"], &behind)?;
        if !self.cores() {
            let text = [SHARED, SIMPLE, include_str!("simple_forward.cu")].concat();
            let grid = [e.tq.div_ceil(64 / lanes(e.d)), e.h, e.b];
            let source = self.defines().with("SIMPLE", 1).source(&text);
            done.calls.push(call("attention_forward", source, grid, 64, 0, args));
            return Some(());
        }
        // Two heads a block where there are rows enough: warps that are done with one help with the other.
        let pair = tiles >= 12 && e.h.is_multiple_of(2) && e.b * e.h >= 3 * self.machine.processors;
        let fits = |heads: usize| 2 * row * 16 * keys * heads <= self.machine.shared;
        let heads = if pair && fits(2) { 2 } else { 1 };
        let whole = e.tk.max(e.tq) <= 320 && e.d <= 64 && fits(heads);
        let block = if e.d <= 64 { 64 } else { 32 };
        let (heads, warps) = if whole { (heads, (tiles * heads).min(12)) } else { (1, 4) };
        let grid = [if whole { 1 } else { tiles.div_ceil(warps) }, e.h / heads, e.b];
        let shared = if whole { 2 * row * 16 * keys * heads } else { 4 * row * block };
        let defines = self.defines().with("WARPS", warps).with("WHOLE", u8::from(whole)).with("HEADS", heads);
        let source = defines.with("BLOCK", block).source(&self.text(&[include_str!("forward.cu")]));
        done.calls.push(call("attention_forward", source, grid, 32 * warps, shared, args));
        Some(())
    }

    fn backward(&self, done: &mut Lowered) -> Option<()> {
        if self.few(true) {
            return self.few_backward(done);
        }
        let (e, row) = (self.e, self.row());
        let (tiles, keys) = (e.tq.div_ceil(16), e.tk.div_ceil(16));
        let pairs = if self.op.causal { tiles * (tiles + 1) / 2 } else { tiles * keys };
        let memory = 16 * row * (2 * tiles + keys) + 192 * tiles + 512 * pairs;
        let (dq, dk, dv) = (self.arg("DQ")?, self.arg("DK")?, self.arg("DV")?);
        let small = memory <= self.machine.shared && e.d <= 64 && e.h == e.g && tiles <= 20;
        if self.cores() && self.dtype.size() == 2 && small {
            let warps = if keys >= 12 { 10 } else { keys.min(4) };
            let defines = self.defines().with("WARPS", warps).with("HEADS", 1);
            let text = self.text(&[include_str!("backward_start.cuh"), include_str!("backward.cu")]);
            let source = defines.source(&text);
            let args = self.args(&["Q", "K", "V", "O", "LSE", "DO"], &[dq, dk, dv])?;
            done.calls.push(call("attention_backward", source, [1, e.h, e.b], 32 * warps, memory, args));
            return Some(());
        }
        let delta = done.reserve(e.b * e.h * e.tq * size_of::<f32>());
        let simple = !self.cores();
        let mut defines = self.defines();
        if simple {
            defines = defines.with("SIMPLE", 1);
        }
        let source = defines.source(&[SHARED, include_str!("delta.cu")].concat());
        let args = vec![self.arg("O")?, self.arg("DO")?, delta];
        done.calls.push(call(
            "attention_backward_delta",
            source,
            [e.tq.div_ceil(16), e.h, e.b],
            128,
            0,
            args,
        ));
        let some = ["Q", "K", "V", "LSE", "DO"];
        let (keys, queries) = (self.args(&some, &[dk, dv, delta])?, self.args(&some, &[dq, delta])?);
        if simple {
            let rows = 64 / lanes(e.d);
            let source = defines.source(&[SHARED, SIMPLE, include_str!("simple_backward.cu")].concat());
            let grids = [[e.tk.div_ceil(rows), e.g, e.b], [e.tq.div_ceil(rows), e.h, e.b]];
            done.calls.push(call("attention_backward_keys", source.clone(), grids[0], 64, 0, keys));
            done.calls.push(call("attention_backward_queries", source, grids[1], 64, 0, queries));
            return Some(());
        }
        let (warps, block) = (4, if e.d <= 64 { 64 } else { 32 });
        let source = defines.with("WARPS", warps).with("BLOCK", block);
        let source = source.source(&self.text(&[GRADIENT, include_str!("backward_tiled.cu")]));
        let memory = 4 * row * block;
        let grids = [[e.tk.div_ceil(16 * warps), e.g, e.b], [e.tq.div_ceil(16 * warps), e.h, e.b]];
        let shared = memory + 24 * block;
        done.calls.push(call("attention_backward_keys", source.clone(), grids[0], 32 * warps, shared, keys));
        done.calls.push(call("attention_backward_queries", source, grids[1], 32 * warps, memory, queries));
        Some(())
    }
}

/// True if every row starts at a multiple of 8 elements and of 16 bytes. Strides of an axis of extent 1 do not matter.
fn aligned(t: &Tensor) -> bool {
    let axes = t.view.shape.iter().zip(&t.view.strides).take(3);
    t.align.is_multiple_of(16) && axes.into_iter().all(|(&n, s)| n == 1 || s.is_multiple_of(8))
}

/// Lanes that share a row in the simple kernels.
fn lanes(d: usize) -> usize {
    match d {
        0..=32 => 1,
        33..=64 => 2,
        65..=128 => 4,
        _ => 8,
    }
}

fn call(
    entry: &'static str,
    source: String,
    grid: [usize; 3],
    threads: usize,
    shared: usize,
    args: Vec<Arg>,
) -> Call {
    let (grid, block, shared) = (grid.map(|n| n as u32), threads as u32, shared as u32);
    Call::Kernel(KernelCall { entry, source, grid, block, shared, args })
}
