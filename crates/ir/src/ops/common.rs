//! Shape rules and evaluations that several op files share.

use crate::op::{Fill, Gen, Gradients, Inferred, Sample, Vjp};
use crate::ops::{Op, ReduceSum, Reshape};
use crate::tensor::{Data, Real, Tensor};
use crate::{Cut, Graph, GraphError, TensorType, Value, View};

/// Checks the number of inputs.
pub fn arity(inputs: &[&TensorType], n: usize) -> Result<(), String> {
    if inputs.len() == n { Ok(()) } else { Err(format!("takes {n} inputs, found {}", inputs.len())) }
}

/// Checks that an input is a float tensor.
pub fn float(ty: &TensorType, what: &str) -> Result<(), String> {
    if ty.dtype.is_float() { Ok(()) } else { Err(format!("{what} must be a float tensor, found {ty}")) }
}

/// Checks that an input is a float tensor of this shape, however stored.
pub fn shaped(ty: &TensorType, shape: &[usize], what: &str) -> Result<(), String> {
    let want = TensorType::f32(shape.to_vec());
    if ty.dtype.is_float() && ty.shape == want.shape {
        Ok(())
    } else {
        Err(format!("{what} must be {want}, found {ty}"))
    }
}

/// Checks that an input has exactly this type.
pub fn exact(ty: &TensorType, want: &TensorType, what: &str) -> Result<(), String> {
    if ty == want { Ok(()) } else { Err(format!("{what} must be {want}, found {ty}")) }
}

/// Rule of an element-wise op of two floats: NumPy's broadcasting.
pub fn infer_binary(inputs: &[&TensorType]) -> Inferred {
    arity(inputs, 2)?;
    let (a, b) = (inputs[0], inputs[1]);
    float(a, "the left side")?;
    float(b, "the right side")?;
    let shape = a.shape.broadcast(&b.shape).ok_or_else(|| format!("cannot broadcast {a} with {b}"))?;
    Ok(vec![TensorType::f32(shape)])
}

/// Rule of an element-wise op of one float.
pub fn infer_unary(inputs: &[&TensorType]) -> Inferred {
    arity(inputs, 1)?;
    float(inputs[0], "the input")?;
    Ok(vec![TensorType::f32(inputs[0].shape.clone())])
}

/// Evaluates an element-wise op of two inputs with broadcasting.
pub fn eval_binary<R: Real>(inputs: &[&Tensor<R>], f: impl Fn(R, R) -> R) -> Vec<Tensor<R>> {
    let shape = inputs[0].shape.broadcast(&inputs[1].shape).unwrap_or_default();
    let spread = |t: &Tensor<R>| View::contiguous(t.shape.clone()).broadcast(&shape).map(|v| t.gather(&v));
    let (Some(a), Some(b)) = (spread(inputs[0]), spread(inputs[1])) else { return vec![] };
    let data = a.as_real().iter().zip(b.as_real()).map(|(&x, &y)| f(x, y)).collect();
    vec![Tensor { shape, data: Data::Real(data) }]
}

/// Evaluates an element-wise op of one input.
pub fn eval_unary<R: Real>(inputs: &[&Tensor<R>], f: impl Fn(R) -> R) -> Vec<Tensor<R>> {
    let data = inputs[0].as_real().iter().map(|&x| f(x)).collect();
    vec![Tensor { shape: inputs[0].shape.clone(), data: Data::Real(data) }]
}

/// Parts of the inputs that a part of the result of an element-wise op needs.
pub fn narrow_elements(cut: &Cut, inputs: &[&TensorType], output: &TensorType) -> Option<Vec<Option<Cut>>> {
    inputs.iter().map(|ty| cut.broadcast(&ty.shape, &output.shape)).collect()
}

/// Parts of the inputs that a part of the rows of the result needs, where each row is made of the same row of the
/// first input and all of the others.
pub fn narrow_rows(cut: &Cut, inputs: &[&TensorType], output: &TensorType) -> Option<Vec<Option<Cut>>> {
    let (_, from) = output.shape.rows();
    let (_, to) = inputs[0].shape.rows();
    let mut parts = vec![None; inputs.len()];
    parts[0] = Some(cut.rows(from, to)?);
    Some(parts)
}

/// Sums `grad` down to the shape of an input that was broadcast.
pub fn sum_to(g: &mut Graph, grad: Value, shape: &[usize]) -> Result<Value, GraphError> {
    let from = g.shape(grad);
    if from == shape {
        return Ok(grad);
    }
    let lead = from.len() - shape.len();
    let axes = (0..from.len()).filter(|&i| i < lead || (shape[i - lead] == 1 && from[i] != 1)).collect();
    let summed = g.one(ReduceSum { axes }, &[grad])?;
    g.one(Reshape { shape: shape.to_vec().into() }, &[summed])
}

/// Gradients of an element-wise op of two inputs, given their full-size gradients.
pub fn binary_gradients(cx: &mut Vjp<'_>, left: Value, right: Value) -> Gradients {
    let (a, b) = (cx.shape(0), cx.shape(1));
    Ok(vec![Some(sum_to(cx.g, left, &a)?), Some(sum_to(cx.g, right, &b)?)])
}

/// A random pair of shapes that broadcast, for an element-wise op of two inputs.
pub fn sample_binary(g: &mut Gen, op: impl Into<Op>, right: Fill) -> Sample {
    let full = g.shape(0, 4);
    let (mut a, mut b) = (full.clone(), g.broadcastable(&full));
    if g.one_in(2) && right == Fill::Normal {
        std::mem::swap(&mut a, &mut b);
    }
    Sample::new(op, vec![(TensorType::f32(a), Fill::Normal), (TensorType::f32(b), right)])
}

/// A random shape for an element-wise op of one input.
pub fn sample_unary(g: &mut Gen, op: impl Into<Op>, fill: Fill) -> Sample {
    let shape = g.shape(0, 4);
    Sample::new(op, vec![(TensorType::f32(shape), fill)])
}

/// FLOPs of `n` operations per output element.
pub fn per_output(outputs: &[&TensorType], n: u64) -> u64 {
    outputs.first().map_or(0, |t| t.shape.numel() as u64 * n)
}
