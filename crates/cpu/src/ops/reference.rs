//! The fallback for an op without a kernel: its reference evaluation in f32. Slow, and it allocates; `explain`
//! names such launches.

use crate::mem::{Dst, Elem, Inputs, Outputs, Src};
use ocelli_ir::tensor::{Data, Tensor};
use ocelli_ir::{DType, Op, Shape};

/// Runs an op by its reference evaluation.
pub fn run(op: &Op, ins: Inputs<'_>, mut outs: Outputs<'_>) {
    // The output of an in-place pair holds the input's contents.
    let through =
        |i| op.in_place().iter().find(|(_, input)| *input == i && ins.is_absent(i)).map(|(o, _)| *o);
    let inputs: Vec<Tensor<f32>> = (0..ins.len())
        .map(|i| match (through(i), ins.dtype(i)) {
            (Some(o), DType::U8) => held(outs.get(o), Data::U8),
            (Some(o), DType::U32) => held(outs.get(o), Data::U32),
            (Some(o), _) => held(outs.get(o), Data::Real),
            (None, DType::U8) => gather(&ins.get::<u8>(i), Data::U8),
            (None, DType::U32) => gather(&ins.get::<u32>(i), Data::U32),
            (None, _) => gather(&ins.get::<f32>(i), Data::Real),
        })
        .collect();
    let results = op.eval(&inputs.iter().collect::<Vec<_>>());
    for (i, result) in results.iter().enumerate().take(outs.len()) {
        match &result.data {
            Data::Real(v) => scatter(outs.get(i), v),
            Data::U32(v) => scatter(outs.get(i), v),
            Data::U8(v) => scatter(outs.get(i), v),
        }
    }
}

fn gather<T: Elem>(src: &Src<'_, T>, data: impl FnOnce(Vec<T>) -> Data<f32>) -> Tensor<f32> {
    let mut out = vec![T::default(); src.layout.numel()];
    Dst::from_slice(&mut out, src.layout.shape()).copy_from(src);
    Tensor { shape: Shape(src.layout.shape().to_vec()), data: data(out) }
}

fn held<T: Elem>(out: Dst<'_, T>, data: impl FnOnce(Vec<T>) -> Data<f32>) -> Tensor<f32> {
    let shape = Shape(out.layout().shape().to_vec());
    Tensor { shape, data: data(out.dense().to_vec()) }
}

fn scatter<T: Elem>(mut out: Dst<'_, T>, from: &[T]) {
    let layout = crate::layout::Layout::dense(out.layout().shape());
    out.copy_from(&Src::new(from, layout));
}
