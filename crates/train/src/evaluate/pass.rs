//! A pass over rows, in order and each once, dropout off: what a validation and an evaluation have in common.

use crate::error::TrainError;
use crate::settings::{self, AHEAD};
use ocelli_config::Config;
use ocelli_data::batch::{Dataset, Memory};
use ocelli_data::loader::{Loader, LoaderOptions};
use ocelli_data::sampler::{Position, Sampler};
use ocelli_data::split::Rows;
use std::sync::Arc;

/// Batches of `eval_batch_size` rows, the last one filled up with rows of weight 0; pictures in such memory.
pub(crate) fn in_order(
    c: &Config,
    dataset: Arc<Dataset>,
    rows: Rows,
    memory: Memory,
) -> Result<Loader, TrainError> {
    let sampler = Sampler::in_order(rows, c.trainer.eval_batch_size)?;
    let options =
        LoaderOptions { workers: settings::workers(c), ahead: AHEAD, until_epoch: Some(1), window: 1 };
    Ok(Loader::start_in(dataset, sampler, Position::default(), options, memory)?)
}

/// A loss summed over batches (rule 4).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Summed {
    loss: f64,
    /// What it is divided by.
    pub weight: f64,
}

impl Summed {
    /// Adds the summed loss and the weight of a batch.
    pub fn add(&mut self, (loss, weight): (f64, f64)) {
        self.loss += loss;
        self.weight += weight;
    }

    /// The mean loss a token; none without weight.
    pub fn mean(self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.loss / self.weight)
    }
}
