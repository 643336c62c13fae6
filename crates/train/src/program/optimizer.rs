//! The optimiser as a graph: scale by the batch's weight, clip by the global norm, Adam or AdamW, count the step.

use super::slots::ScaleSlots;
use super::{RunSlots, Schedule};
use ocelli_config::Pattern;
use ocelli_ir::ops::{Adam, Increment, LossScale, StepGate, SumSquares};
use ocelli_ir::{DType, Graph, GraphError, Init, Slot, SlotId, SlotKind, StateSpec, Value};

/// Which optimiser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptimizerKind {
    /// Weight decay, if any, is added to the gradient.
    Adam,
    /// Weight decay, if any, shrinks the weights directly.
    AdamW,
}

/// An optimiser and its settings. The base learning rate is in the state, so that it can change without a new
/// program.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimizer {
    /// Which one.
    pub kind: OptimizerKind,
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub eps: f64,
    /// Weight decay on matrices; vectors (biases, norms) have none.
    pub weight_decay: f64,
    /// Largest norm of all gradients together; longer ones are scaled down.
    pub clip: Option<f64>,
    /// The learning rate over time.
    pub schedule: Schedule,
    /// Batches whose gradients one step sums, at least 1.
    pub batches: usize,
    /// Weights that are treated otherwise; the first group whose pattern fits counts.
    pub groups: Vec<Group>,
    /// Scale the loss, so that gradients stored in fp16 do not vanish.
    pub scale_loss: bool,
}

impl Optimizer {
    /// PyTorch's Adam with its defaults: no decay, no clip, no schedule.
    pub const ADAM: Self = Self {
        kind: OptimizerKind::Adam,
        beta1: 0.9,
        beta2: 0.999,
        eps: 1e-8,
        weight_decay: 0.0,
        clip: None,
        schedule: Schedule::CONSTANT,
        batches: 1,
        groups: Vec::new(),
        scale_loss: false,
    };

    /// What a weight's learning rate is multiplied with; none if it is not trained.
    pub fn rate(&self, name: &str) -> Option<f64> {
        self.groups.iter().find(|group| group.pattern.matches(name)).map_or(Some(1.0), |group| group.rate)
    }

    /// What gradients are multiplied with, f32 `[]`: the loss scale, or 1.
    pub(super) fn seed(&self, g: &mut Graph, state: &mut StateSpec) -> Result<Value, GraphError> {
        if !self.scale_loss {
            return Ok(g.constant(1.0, DType::F32));
        }
        let slots = ScaleSlots::declare(state).map_err(|m| g.error("state", m))?;
        Ok(g.read(state, slots.scale))
    }
}

/// Weights of certain names.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Their names.
    pub pattern: Pattern,
    /// What their learning rate is multiplied with; none: they are not trained.
    pub rate: Option<f64>,
}

/// What an update reports, each f32 `[]`.
pub(super) struct Applied {
    /// Norm of the gradient of the mean loss, before clipping.
    pub norm: Value,
    /// Learning rate used.
    pub lr: Value,
    /// Loss scale used, 0 if the loss is not scaled.
    pub loss_scale: Value,
}

/// Updates the parameters. `updated` holds slot, value and gradient of the loss *sum*, times [`Optimizer::seed`];
/// `weight` is what that sum, `loss`, is divided by (rule 4).
pub(super) fn apply(
    g: &mut Graph,
    state: &mut StateSpec,
    slots: &RunSlots,
    o: &Optimizer,
    updated: &[(SlotId, Value, Value)],
    [loss, weight]: [Value; 2],
) -> Result<Applied, GraphError> {
    let one = g.constant(1.0, DType::F32);
    // Where the weight is 0 so are all gradients; the bound only keeps 0 / 0 out.
    let tiny = g.constant(1e-20, DType::F32);
    let mut divisor = g.maximum(weight, tiny)?;
    let loss_scale = if o.scale_loss { o.seed(g, state)? } else { g.constant(0.0, DType::F32) };
    if o.scale_loss {
        divisor = g.mul(divisor, loss_scale)?;
    }
    let mut scale = g.div(one, divisor)?;
    let grads: Vec<Value> = updated.iter().map(|u| u.2).collect();
    let squares = g.one(SumSquares, &grads)?;
    let length = g.sqrt(squares)?;
    let norm = g.mul(length, scale)?;
    if let Some(max) = o.clip {
        let (max, tiny) = (g.constant(max, DType::F32), g.constant(1e-6, DType::F32));
        let safe = g.add(norm, tiny)?;
        let ratio = g.div(max, safe)?;
        let factor = g.minimum(ratio, one)?;
        scale = g.mul(scale, factor)?;
    }
    let (base, step) = (g.read(state, slots.lr), g.read(state, slots.step));
    let lr = o.schedule.rate(g, base, step)?;
    // A batch without weight, or one whose loss or gradient is no finite number, is no step: weights, moments, counter
    // and schedule stay (rule 5).
    let apply = g.one(StepGate, &[norm, weight, loss])?;
    let step = g.one(Increment, &[step, apply])?;
    g.write(state, slots.step, step)?;
    if o.scale_loss {
        next_loss_scale(g, state, loss_scale, norm, apply)?;
    }
    for &(slot, value, grad) in updated {
        let lr = match o.rate(&state.get(slot).name) {
            Some(rate) if rate != 1.0 => {
                let rate = g.constant(rate, DType::F32);
                g.mul(lr, rate)?
            }
            _ => lr,
        };
        update(g, state, o, (slot, value, grad), [scale, lr, step, apply])?;
    }
    Ok(Applied { norm, lr, loss_scale })
}

/// True for weights that decay: those with at least two extents above 1. A class token `[1, 1, D]` is a vector.
fn is_matrix(shape: &[usize]) -> bool {
    shape.iter().filter(|&&n| n > 1).count() >= 2
}

/// Steps without overflow after which the loss scale is doubled, as in PyTorch.
const PATIENCE: u32 = 2000;

fn next_loss_scale(
    g: &mut Graph,
    state: &mut StateSpec,
    scale: Value,
    norm: Value,
    apply: Value,
) -> Result<(), GraphError> {
    let slots = ScaleSlots::declare(state).map_err(|m| g.error("state", m))?;
    let good = g.read(state, slots.good);
    let next = g.many(LossScale { interval: PATIENCE }, &[scale, good, norm, apply])?;
    g.write(state, slots.scale, next[0])?;
    g.write(state, slots.good, next[1])
}

fn update(
    g: &mut Graph,
    state: &mut StateSpec,
    o: &Optimizer,
    (slot, value, grad): (SlotId, Value, Value),
    [scale, lr, step, apply]: [Value; 4],
) -> Result<(), GraphError> {
    let parameter = state.get(slot).clone();
    let mut moments = Vec::new();
    for suffix in ["adam_m", "adam_v"] {
        let name = format!("{}.{suffix}", parameter.name);
        let moment = Slot { name, ty: parameter.ty.clone(), kind: SlotKind::Moment, init: Init::Zeros };
        moments.push(state.declare(moment).map_err(|m| g.error("state", m))?);
    }
    let (m, v) = (g.read(state, moments[0]), g.read(state, moments[1]));
    let weight_decay = if is_matrix(&parameter.ty.shape) { o.weight_decay } else { 0.0 };
    let decoupled = o.kind == OptimizerKind::AdamW;
    let adam = Adam { beta1: o.beta1, beta2: o.beta2, eps: o.eps, weight_decay, decoupled };
    let new = g.many(adam, &[value, m, v, grad, scale, lr, step, apply])?;
    for (slot, value) in [slot, moments[0], moments[1]].into_iter().zip(new) {
        g.write(state, slot, value)?;
    }
    Ok(())
}
