//! `constant`: one number, everywhere. Only for what never changes between runs (rule 2).

use crate::op::{Gen, Gradients, Inferred, OpDef, Sample, Vjp};
use crate::tensor::{Data, Real, Tensor};
use crate::{DType, Graph, TensorType, Value};

/// A tensor filled with one number.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// The number; integers for integer dtypes.
    pub value: f64,
    /// Shape and dtype.
    pub ty: TensorType,
}

impl OpDef for Constant {
    const NAME: &'static str = "constant";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        super::common::arity(inputs, 0)?;
        Ok(vec![self.ty.clone()])
    }

    fn eval<R: Real>(&self, _: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let n = self.ty.shape.numel();
        let data = match self.ty.dtype {
            DType::U8 => Data::U8(vec![self.value as u8; n]),
            DType::U32 => Data::U32(vec![self.value as u32; n]),
            _ => Data::Real(vec![R::of(self.value); n]),
        };
        vec![Tensor { shape: self.ty.shape.clone(), data }]
    }

    fn vjp(&self, _: &mut Vjp<'_>) -> Gradients {
        Ok(vec![])
    }

    fn sample(g: &mut Gen) -> Sample {
        Sample::no_gradient(Self { value: 1.5, ty: TensorType::f32(g.shape(0, 3)) }, vec![])
    }

    fn flops(&self, _: &[&TensorType], _: &[&TensorType]) -> u64 {
        0
    }
}

impl Graph {
    /// A scalar constant of a dtype.
    pub fn constant(&mut self, value: f64, dtype: DType) -> Value {
        self.source(Constant { value, ty: TensorType::new(dtype, []) }.into())
    }

    /// A tensor of zeros.
    pub fn zeros(&mut self, ty: TensorType) -> Value {
        self.source(Constant { value: 0.0, ty }.into())
    }
}
