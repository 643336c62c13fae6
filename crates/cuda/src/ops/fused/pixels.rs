//! Pixels that are normalised on their way to patches: bytes are read where they lie in the picture, and the patches written.

use crate::elements::{Access, Loop, Place};
use crate::lower::{Arg, Lowered, Lowering};
use crate::ops::arithmetic;
use ocelli_ir::ops::Fused;
use ocelli_ir::{Op, View};

/// The kernel, if that is what the body does.
pub fn lower(op: &Fused, cx: &Lowering) -> Option<Lowered> {
    let mut nodes = op.body.nodes().iter().filter(|n| !matches!(n.op, Op::Input(_)));
    let (normalise, cut) = (nodes.next()?, nodes.next()?);
    let (Op::NormalizePixels(_), Op::Patchify(patches)) = (&normalise.op, &cut.op) else { return None };
    let alone = nodes.next().is_none() && op.body.outputs().len() == 1 && cut.inputs == normalise.outputs;
    let ([x], [y], true) = (&cx.ins[..], &cx.outs[..], alone) else { return None };
    // Sample, row and column of the patch, channel, row and column in the patch.
    let from = patches.view(&View { offset: 0, ..x.view.clone() });
    let to = y.view.reshape(&from.shape)?;
    let at = |arg, t: &crate::lower::Tensor, strides| Access {
        arg,
        dtype: t.dtype,
        align: t.align,
        place: Place::Strides(strides),
    };
    let one = Loop {
        space: from.shape.0.clone(),
        reads: vec![at(Arg::In(0, 0), x, from.strides)],
        writes: vec![at(Arg::Out(0, 0), y, to.strides)],
        body: arithmetic::statements(&normalise.op, 1)?.replace("c_last", "c3"),
        coordinates: true,
        ..Loop::default()
    };
    Some(Lowered::kernel(one.kernel()))
}
