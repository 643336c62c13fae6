//! The state of a run beside its weights: counters, settings, the ring of metrics.

use ocelli_ir::{Init, Slot, SlotId, SlotKind, StateSpec, TensorType};

/// Rows of the metrics ring: how many steps the host may be behind.
pub const RING_ROWS: usize = 1024;

/// Columns of the metrics ring.
pub const COLUMNS: [&str; 5] = ["loss_sum", "weight", "grad_norm", "lr", "loss_scale"];

/// Slots that every training program uses.
#[derive(Clone, Copy, Debug)]
pub struct RunSlots {
    /// u32 `[]`: optimiser steps taken.
    pub step: SlotId,
    /// u32 `[]`: runs of the optimiser. Ahead of `step` when a step is skipped (rule 5).
    pub attempts: SlotId,
    /// u32 `[]`: batches consumed; several an attempt when gradients are accumulated.
    pub batches: SlotId,
    /// u32 `[2]`: the seed of dropout, low word first.
    pub seed: SlotId,
    /// f32 `[]`: the learning rate before its schedule.
    pub lr: SlotId,
    /// f32 `[RING_ROWS, COLUMNS]`: metrics of the last steps; row = attempts before the step.
    pub ring: SlotId,
}

impl RunSlots {
    /// Adds the slots, or finds them.
    ///
    /// # Errors
    /// If a slot of one of the names exists with another type.
    pub fn declare(state: &mut StateSpec) -> Result<Self, String> {
        let mut slot =
            |name: &str, ty, kind| state.declare(Slot { name: name.into(), ty, kind, init: Init::Zeros });
        Ok(Self {
            step: slot("optimizer.step", TensorType::u32([]), SlotKind::Counter)?,
            attempts: slot("optimizer.attempts", TensorType::u32([]), SlotKind::Counter)?,
            batches: slot("data.batches", TensorType::u32([]), SlotKind::Counter)?,
            seed: slot("dropout.seed", TensorType::u32([2]), SlotKind::Setting)?,
            lr: slot("optimizer.lr", TensorType::f32([]), SlotKind::Setting)?,
            ring: slot("metrics.ring", TensorType::f32([RING_ROWS, COLUMNS.len()]), SlotKind::Ring)?,
        })
    }
}

/// Loss scaling.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScaleSlots {
    /// f32 `[]`: the factor on the loss.
    pub scale: SlotId,
    /// u32 `[]`: steps since it last changed.
    pub good: SlotId,
}

impl ScaleSlots {
    /// The first scale. PyTorch's is 65,536 on a mean loss; here the loss is a sum, so its gradients are larger by
    /// the number of tokens.
    const FIRST: f64 = 1024.0;

    /// Adds the slots, or finds them.
    pub fn declare(state: &mut StateSpec) -> Result<Self, String> {
        let mut slot = |name: &str, ty, init| {
            state.declare(Slot { name: name.into(), ty, kind: SlotKind::LossScale, init })
        };
        Ok(Self {
            scale: slot("amp.loss_scale", TensorType::f32([]), Init::Constant(Self::FIRST))?,
            good: slot("amp.good_steps", TensorType::u32([]), Init::Zeros)?,
        })
    }
}

/// Sums over the batches of one optimiser step. They are zero between steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct SumSlots {
    /// f32 `[]`: summed loss.
    pub loss: SlotId,
    /// f32 `[]`: summed weight.
    pub weight: SlotId,
}

impl SumSlots {
    /// Adds the slots, or finds them.
    pub fn declare(state: &mut StateSpec) -> Result<Self, String> {
        Ok(Self {
            loss: sum_slot(state, "accumulated.loss", TensorType::f32([]))?,
            weight: sum_slot(state, "accumulated.weight", TensorType::f32([]))?,
        })
    }
}

/// The slot that sums the gradient of a parameter.
pub(super) fn gradient_slot(state: &mut StateSpec, parameter: SlotId) -> Result<SlotId, String> {
    let slot = state.get(parameter);
    let (name, ty) = (format!("{}.grad_sum", slot.name), slot.ty.clone());
    sum_slot(state, &name, ty)
}

fn sum_slot(state: &mut StateSpec, name: &str, ty: TensorType) -> Result<SlotId, String> {
    state.declare(Slot { name: name.into(), ty, kind: SlotKind::Accumulator, init: Init::Zeros })
}
