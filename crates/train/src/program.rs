//! The programs of a run, built as graphs over one state: train, evaluate, prefill, decode.
//!
//! A program is a function of sizes and settings alone. What changes between runs of it (batch, step, learning
//! rate, seed, lengths) is an input or state (rule 2). A partial batch is a batch with rows of weight 0 (rule 3).

mod generate;
mod loss;
mod optimizer;
mod schedule;
mod slots;

pub use generate::{decode, prefill};
pub use loss::{Inputs, Pictures, evaluate};
pub use optimizer::{Optimizer, OptimizerKind};
pub use schedule::{Decay, Schedule};
pub use slots::{COLUMNS, RING_ROWS, RunSlots};

use ocelli_ir::ops::{Concat, Increment, UpdateSlice};
use ocelli_ir::{DType, Graph, GraphError, SlotId, SlotKind, StateSpec, Value};
use ocelli_models::nn::{Context, DropoutKeys, Mode};
use ocelli_models::seemore::SeemoreConfig;
use ocelli_passes::autodiff::{Wanted, gradients};

/// Sizes of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Size {
    /// Rows of the batch, rows of weight 0 included.
    pub batch: usize,
    /// Text tokens of a row, padding included.
    pub text: usize,
}

/// A whole training step: takes a batch, updates the weights, and writes one row of the metrics ring.
///
/// # Errors
/// If the sizes do not fit the model, or a parameter is not reached by the loss.
pub fn train(
    state: &mut StateSpec,
    model: &SeemoreConfig,
    size: Size,
    pictures: Pictures,
    optimizer: &Optimizer,
) -> Result<Graph, GraphError> {
    let mut g = Graph::new();
    let slots = RunSlots::declare(state).map_err(|m| g.error("state", m))?;
    let inputs = Inputs::declare(&mut g, model, size, pictures);
    let samples = inputs.samples;
    let (seed, step) = (g.read(state, slots.seed), g.read(state, slots.step));
    let mode = Mode::Train(DropoutKeys { seed, step, samples });
    let mut cx = Context::new(&mut g, state, mode);
    let (loss, weight) = loss::loss(&mut cx, model, &inputs)?;
    let parameters = std::mem::take(&mut cx.parameters);
    demand_all(&g, state, &parameters)?;

    let one = g.constant(1.0, DType::F32);
    let grads = parameter_gradients(&mut g, state, &parameters, loss, one)?;
    let updated: Vec<_> =
        parameters.into_iter().zip(grads).map(|((slot, value), grad)| (slot, value, grad)).collect();
    g.enter("optimizer");
    let applied = optimizer::apply(&mut g, state, &slots, optimizer, &updated, weight)?;
    record(&mut g, state, &slots, [loss, weight, applied.norm, applied.lr])?;
    g.leave();
    Ok(g)
}

/// Gradients as outputs, named as their parameters, for tests: the loss sum and its weight come first. The
/// gradients are of the mean loss.
///
/// # Errors
/// If the sizes do not fit the model, or a parameter is not reached by the loss.
pub fn mean_gradients(
    state: &mut StateSpec,
    model: &SeemoreConfig,
    size: Size,
    pictures: Pictures,
) -> Result<Graph, GraphError> {
    let mut g = Graph::new();
    let inputs = Inputs::declare(&mut g, model, size, pictures);
    let mut cx = Context::new(&mut g, state, Mode::Eval);
    let (loss, weight) = loss::loss(&mut cx, model, &inputs)?;
    let parameters = std::mem::take(&mut cx.parameters);
    let one = g.constant(1.0, DType::F32);
    let seed = g.div(one, weight)?;
    let grads = parameter_gradients(&mut g, state, &parameters, loss, seed)?;
    g.output("loss", loss);
    g.output("weight", weight);
    parameters.iter().zip(grads).for_each(|((slot, _), grad)| g.output(&state.get(*slot).name, grad));
    Ok(g)
}

/// The gradients of `loss` times `seed` with respect to parameters (slot and value), in their order.
fn parameter_gradients(
    g: &mut Graph,
    state: &StateSpec,
    parameters: &[(SlotId, Value)],
    loss: Value,
    seed: Value,
) -> Result<Vec<Value>, GraphError> {
    let wanted: Vec<Wanted<'_>> =
        parameters.iter().map(|&(slot, value)| Wanted { value, name: &state.get(slot).name }).collect();
    gradients(g, loss, seed, &wanted)
}

/// A parameter of the state that this program does not even read would never be trained.
fn demand_all(g: &Graph, state: &StateSpec, used: &[(SlotId, Value)]) -> Result<(), GraphError> {
    let unused =
        state.iter().find(|(id, s)| s.kind == SlotKind::Parameter && !used.iter().any(|(u, _)| u == id));
    match unused {
        Some((_, s)) => Err(g.error(
            "train",
            format!("the loss does not depend on parameter '{}': it would never be trained", s.name),
        )),
        None => Ok(()),
    }
}

/// Writes one row of the ring, at the number of batches consumed, and counts the batch.
fn record(
    g: &mut Graph,
    state: &StateSpec,
    slots: &RunSlots,
    row: [Value; COLUMNS.len()],
) -> Result<(), GraphError> {
    let mut cells = Vec::new();
    for value in row {
        cells.push(g.reshape(value, [1, 1])?);
    }
    let row = g.one(Concat { axis: 1 }, &cells)?;
    let (ring, batches) = (g.read(state, slots.ring), g.read(state, slots.batches));
    let ring = g.one(UpdateSlice { axis: 0 }, &[ring, row, batches])?;
    g.write(state, slots.ring, ring)?;
    let next = g.one(Increment, &[batches])?;
    g.write(state, slots.batches, next)
}
