//! Batches in order, read ahead by worker threads.
//!
//! Invariants: what comes out is a function of the data set, the sampler and the position alone, whatever the
//! number of workers; at most `ahead` batches are in the making or waiting; a sample that cannot be read, or
//! whose decoder panics, is a row of weight 0 and never a hang; dropping the loader ends its threads as soon
//! as the samples being read are done.
mod job;
mod rows;
mod shared;

use std::sync::Arc;
use std::thread::JoinHandle;

use thiserror::Error;

use crate::batch::{self, Batch, Dataset, Memory, NoMemory};
use crate::sampler::{Position, Sampler};
use shared::Shared;

/// How a loader works. No result depends on it but for `window`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoaderOptions {
    /// Threads that read; 0: the calling thread reads when it asks for a batch.
    pub workers: usize,
    /// Batches in the making or waiting, at least 1. Memory grows with it.
    pub ahead: usize,
    /// Stop before this epoch, so that nothing is read for an epoch that will not come.
    pub until_epoch: Option<u64>,
    /// Batches of one step, at least 1: they are padded to one length, that of the longest caption among them, as one
    /// batch of their rows would be. Steps are counted from where the loader starts and anew in each epoch; the last
    /// one of an epoch may have fewer batches.
    pub window: usize,
}

/// A batch and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The batch.
    pub batch: Batch,
    /// Where it stands.
    pub position: Position,
    /// Where the next one stands: what a snapshot taken after this batch keeps.
    pub next: Position,
    /// The `T` that the batch at this place would have if rows were not brought together by length.
    pub unsorted_text: usize,
}

/// Why there is no batch. A bad sample is never a reason.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LoaderError {
    /// The sampler draws from rows that the source lacks.
    #[error("the sampler draws row {row}, but the data has {rows} rows; they do not belong together")]
    Rows {
        /// The largest row drawn.
        row: usize,
        /// How many the source has.
        rows: usize,
    },
    /// A batch is too large.
    #[error(transparent)]
    Memory(#[from] NoMemory),
    /// The system gives no thread.
    #[error("cannot start loader thread {number} of {workers}: {detail}; lower data_config.num_workers")]
    Thread {
        /// Which one, from 1.
        number: usize,
        /// How many were wanted.
        workers: usize,
        /// What the system said.
        detail: String,
    },
    /// A worker ended although it must not: a defect of this program.
    #[error("a loader thread died; this is a defect of the program, please report it")]
    Died,
}

/// Reads batches ahead, see the module.
pub struct Loader {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// The last batch handed out was the last of its epoch, and this was not said yet.
    at_border: bool,
}

impl Loader {
    /// Begins to read at `from`.
    pub fn start(
        dataset: Arc<Dataset>,
        sampler: Sampler,
        from: Position,
        options: LoaderOptions,
    ) -> Result<Self, LoaderError> {
        Self::start_in(dataset, sampler, from, options, batch::plain())
    }

    /// As [`start`](Self::start), with pictures in memory of the given kind.
    pub fn start_in(
        dataset: Arc<Dataset>,
        sampler: Sampler,
        from: Position,
        options: LoaderOptions,
        memory: Memory,
    ) -> Result<Self, LoaderError> {
        let rows = dataset.len();
        if sampler.rows().bound() > rows {
            return Err(LoaderError::Rows { row: sampler.rows().bound() - 1, rows });
        }
        let workers = options.workers;
        // Reading ahead makes no sense in the thread that waits.
        let ahead = if workers == 0 { 1 } else { options.ahead.max(1) };
        let shared =
            Arc::new(Shared::new(dataset, sampler, from, LoaderOptions { ahead, ..options }, memory));
        let mut loader = Self { shared, workers: Vec::with_capacity(workers), at_border: false };
        for number in 1..=workers {
            let shared = loader.shared.clone();
            let thread = std::thread::Builder::new().name(format!("ocelli-data-{number}"));
            let thread = thread.spawn(move || shared.work());
            let failed = |e: std::io::Error| LoaderError::Thread { number, workers, detail: e.to_string() };
            loader.workers.push(thread.map_err(failed)?);
        }
        Ok(loader)
    }

    /// The next batch, waiting for it if need be.
    ///
    /// `None` comes once at the end of each epoch; the call after it gives the first batch of the next epoch,
    /// which is read meanwhile. From `until_epoch` on, `None` for ever. An endless sampler gives no `None`.
    /// After an error the same error comes for ever.
    pub fn next_batch(&mut self) -> Option<Result<Loaded, LoaderError>> {
        if std::mem::take(&mut self.at_border) {
            return None;
        }
        let loaded = if self.workers.is_empty() { self.shared.next_here() } else { self.shared.next() }?;
        self.at_border = loaded.as_ref().is_ok_and(|l| l.next.epoch != l.position.epoch);
        Some(loaded)
    }

    /// Gives back a batch that is no longer needed: its buffers serve a later one, so that a steady run
    /// allocates no large buffer. Pictures that someone else has a handle of are written again once that is gone.
    pub fn recycle(&self, batch: Batch) {
        self.shared.recycle(batch);
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        self.shared.stop();
        for worker in self.workers.drain(..) {
            // A panic of a worker was reported by `next_batch` (`LoaderError::Died`).
            let _ = worker.join();
        }
    }
}
