//! The programs of a run, built as graphs over one state: train (or accumulate and apply), evaluate, prefill, decode.
//!
//! A program is a function of sizes and settings alone. What changes between runs of it (batch, step, learning
//! rate, seed, lengths) is an input or state (rule 2). A partial batch is a batch with rows of weight 0 (rule 3).

mod generate;
mod loss;
mod optimizer;
mod schedule;
mod slots;

pub use generate::{decode, prefill};
pub use loss::{Inputs, Pictures};
pub use optimizer::{Group, Optimizer, OptimizerKind};
pub use schedule::{Decay, Schedule};
pub use slots::{COLUMNS, RING_ROWS, RunSlots};
use slots::{SumSlots, gradient_slot};

use ocelli_ir::ops::{Concat, Increment, UpdateSlice};
use ocelli_ir::{DType, Graph, GraphError, Op, Phase, Slot, SlotId, SlotKind, StateSpec, Value};
use ocelli_models::Model;
use ocelli_models::nn::{Context, DropoutKeys, Mode};
use ocelli_passes::autodiff::{Wanted, gradients};
use ocelli_passes::{CompileError, PassCx, Stage, pipeline};

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
    cx: &mut PassCx<'_>,
    model: &dyn Model,
    size: Size,
    pictures: Pictures,
    optimizer: &Optimizer,
) -> Result<Graph, CompileError> {
    let mut step = gradients_of_batch(cx, model, size, pictures, optimizer)?;
    update(&mut step, cx.state, optimizer)?;
    Ok(step.g)
}

/// The first part of a training step over several batches: takes one of them and adds its gradients, loss and
/// weight to the sums. [`apply`] is the last part.
///
/// # Errors
/// As [`train`].
pub fn accumulate(
    cx: &mut PassCx<'_>,
    model: &dyn Model,
    size: Size,
    pictures: Pictures,
    optimizer: &Optimizer,
) -> Result<Graph, CompileError> {
    let Step { mut g, loss, weight, updated, .. } = gradients_of_batch(cx, model, size, pictures, optimizer)?;
    g.begin(Phase::Update);
    g.enter("accumulate");
    let add = |g: &mut Graph, state: &StateSpec, slot, value| {
        let old = g.read(state, slot);
        let new = g.add(old, value)?;
        g.write(state, slot, new)
    };
    let sums = SumSlots::declare(cx.state).map_err(|m| g.error("state", m))?;
    add(&mut g, cx.state, sums.loss, loss)?;
    add(&mut g, cx.state, sums.weight, weight)?;
    for (parameter, _, grad) in updated {
        let slot = gradient_slot(cx.state, parameter).map_err(|m| g.error("state", m))?;
        add(&mut g, cx.state, slot, grad)?;
    }
    g.leave();
    Ok(g)
}

/// The last part of a training step over several batches: updates the weights by the summed gradients, writes one
/// row of the metrics ring, and empties the sums. The division by the summed weight happens here (rule 4), so that k
/// batches of b rows are one batch of k b rows, however the weights lie among them.
///
/// # Errors
/// If the state has slots of these names with other types.
pub fn apply(cx: &mut PassCx<'_>, optimizer: &Optimizer) -> Result<Graph, CompileError> {
    let mut g = Graph::new();
    let slots = RunSlots::declare(cx.state).map_err(|m| g.error("state", m))?;
    let sums = SumSlots::declare(cx.state).map_err(|m| g.error("state", m))?;
    let (loss, weight) = (g.read(cx.state, sums.loss), g.read(cx.state, sums.weight));
    let trained = |s: &Slot| s.kind == SlotKind::Parameter && optimizer.rate(&s.name).is_some();
    let parameters: Vec<SlotId> = cx.state.iter().filter(|(_, s)| trained(s)).map(|(id, _)| id).collect();
    let mut emptied = vec![sums.loss, sums.weight];
    let mut updated = Vec::with_capacity(parameters.len());
    for parameter in parameters {
        let sum = gradient_slot(cx.state, parameter).map_err(|m| g.error("state", m))?;
        updated.push((parameter, g.read(cx.state, parameter), g.read(cx.state, sum)));
        emptied.push(sum);
    }
    let mut step = Step { g, slots, loss, weight, updated };
    update(&mut step, cx.state, optimizer)?;
    let mut g = step.g;
    g.enter("optimizer");
    for slot in emptied {
        let zeros = g.zeros(cx.state.get(slot).ty.clone());
        g.write(cx.state, slot, zeros)?;
    }
    g.leave();
    Ok(g)
}

/// Gradients, before they are used.
struct Step {
    g: Graph,
    slots: RunSlots,
    /// Summed loss.
    loss: Value,
    /// What it is divided by.
    weight: Value,
    /// Slot, value and gradient of the summed loss of each parameter, times [`Optimizer::seed`].
    updated: Vec<(SlotId, Value, Value)>,
}

/// Takes a batch with dropout on, counts it, and differentiates its loss.
fn gradients_of_batch(
    cx: &mut PassCx<'_>,
    model: &dyn Model,
    size: Size,
    pictures: Pictures,
    optimizer: &Optimizer,
) -> Result<Step, CompileError> {
    let mut g = Graph::new();
    let slots = RunSlots::declare(cx.state).map_err(|m| g.error("state", m))?;
    let inputs = Inputs::declare(&mut g, model, size, pictures);
    let samples = inputs.samples;
    let (seed, step) = (g.read(cx.state, slots.seed), g.read(cx.state, slots.step));
    let mode = Mode::Train(DropoutKeys { seed, step, samples });
    let (mut g, loss, weight) = forward(g, cx, model, &inputs, mode)?;
    count(&mut g, cx.state, slots.batches)?;
    let mut parameters = parameters(&g, cx.state)?;
    // What is not trained has no gradient, and nothing behind it has a backward part.
    parameters.retain(|(slot, _)| optimizer.rate(&cx.state.get(*slot).name).is_some());
    if parameters.is_empty() {
        let why = "trainer_config.freeze leaves no weight to train: take a pattern out";
        return Err(CompileError::Setting(why.into()));
    }
    let seed = optimizer.seed(&mut g, cx.state)?;
    let grads = parameter_gradients(&mut g, cx.state, &parameters, loss, seed)?;
    cx.show("autodiff", &g);
    let updated =
        parameters.into_iter().zip(grads).map(|((slot, value), grad)| (slot, value, grad)).collect();
    Ok(Step { g, slots, loss, weight, updated })
}

/// Gradients as outputs, named as their parameters, for tests: the loss sum and its weight come first. The
/// gradients are of the mean loss.
///
/// # Errors
/// If the sizes do not fit the model, or a parameter is not reached by the loss.
pub fn mean_gradients(
    cx: &mut PassCx<'_>,
    model: &dyn Model,
    size: Size,
    pictures: Pictures,
) -> Result<Graph, CompileError> {
    let (mut g, loss, weight) = without_dropout(cx, model, size, pictures)?;
    let parameters = parameters(&g, cx.state)?;
    let one = g.constant(1.0, DType::F32);
    let seed = g.div(one, weight)?;
    let grads = parameter_gradients(&mut g, cx.state, &parameters, loss, seed)?;
    g.output("loss", loss);
    g.output("weight", weight);
    parameters.iter().zip(grads).for_each(|((slot, _), grad)| g.output(&cx.state.get(*slot).name, grad));
    Ok(g)
}

/// Evaluation: outputs `loss` (sum) and `weight`, with dropout off.
///
/// # Errors
/// If the sizes do not fit the model.
pub fn evaluate(
    cx: &mut PassCx<'_>,
    model: &dyn Model,
    size: Size,
    pictures: Pictures,
) -> Result<Graph, CompileError> {
    let (mut g, loss, weight) = without_dropout(cx, model, size, pictures)?;
    g.output("loss", loss);
    g.output("weight", weight);
    Ok(g)
}

/// The forward part of a program that takes a batch with dropout off.
fn without_dropout(
    cx: &mut PassCx<'_>,
    model: &dyn Model,
    size: Size,
    pictures: Pictures,
) -> Result<(Graph, Value, Value), CompileError> {
    let mut g = Graph::new();
    let inputs = Inputs::declare(&mut g, model, size, pictures);
    forward(g, cx, model, &inputs, Mode::Eval)
}

/// The forward part of a program, behind its passes: the graph, the summed loss and its weight.
fn forward(
    mut g: Graph,
    cx: &mut PassCx<'_>,
    model: &dyn Model,
    inputs: &Inputs,
    mode: Mode,
) -> Result<(Graph, Value, Value), CompileError> {
    let (loss, weight) = loss::loss(&mut Context::new(&mut g, cx.state, mode), model, inputs)?;
    // Passes make a new graph: what is looked for behind them needs a name.
    g.output("loss", loss);
    g.output("weight", weight);
    let mut g = pipeline::run(Stage::Forward, "loss", g, cx)?;
    match g.take_outputs()[..] {
        [(_, loss), (_, weight)] => Ok((g, loss, weight)),
        _ => Err(g.error("loss", "a pass lost an output").into()),
    }
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

/// The parameters that a program reads: slot and value.
///
/// # Errors
/// If the state has a parameter that is not among them: it would never be trained.
fn parameters(g: &Graph, state: &StateSpec) -> Result<Vec<(SlotId, Value)>, GraphError> {
    let read: Vec<(SlotId, Value)> = (g.nodes().iter())
        .filter_map(|node| match &node.op {
            Op::StateRead(op) if state.get(op.slot).kind == SlotKind::Parameter => {
                Some((op.slot, node.outputs[0]))
            }
            _ => None,
        })
        .collect();
    let unread =
        state.iter().find(|(id, s)| s.kind == SlotKind::Parameter && !read.iter().any(|(r, _)| r == id));
    match unread {
        Some((_, s)) => Err(g.error(
            "train",
            format!("the loss does not depend on parameter '{}': it would never be trained", s.name),
        )),
        None => Ok(read),
    }
}

/// Updates the parameters by their gradients, and writes one row of the ring.
fn update(step: &mut Step, state: &mut StateSpec, optimizer: &Optimizer) -> Result<(), GraphError> {
    let Step { g, slots, loss, weight, updated } = step;
    g.begin(Phase::Update);
    g.enter("optimizer");
    let applied = optimizer::apply(g, state, slots, optimizer, updated, [*loss, *weight])?;
    record(g, state, slots, [*loss, *weight, applied.norm, applied.lr, applied.loss_scale])?;
    g.leave();
    Ok(())
}

/// Writes one row of the ring, at the number of attempts, and counts the attempt.
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
    let (ring, attempts) = (g.read(state, slots.ring), g.read(state, slots.attempts));
    let ring = g.one(UpdateSlice { axis: 0 }, &[ring, row, attempts])?;
    g.write(state, slots.ring, ring)?;
    count(g, state, slots.attempts)
}

/// Adds one to a counter.
fn count(g: &mut Graph, state: &StateSpec, counter: SlotId) -> Result<(), GraphError> {
    let old = g.read(state, counter);
    let next = g.one(Increment, &[old])?;
    g.write(state, counter, next)
}
