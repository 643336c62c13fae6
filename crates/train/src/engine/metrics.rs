//! Rows of the metrics ring, as the host reads them.

use super::EngineError;
use crate::program::{COLUMNS, RING_ROWS};
use ocelli_ir::executor::Reading;
use ocelli_ir::ops::LossScale;

/// One row of the metrics ring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepMetrics {
    /// Summed loss of the batch.
    pub loss_sum: f32,
    /// What the sum is divided by.
    pub weight: f32,
    /// Norm of the gradient of the mean loss, before clipping.
    pub grad_norm: f32,
    /// Learning rate used.
    pub lr: f32,
    /// Factor on the loss in its gradients; 0 if the loss is not scaled.
    pub loss_scale: f32,
}

impl StepMetrics {
    /// The mean loss of the batch; 0 for a batch without weight.
    pub fn loss(&self) -> f32 {
        if self.weight > 0.0 { self.loss_sum / self.weight } else { 0.0 }
    }

    /// True if gradients overflowed because the loss scale was too large: the step was not taken, the scale was halved,
    /// and that is all.
    pub fn overflowed(&self) -> bool {
        let can_fall = f64::from(self.loss_scale) > LossScale::RANGE[0];
        can_fall && self.loss_sum.is_finite() && !self.grad_norm.is_finite()
    }

    /// True if the step was taken: loss and gradient are finite, and the batch had weight. The device decided the same.
    pub fn taken(&self) -> bool {
        self.loss_sum.is_finite() && self.grad_norm.is_finite() && self.weight > 0.0
    }
}

/// Rows on their way to the host.
#[derive(Debug)]
pub struct Metrics {
    pub(super) ring: Box<dyn Reading>,
    /// Attempts before the first and behind the last of them.
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Metrics {
    /// Runs of the optimiser when it was begun.
    pub fn to(&self) -> u64 {
        self.to
    }

    /// True once they are there: taking them waits for nothing.
    ///
    /// # Errors
    /// If the device fails.
    pub fn ready(&self) -> Result<bool, EngineError> {
        Ok(self.ring.ready()?)
    }

    /// A row an attempt, in their order.
    ///
    /// # Errors
    /// If the device fails.
    pub fn take(self) -> Result<Vec<StepMetrics>, EngineError> {
        let ring = super::floats(&self.ring.take()?);
        let row = |i: u64| {
            let at = (i % RING_ROWS as u64) as usize * COLUMNS.len();
            StepMetrics {
                loss_sum: ring[at],
                weight: ring[at + 1],
                grad_norm: ring[at + 2],
                lr: ring[at + 3],
                loss_scale: ring[at + 4],
            }
        };
        Ok((self.from..self.to).map(row).collect())
    }
}
