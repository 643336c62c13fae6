//! How fast a source becomes batches, without training on them: the loader of `train`, as fast as it goes, from the source and then from
//! a cache of it.

use super::{Opened, Request, Rows};
use crate::error::TrainError;
use crate::keep;
use crate::report::{Event, Reporter};
use crate::settings;
use ocelli_config::Config;
use ocelli_data::batch::Dataset;
use ocelli_data::loader::{Loader, LoaderOptions};
use ocelli_data::sampler::{Position, Sampler, SamplerOptions};
use ocelli_data::source::{Source, without_captions};
use ocelli_data::split::Rows as Drawn;
use ocelli_data::stages::{Stage, Watch};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Rows of an epoch, at most: enough to time, also of sets that are drawn without end.
pub const ROWS: usize = 100_000;

/// One epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct Epoch {
    /// From a cache of decoded pictures.
    pub cached: bool,
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
/// most [`ROWS`] rows; and as many more from a cache of decoded pictures, where there can be one.
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
    let (mut all, mut notes) = (Vec::new(), notes);
    let mut time = |dataset: &Arc<Dataset>, cached| {
        let watch = Watch::begin();
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
            all.push(Epoch { cached, images, skipped, time: start.elapsed(), stages: watch.lap() });
        }
        Ok::<_, TrainError>(())
    };
    time(&dataset, false)?;
    match cached(&c, &dataset, reporter) {
        Ok((dataset, _removed)) => time(&dataset, true)?,
        Err(why) => notes.push(format!("from a cache: not measured: {why}")),
    }
    Ok(Pace { source, batch, workers, epochs: all, notes })
}

/// The same rows from a cache, in a folder that goes when it is dropped.
fn cached(
    c: &Config,
    dataset: &Dataset,
    reporter: &mut dyn Reporter,
) -> Result<(Arc<Dataset>, TempDir), TrainError> {
    let folder = tempfile::tempdir().map_err(|e| TrainError::Setting(format!("no temporary folder: {e}")))?;
    let file = folder.path().join("pictures");
    let cached = dataset.from_other(|source| {
        let opened = keep::in_file(c, source.clone(), file.clone())?;
        if let Some(cache) = &opened.cache {
            let total = cache.pictures();
            let mut step = |missing: usize| {
                reporter.event(&Event::Looked { done: total - missing, total });
                true
            };
            cache.complete(settings::workers(c), &mut step);
            step(0);
        }
        // As a later run finds it.
        Ok::<_, TrainError>(keep::in_file(c, source, file)?.source)
    })?;
    Ok((Arc::new(cached), folder))
}
