//! Which rows make up which batch. A pure function of (seed, [`Position`]): it knows nothing of decoding,
//! threads or what was drawn before, and only the size of the *global* batch matters, not how many ranks
//! share it.
//!
//! All rows drawn by a run form one stream: the permutation of epoch 0, then that of epoch 1, and so on. A
//! batch is a window of the stream. In a finite run the windows begin anew at each epoch, so the last one of
//! an epoch may be short; in an endless run they cross the borders and are always full.
mod buckets;
mod memo;
mod permutation;
#[cfg(test)]
mod tests;
mod window;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::source::Blocks;
use crate::split::Rows;
use buckets::Buckets;
pub use buckets::{BUCKET_WINDOW, CaptionLengths};
pub(crate) use permutation::Permutation;
use window::Grouped;

/// Where the next batch begins: kept in snapshots.
///
/// The batch starts at place `epoch * rows + batch * global_batch` of the stream, finite or endless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Epochs done before it. An endless run counts batches only and leaves this as it was.
    pub epoch: u64,
    /// Global batches done in this epoch.
    pub batch: u64,
}

/// One row of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Row number of the data set.
    pub row: usize,
    /// How many times all rows were drawn before: it keys which caption of a picture is taken.
    pub pass: u64,
    /// The low 32 bits of the row's place in the stream: it keys dropout, whatever the number of ranks.
    pub sample_index: u32,
}

/// The rows of one global batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobalBatch {
    /// Where this batch stands.
    pub position: Position,
    /// Where the next one stands; its epoch is larger if this batch is the last of its epoch.
    pub next: Position,
    /// The rows in order: `global_batch` of them, or fewer at the end of a finite epoch (never none).
    pub slots: Vec<Slot>,
    /// The place in the stream at which its window begins: that of the first one, unless rows are brought together by
    /// length.
    pub start: u64,
    /// Where rows are brought together by length, the longest caption that this batch would have had otherwise.
    pub unsorted_longest: Option<usize>,
}

/// How batches are drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SamplerOptions {
    /// Keys the order (with the epoch).
    pub seed: u64,
    /// Each epoch in an order of its own; false: always in the order of [`Rows`].
    pub shuffle: bool,
    /// The epoch never ends: orders are joined, and every batch is full.
    pub endless: bool,
    /// Rows of a batch on each rank.
    pub batch_per_rank: usize,
    /// This process's number, `0..world`.
    pub rank: usize,
    /// How many processes share a global batch.
    pub world: usize,
}

/// Why batches cannot be drawn.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SamplerError {
    /// A split without rows.
    #[error("there are no rows to draw batches from")]
    NoRows,
    /// A batch without rows.
    #[error("a batch size of 0: at least 1 row a batch is needed")]
    NoBatch,
    /// A rank that does not exist.
    #[error("rank {rank} of {world}: ranks are numbered from 0 and below the world size")]
    Rank {
        /// This process's number.
        rank: usize,
        /// The number of processes.
        world: usize,
    },
    /// A global batch that does not fit into memory on any machine.
    #[error("{batch_per_rank} rows a rank on {world} ranks is too large a batch")]
    TooLarge {
        /// Rows on each rank.
        batch_per_rank: usize,
        /// The number of ranks.
        world: usize,
    },
}

/// Draws the rows of batches.
#[derive(Clone, Debug)]
pub struct Sampler {
    rows: Arc<Rows>,
    options: SamplerOptions,
    /// Rows are shuffled within windows of blocks, not over the whole epoch.
    grouped: Option<Arc<Grouped>>,
    /// Rows of like length are brought together.
    buckets: Option<Buckets>,
}

impl Sampler {
    /// Draws from `rows`.
    pub fn new(rows: Rows, options: SamplerOptions) -> Result<Self, SamplerError> {
        let SamplerOptions { batch_per_rank, rank, world, .. } = options;
        if rows.is_empty() {
            return Err(SamplerError::NoRows);
        }
        if batch_per_rank == 0 {
            return Err(SamplerError::NoBatch);
        }
        if rank >= world {
            return Err(SamplerError::Rank { rank, world });
        }
        // Far above any machine, and low enough that the arithmetic of the first 2^32 batches is exact.
        if batch_per_rank.checked_mul(world).is_none_or(|n| u32::try_from(n).is_err()) {
            return Err(SamplerError::TooLarge { batch_per_rank, world });
        }
        Ok(Self { rows: Arc::new(rows), options, grouped: None, buckets: None })
    }

    /// Shuffles the `blocks` that rows lie in, and rows within windows of at least `rows` of them; nothing changes if
    /// rows are not shuffled.
    #[must_use]
    pub fn with_shuffle_window(self, blocks: &Blocks, rows: usize) -> Self {
        let grouped = self.options.shuffle.then(|| Grouped::new(&self.rows, blocks, rows)).flatten();
        Self { grouped: grouped.map(Arc::new), ..self }
    }

    /// Brings rows with captions of like length together, within windows of [`BUCKET_WINDOW`] batches.
    #[must_use]
    pub fn with_buckets(self, lengths: Arc<dyn CaptionLengths>) -> Self {
        Self { buckets: Some(Buckets::new(lengths)), ..self }
    }

    /// Every row once, in order, on one process: for evaluation.
    pub fn in_order(rows: Rows, batch: usize) -> Result<Self, SamplerError> {
        let options = SamplerOptions {
            seed: 0,
            shuffle: false,
            endless: false,
            batch_per_rank: batch,
            rank: 0,
            world: 1,
        };
        Self::new(rows, options)
    }

    /// How batches are drawn.
    pub fn options(&self) -> &SamplerOptions {
        &self.options
    }

    /// What they are drawn from.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Rows of a full batch, all ranks together.
    pub fn global_batch(&self) -> usize {
        self.options.batch_per_rank * self.options.world
    }

    /// Batches of an epoch, the last short one included; `None` if the epoch never ends.
    pub fn batches_per_epoch(&self) -> Option<u64> {
        (!self.options.endless).then(|| self.rows.len().div_ceil(self.global_batch()) as u64)
    }

    /// The same place, with the end of an epoch written as the beginning of the next.
    pub fn normalise(&self, position: Position) -> Position {
        match self.batches_per_epoch() {
            Some(end) if position.batch >= end => {
                Position { epoch: position.epoch.saturating_add(1), batch: 0 }
            }
            _ => position,
        }
    }

    /// The batch at `position`.
    pub fn batch(&self, position: Position) -> GlobalBatch {
        let position = self.normalise(position);
        let (rows, size) = (self.rows.len() as u64, self.global_batch() as u64);
        let within = position.batch.wrapping_mul(size);
        let start = position.epoch.wrapping_mul(rows).wrapping_add(within);
        let count = if self.options.endless { size } else { size.min(rows - within) };
        let next = self.normalise(Position { batch: position.batch.wrapping_add(1), ..position });
        let (slots, unsorted_longest) = match &self.buckets {
            Some(buckets) if count == size => self.sorted(buckets, position.batch, start),
            _ => (self.stream(start, count), None),
        };
        GlobalBatch { position, next, slots, start, unsorted_longest }
    }

    /// The full batch of this number, which begins at `start` of the stream, out of its window sorted by length.
    fn sorted(&self, buckets: &Buckets, batch: u64, start: u64) -> (Vec<Slot>, Option<usize>) {
        let size = self.global_batch() as u64;
        let within = batch % BUCKET_WINDOW;
        let full = if self.options.endless { u64::MAX } else { self.rows.len() as u64 / size };
        let batches = BUCKET_WINDOW.min(full - (batch - within));
        let place = (start.wrapping_sub(within.wrapping_mul(size)), batches * size);
        let draw = || self.stream(place.0, place.1);
        buckets.window(self.options.seed, place, size as usize, draw).batch(within as usize, size as usize)
    }

    /// The rows at places `start..start + count` of the stream.
    fn stream(&self, start: u64, count: u64) -> Vec<Slot> {
        let rows = self.rows.len() as u64;
        let mut epoch = start / rows;
        let mut order = self.order(epoch);
        (0..count)
            .filter_map(|i| {
                let place = start.wrapping_add(i);
                if place / rows != epoch {
                    epoch = place / rows;
                    order = self.order(epoch);
                }
                let row = self.row(&order, place % rows)?;
                Some(Slot { row, pass: epoch, sample_index: place as u32 })
            })
            .collect()
    }

    fn row(&self, order: &Order, place: u64) -> Option<usize> {
        match order {
            Order::AsTheyAre => self.rows.get(place as usize),
            Order::Permuted(order) => self.rows.get(order.at(place) as usize),
            Order::Windows(grouped, epoch) => grouped.at(epoch, place as usize),
        }
    }

    fn order(&self, epoch: u64) -> Order {
        let SamplerOptions { seed, shuffle, .. } = self.options;
        match &self.grouped {
            Some(grouped) => Order::Windows(grouped.clone(), grouped.epoch(seed, epoch)),
            None if shuffle => {
                Order::Permuted(Permutation::new(self.rows.len() as u64, seed, "data order", epoch))
            }
            None => Order::AsTheyAre,
        }
    }
}

/// The order of an epoch.
enum Order {
    AsTheyAre,
    Permuted(Permutation),
    Windows(Arc<Grouped>, Arc<window::Epoch>),
}

impl GlobalBatch {
    /// What `rank` takes: rows `rank * batch_per_rank ..`, fewer or none at the end of an epoch.
    pub fn of_rank(&self, options: &SamplerOptions) -> &[Slot] {
        let from = (options.rank * options.batch_per_rank).min(self.slots.len());
        let to = (from + options.batch_per_rank).min(self.slots.len());
        &self.slots[from..to]
    }
}
