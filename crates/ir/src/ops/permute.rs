//! `permute`: axes in another order. A view.

use super::common::arity;
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::tensor::{Real, Tensor};
use crate::{Graph, GraphError, TensorType, Value, View};

/// Axis `i` of the output is axis `axes[i]` of the input.
#[derive(Clone, Debug, PartialEq)]
pub struct Permute {
    /// A permutation of the axes.
    pub axes: Vec<usize>,
}

impl Permute {
    fn view(&self, v: &View) -> View {
        View {
            offset: v.offset,
            shape: self.axes.iter().map(|&a| v.shape[a]).collect::<Vec<_>>().into(),
            strides: self.axes.iter().map(|&a| v.strides[a]).collect(),
        }
    }
}

impl OpDef for Permute {
    const NAME: &'static str = "permute";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 1)?;
        let mut sorted = self.axes.clone();
        sorted.sort_unstable();
        if sorted != (0..inputs[0].shape.len()).collect::<Vec<_>>() {
            return Err(format!("{:?} is not an order of the axes of {}", self.axes, inputs[0]));
        }
        let shape: Vec<usize> = self.axes.iter().map(|&a| inputs[0].shape[a]).collect();
        Ok(vec![TensorType::new(inputs[0].dtype, shape)])
    }

    fn storage(&self, _: usize) -> Storage {
        Storage::Moves
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        vec![inputs[0].gather(&self.view(&View::contiguous(inputs[0].shape.clone())))]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        let dy = cx.only(0)?;
        let mut back = vec![0; self.axes.len()];
        self.axes.iter().enumerate().for_each(|(i, &a)| back[a] = i);
        Ok(vec![Some(cx.g.permute(dy, back)?)])
    }

    fn sample(g: &mut Gen) -> Sample {
        let shape = g.shape(1, 4);
        let mut axes: Vec<usize> = (0..shape.len()).collect();
        let turn = g.dim(0, shape.len());
        axes.rotate_left(turn.min(shape.len()));
        if axes.len() > 2 && g.one_in(2) {
            axes.swap(0, 1);
        }
        Sample::new(Self { axes }, vec![(TensorType::f32(shape), Fill::Normal)])
    }

    fn flops(&self, _: &[&TensorType], _: &[&TensorType]) -> u64 {
        0
    }

    fn alias(&self, input: &View) -> Option<Vec<View>> {
        Some(vec![self.view(input)])
    }
}

impl Graph {
    /// `x` with its axes in another order.
    ///
    /// # Errors
    /// If `axes` is not a permutation of `x`'s axes.
    #[track_caller]
    pub fn permute(&mut self, x: Value, axes: Vec<usize>) -> Result<Value, GraphError> {
        self.one(Permute { axes }, &[x])
    }
}
