//! `swiglu`: a gate with the SiLU times what it lets through (Shazeer 2020, "GLU variants improve transformer").

use super::common::{arity, float, narrow_elements, per_output, shaped};
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::tensor::{Real, Tensor};
use crate::{Cut, Graph, GraphError, TensorType, Value};

/// Inputs gate and up of one type, output like them: `gate / (1 + e^-gate) up`, element by element.
#[derive(Clone, Debug, PartialEq)]
pub struct Swiglu;

impl OpDef for Swiglu {
    const NAME: &'static str = "swiglu";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 2)?;
        float(inputs[0], "the gate")?;
        shaped(inputs[1], &inputs[0].shape, "what is gated")?;
        Ok(vec![TensorType::f32(inputs[0].shape.clone())])
    }

    fn storage(&self, _: usize) -> Storage {
        Storage::Half
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let silu = |x: R| x / (R::one() + (-x).exp());
        let data = inputs[0].as_real().iter().zip(inputs[1].as_real()).map(|(&a, &b)| silu(a) * b).collect();
        vec![Tensor::real(inputs[0].shape.clone(), data)]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        let dy = cx.only(0)?;
        let inputs = [cx.inputs[0], cx.inputs[1], dy];
        Ok(cx.g.many(crate::ops::SwigluGrad, &inputs)?.into_iter().map(Some).collect())
    }

    fn sample(g: &mut Gen) -> Sample {
        let ty = TensorType::f32(g.shape(0, 4));
        Sample::new(Self, vec![(ty.clone(), Fill::Normal), (ty, Fill::Normal)])
    }

    fn flops(&self, _: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        per_output(outputs, 12)
    }

    fn narrow(&self, cut: &Cut, inputs: &[&TensorType], output: &TensorType) -> Option<Vec<Option<Cut>>> {
        narrow_elements(cut, inputs, output)
    }
}

impl Graph {
    /// `silu(gate) up`.
    ///
    /// # Errors
    /// If the types differ.
    #[track_caller]
    pub fn swiglu(&mut self, gate: Value, up: Value) -> Result<Value, GraphError> {
        self.one(Swiglu, &[gate, up])
    }
}
