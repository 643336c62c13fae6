//! `cast`: the same numbers in another dtype. Mixed precision is made of these, by a pass.

use super::common::{arity, narrow_elements, per_output};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Vjp};
use crate::tensor::{Data, Real, Tensor};
use crate::{Cut, DType, Graph, GraphError, TensorType, Value};

/// Converts to `to`: floats round to nearest even; integers become floats.
#[derive(Clone, Debug, PartialEq)]
pub struct Cast {
    /// The dtype of the output, a float type.
    pub to: DType,
}

impl OpDef for Cast {
    const NAME: &'static str = "cast";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 1)?;
        if !self.to.is_float() {
            return Err(format!("casts to float types only, asked for {}", self.to));
        }
        Ok(vec![TensorType::new(self.to, inputs[0].shape.clone())])
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let data = match &inputs[0].data {
            Data::Real(v) => v.clone(),
            Data::U8(v) => v.iter().map(|&x| R::of(f64::from(x))).collect(),
            Data::U32(v) => v.iter().map(|&x| R::of(f64::from(x))).collect(),
        };
        vec![Tensor { shape: inputs[0].shape.clone(), data: Data::Real(data) }.rounded(self.to)]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        let dy = cx.only(0)?;
        let from = cx.g.ty(cx.inputs[0]).dtype;
        Ok(vec![if from.is_float() { Some(cx.g.cast(dy, from)?) } else { None }])
    }

    fn sample(g: &mut Gen) -> Sample {
        let shape = g.shape(0, 4);
        match g.dim(0, 2) {
            0 => Sample::new(Self { to: DType::F32 }, vec![(TensorType::f32(shape), Fill::Normal)]),
            1 => Sample::no_gradient(Self { to: DType::F32 }, vec![(TensorType::u32(shape), Fill::Below(1000))]),
            _ => Sample::no_gradient(
                Self { to: DType::F32 },
                vec![(TensorType::new(DType::U8, shape), Fill::Below(256))],
            ),
        }
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 1)
    }

    fn narrow(&self, cut: &Cut, inputs: &[&TensorType], output: &TensorType) -> Option<Vec<Option<Cut>>> {
        narrow_elements(cut, inputs, output)
    }
}

impl Graph {
    /// `x` in another float dtype; `x` itself if it has it already.
    ///
    /// # Errors
    /// If `to` is not a float dtype.
    #[track_caller]
    pub fn cast(&mut self, x: Value, to: DType) -> Result<Value, GraphError> {
        if self.ty(x).dtype == to { Ok(x) } else { self.one(Cast { to }, &[x]) }
    }
}
