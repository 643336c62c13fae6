//! 16-bit operands in 32 bits: kernels compute in f32, whatever is stored.
//!
//! A launch with 16-bit operands runs on copies of them in f32; its 16-bit results are rounded, to nearest even, when it
//! has ended. So every kernel takes every float dtype, and the results are those of the reference evaluation.

use super::{Bases, Dst, Elem, Loc, Outputs, Room, Src, operands, par_parts};
use crate::buffer::ALIGNMENT;
use crate::cx::Cx;
use crate::layout::Layout;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use ocelli_ir::DType;

/// The operands of a launch as its kernel sees them.
#[derive(Clone, Debug)]
pub struct Wide {
    /// Arguments, those of 16 bits replaced.
    pub ins: Vec<Loc>,
    /// Results, likewise.
    pub outs: Vec<Loc>,
    /// Memory for them, in bytes.
    pub bytes: usize,
}

/// True for operands of 16 bits.
fn is_half(loc: &Loc) -> bool {
    matches!(loc.dtype, DType::Bf16 | DType::F16)
}

impl Wide {
    /// Places for the 16-bit operands of a launch; none if it has none.
    pub fn new(ins: &[Loc], outs: &[Loc]) -> Option<Self> {
        if !ins.iter().chain(outs).any(is_half) {
            return None;
        }
        let mut bytes = 0usize;
        let mut place = |loc: &Loc| {
            if !is_half(loc) {
                return *loc;
            }
            let byte = bytes;
            let layout = Layout::dense(loc.layout.shape());
            bytes += (layout.numel() * size_of::<f32>()).next_multiple_of(ALIGNMENT).max(ALIGNMENT);
            Loc { room: Room::Wide, byte, dtype: DType::F32, layout, absent: loc.absent }
        };
        let (ins, outs) = (ins.iter().map(&mut place).collect(), outs.iter().map(&mut place).collect());
        Some(Self { ins, outs, bytes })
    }
}

/// A 16-bit float.
trait Half: Elem {
    fn widen(from: &[Self], to: &mut [f32]);
    fn narrow(from: &[f32], to: &mut [Self]);
}

macro_rules! half {
    ($ty:ident) => {
        impl Half for $ty {
            fn widen(from: &[Self], to: &mut [f32]) {
                from.convert_to_f32_slice(to);
            }
            fn narrow(from: &[f32], to: &mut [Self]) {
                to.convert_from_f32_slice(from);
            }
        }
    };
}
half!(bf16);
half!(f16);

/// Fills the 32-bit places of what a launch reads: its 16-bit inputs, and the contents of outputs that hold an input.
///
/// # Safety
/// `ins`, `outs` must be operands of one launch that `check` has accepted, `wide` made from them, and no operands of these
/// bases may be alive.
pub unsafe fn widen(cx: &Cx<'_>, bases: &Bases<'_>, ins: &[Loc], outs: &[Loc], wide: &Wide) {
    let read = ins.iter().zip(&wide.ins).filter(|(loc, _)| !loc.absent);
    // The input of an in-place pair is reached through its output.
    let holds = |out: &Loc| ins.iter().any(|i| i.absent && i.room == out.room && i.byte == out.byte);
    let held = outs.iter().zip(&wide.outs).filter(|(out, _)| holds(out));
    for (from, to) in read.chain(held).filter(|(loc, _)| is_half(loc)) {
        // SAFETY: `from` was checked, `to` lies in a room of its own, apart from all others; both are only alive here.
        let (ins, outs) = unsafe { operands(bases, std::slice::from_ref(from), std::slice::from_ref(to)) };
        match from.dtype {
            DType::Bf16 => convert(cx, only(outs), &ins.get(0), bf16::widen),
            _ => convert(cx, only(outs), &ins.get(0), f16::widen),
        }
    }
}

/// Rounds the 16-bit results of a launch.
///
/// # Safety
/// As [`widen`].
pub unsafe fn narrow(cx: &Cx<'_>, bases: &Bases<'_>, outs: &[Loc], wide: &Wide) {
    for (to, from) in outs.iter().zip(&wide.outs).filter(|(loc, _)| is_half(loc)) {
        // SAFETY: as in `widen`, in the other direction.
        let (ins, outs) = unsafe { operands(bases, std::slice::from_ref(from), std::slice::from_ref(to)) };
        match to.dtype {
            DType::Bf16 => convert(cx, only(outs), &ins.get(0), bf16::narrow),
            _ => convert(cx, only(outs), &ins.get(0), f16::narrow),
        }
    }
}

fn only<'a, T: Elem>(outs: Outputs<'a>) -> Dst<'a, T> {
    let [out] = outs.take();
    out
}

/// Converts a tensor into another of the same shape, run by run.
fn convert<A: Elem, B: Elem>(
    cx: &Cx<'_>,
    out: Dst<'_, B>,
    src: &Src<'_, A>,
    f: impl Fn(&[A], &mut [B]) + Sync + Send,
) {
    par_parts(cx, out, src, |out, src| out.map_from(src, &f));
}
