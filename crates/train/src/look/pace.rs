//! How fast a source becomes batches, without training on them: the loader of `train`, as fast as it goes.

use super::{Opened, Request, Rows};
use crate::error::TrainError;
use crate::report::{Event, Reporter};
use crate::settings;
use ocelli_data::loader::{Loader, LoaderOptions};
use ocelli_data::sampler::{Position, Sampler, SamplerOptions};
use ocelli_data::source::{Source, without_captions};
use ocelli_data::split::Rows as Drawn;
use ocelli_data::stages::{Stage, Watch};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rows of an epoch, at most: enough to time, also of sets that are drawn without end.
pub const ROWS: usize = 100_000;

/// One epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct Epoch {
    /// Pictures that came in batches.
    pub images: usize,
    /// Rows that could not be used.
    pub skipped: usize,
    /// From the request of the first batch to the last one.
    pub time: Duration,
    /// What each of [`Stage::ALL`] took, in all threads together.
    pub stages: [Duration; Stage::ALL.len()],
}

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Pace {
    /// What the rows are of.
    pub source: String,
    /// Rows of a batch.
    pub batch: usize,
    /// Threads that decode.
    pub workers: usize,
    /// Each epoch, in order.
    pub epochs: Vec<Epoch>,
    /// What a person should know of how it is read.
    pub notes: Vec<String>,
}

/// Takes `epochs` epochs of batches of a source (of its training split, where it has splits), in shuffled order, each of at
/// most [`ROWS`] rows.
///
/// # Errors
/// If the source cannot be used as a whole.
pub fn pace(request: &Request, epochs: u64, reporter: &mut dyn Reporter) -> Result<Pace, TrainError> {
    let Opened { config: c, parts, notes, .. } = request.open(None, reporter)?;
    let dataset = match parts.into_iter().next() {
        Some(Rows::Captioned(dataset)) => Arc::new(dataset),
        Some(Rows::Pictures(pictures, _)) => {
            return Err(TrainError::Setting(without_captions(pictures.len())));
        }
        None => return Err(TrainError::Setting(format!("{}: there are no rows", request.source))),
    };
    let (batch, workers) = (c.trainer.train_batch_size, settings::workers(&c));
    let rows = Drawn::all(dataset.len()).first(ROWS);
    let (seed, batch_per_rank) = (c.trainer.seed, batch);
    let sampler = SamplerOptions { seed, shuffle: true, endless: false, batch_per_rank, rank: 0, world: 1 };
    let sampler = Sampler::new(rows, sampler)?;
    let source = dataset.source().describe();
    let watch = Watch::begin();
    let mut all = Vec::new();
    for epoch in 0..epochs {
        // Each by a loader of its own: one that goes on would read the next epoch's first batches within this one's time.
        let until_epoch = Some(epoch + 1);
        let options = LoaderOptions { workers, ahead: settings::AHEAD, until_epoch, window: 1 };
        let start = Instant::now();
        let from = Position { epoch, batch: 0 };
        let mut loader = Loader::start(dataset.clone(), sampler.clone(), from, options)?;
        let (mut images, mut skipped) = (0, 0);
        while let Some(loaded) = loader.next_batch() {
            let batch = loaded?.batch;
            images += batch.real_rows;
            skipped += batch.skipped.len();
            loader.recycle(batch);
        }
        all.push(Epoch { images, skipped, time: start.elapsed(), stages: watch.lap() });
        reporter.event(&Event::Looked { done: all.len(), total: epochs as usize });
    }
    Ok(Pace { source, batch, workers, epochs: all, notes })
}
