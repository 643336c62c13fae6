//! The reference evaluation of a whole graph: slow, obviously right, in f32 or f64. Every executor is judged
//! against it.

use crate::ops::Op;
use crate::tensor::{Real, Tensor};
use crate::{Graph, SlotId, TensorType, Value};
use std::collections::HashMap;
use thiserror::Error;

/// What went into an evaluation that does not fit the graph.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum EvalError {
    /// An input was not given.
    #[error("input '{0}' was not given")]
    MissingInput(String),
    /// A slot was not given.
    #[error("state slot {0:?} was not given")]
    MissingSlot(SlotId),
    /// An input or slot has another shape or kind of element.
    #[error("'{name}' must be {want}, found shape {found}")]
    WrongType {
        /// Name of the input or slot.
        name: String,
        /// The type needed.
        want: TensorType,
        /// The shape given.
        found: String,
    },
}

/// State contents by slot.
pub type RefState<R> = HashMap<SlotId, Tensor<R>>;

/// Runs `graph` on `inputs` and `state`: returns its named outputs in order and updates the state.
///
/// # Errors
/// If an input or slot is missing or has another shape.
pub fn evaluate<R: Real>(
    graph: &Graph,
    inputs: &HashMap<String, Tensor<R>>,
    state: &mut RefState<R>,
) -> Result<Vec<Tensor<R>>, EvalError> {
    let values = values(graph, inputs, state)?;
    for node in graph.nodes() {
        if let Op::StateWrite(w) = &node.op {
            state.insert(w.slot, values[node.inputs[0].index()].clone());
        }
    }
    Ok(graph.outputs().iter().map(|(_, v)| values[v.index()].clone()).collect())
}

/// Every value of the graph, by [`Value::index`]; the state is only read.
///
/// # Errors
/// If an input or slot is missing or has another shape.
pub fn values<R: Real>(
    graph: &Graph,
    inputs: &HashMap<String, Tensor<R>>,
    state: &RefState<R>,
) -> Result<Vec<Tensor<R>>, EvalError> {
    let mut values: Vec<Tensor<R>> = Vec::with_capacity(graph.values().len());
    for node in graph.nodes() {
        let out = match &node.op {
            Op::Input(i) => {
                let t = inputs.get(&*i.name).ok_or_else(|| EvalError::MissingInput(i.name.to_string()))?;
                vec![check(t, &i.ty, &i.name)?]
            }
            Op::StateRead(s) => {
                let t = state.get(&s.slot).ok_or(EvalError::MissingSlot(s.slot))?;
                vec![check(t, &s.ty, &format!("slot {}", s.slot.0))?]
            }
            op => {
                let args: Vec<&Tensor<R>> = node.inputs.iter().map(|v: &Value| &values[v.index()]).collect();
                op.eval(&args)
            }
        };
        let rounded = out.into_iter().zip(&node.outputs).map(|(t, &v)| t.rounded(graph.ty(v).dtype));
        values.extend(rounded);
    }
    Ok(values)
}

fn check<R: Real>(t: &Tensor<R>, want: &TensorType, name: &str) -> Result<Tensor<R>, EvalError> {
    let same_kind = std::mem::discriminant(&t.data) == std::mem::discriminant(&Tensor::<R>::zeros(want).data);
    if t.shape == want.shape && same_kind {
        return Ok(t.clone());
    }
    Err(EvalError::WrongType { name: name.into(), want: want.clone(), found: t.shape.to_string() })
}
