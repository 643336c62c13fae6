//! Which rows make up which batch. A pure function of (seed, [`Position`]): it knows nothing of decoding,
//! threads or what was drawn before, and only the size of the *global* batch matters, not how many ranks
//! share it.
//!
//! All rows drawn by a run form one stream: the permutation of epoch 0, then that of epoch 1, and so on. A
//! batch is a window of the stream. In a finite run the windows begin anew at each epoch, so the last one of
//! an epoch may be short; in an endless run they cross the borders and are always full.
mod permutation;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::split::Rows;
pub(crate) use permutation::Permutation;

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
    /// Row number of the source.
    pub row: usize,
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
    /// The place in the stream of the first one.
    pub start: u64,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampler {
    rows: Arc<Rows>,
    options: SamplerOptions,
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
        // 32 bits: then no product with a count of batches below 2^32 overflows.
        if batch_per_rank.checked_mul(world).is_none_or(|n| u32::try_from(n).is_err()) {
            return Err(SamplerError::TooLarge { batch_per_rank, world });
        }
        Ok(Self { rows: Arc::new(rows), options })
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
        GlobalBatch { position, next, slots: self.stream(start, count), start }
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
                let i = order.as_ref().map_or(place % rows, |order| order.at(place % rows));
                Some(Slot { row: self.rows.get(i as usize)?, sample_index: place as u32 })
            })
            .collect()
    }

    fn order(&self, epoch: u64) -> Option<Permutation> {
        let SamplerOptions { seed, shuffle, .. } = self.options;
        shuffle.then(|| Permutation::new(self.rows.len() as u64, seed, "data order", epoch))
    }
}

impl GlobalBatch {
    /// What `rank` takes: rows `rank * batch_per_rank ..`, fewer or none at the end of an epoch.
    pub fn of_rank(&self, options: &SamplerOptions) -> &[Slot] {
        let from = (options.rank * options.batch_per_rank).min(self.slots.len());
        let to = (from + options.batch_per_rank).min(self.slots.len());
        &self.slots[from..to]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sampler(rows: usize, batch: usize, world: usize, rank: usize, endless: bool) -> Sampler {
        let options =
            SamplerOptions { seed: 1337, shuffle: true, endless, batch_per_rank: batch, rank, world };
        Sampler::new(Rows::all(rows), options).unwrap()
    }

    fn rows(batch: &GlobalBatch) -> Vec<usize> {
        batch.slots.iter().map(|s| s.row).collect()
    }

    proptest! {
        /// Every row exactly once an epoch, over all ranks, for any remainder; every sample index once.
        #[test]
        fn exactly_once(n in 1usize..200, batch in 1usize..20, w in 0usize..4, epochs in 1u64..4) {
            let world = [1, 2, 4, 8][w];
            let one = sampler(n, batch, world, 0, false);
            let (mut position, mut index) = (Position::default(), 0u32);
            for epoch in 0..epochs {
                let mut seen = vec![0; n];
                for b in 0..one.batches_per_epoch().unwrap() {
                    let global = one.batch(position);
                    prop_assert_eq!(global.position, Position { epoch, batch: b });
                    let mut joined = Vec::new();
                    for rank in 0..world {
                        let mine = sampler(n, batch, world, rank, false).batch(position);
                        prop_assert_eq!(&mine, &global);
                        let slice = mine.of_rank(sampler(n, batch, world, rank, false).options());
                        prop_assert!(slice.len() <= batch);
                        joined.extend_from_slice(slice);
                    }
                    prop_assert_eq!(&joined, &global.slots);
                    for slot in joined {
                        seen[slot.row] += 1;
                        prop_assert_eq!(slot.sample_index, index);
                        index += 1;
                    }
                    position = global.next;
                }
                prop_assert!(seen.iter().all(|&c| c == 1), "epoch {}: {:?}", epoch, seen);
                prop_assert_eq!(position, Position { epoch: epoch + 1, batch: 0 });
            }
        }

        /// One rank with 8 rows, two with 4, four with 2, eight with 1: the same stream.
        #[test]
        fn the_world_size_does_not_matter(n in 1usize..100, epoch in 0u64..5, b in 0u64..20, endless: bool) {
            let at = |batch, world| sampler(n, batch, world, 0, endless).batch(Position { epoch, batch: b });
            for world in [2, 4, 8] {
                prop_assert_eq!(at(8, 1), at(8 / world, world));
            }
        }

        /// Endless batches are full, and any run of `n` places that starts at a border holds each row once.
        #[test]
        fn endless_crosses_borders(n in 1usize..50, batch in 1usize..20, seed: u64) {
            let options = SamplerOptions { seed, ..sampler(n, batch, 1, 0, true).options().clone() };
            let s = Sampler::new(Rows::all(n), options).unwrap();
            prop_assert_eq!(s.batches_per_epoch(), None);
            let (mut position, mut stream) = (Position::default(), Vec::new());
            while stream.len() < 4 * n {
                let b = s.batch(position);
                prop_assert_eq!(b.slots.len(), batch);
                prop_assert_eq!(b.next, Position { epoch: 0, batch: position.batch + 1 });
                stream.extend(rows(&b));
                position = b.next;
            }
            for permutation in stream.chunks_exact(n) {
                let mut sorted = permutation.to_vec();
                sorted.sort_unstable();
                prop_assert_eq!(sorted, (0..n).collect::<Vec<_>>());
            }
        }

        #[test]
        fn no_position_panics(n in 1usize..40, batch in 1usize..9, epoch: u64, b: u64, endless: bool) {
            let got = sampler(n, batch, 2, 1, endless).batch(Position { epoch, batch: b });
            prop_assert!(!got.slots.is_empty() && got.slots.iter().all(|s| s.row < n));
        }
    }

    #[test]
    fn the_end_of_an_epoch_is_the_start_of_the_next() {
        let s = sampler(10, 4, 1, 0, false);
        assert_eq!(s.batch(Position { epoch: 2, batch: 3 }), s.batch(Position { epoch: 3, batch: 0 }));
        assert_eq!(s.batch(Position { epoch: 2, batch: 2 }).slots.len(), 2);
    }

    #[test]
    fn epochs_and_seeds_differ() {
        let s = sampler(100, 100, 1, 0, false);
        let (a, b) = (rows(&s.batch(Position::default())), rows(&s.batch(Position { epoch: 1, batch: 0 })));
        assert_ne!(a, b);
        let other = SamplerOptions { seed: 1, ..s.options().clone() };
        assert_ne!(a, rows(&Sampler::new(Rows::all(100), other).unwrap().batch(Position::default())));
    }

    #[test]
    fn in_order_is_in_order() {
        let s = Sampler::in_order(Rows::all(5), 2).unwrap();
        let all: Vec<_> = (0..3).flat_map(|batch| rows(&s.batch(Position { epoch: 0, batch }))).collect();
        assert_eq!(all, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn huge_sets_cost_nothing() {
        let s = sampler(u32::MAX as usize, 64, 8, 3, true);
        let b = s.batch(Position { epoch: 0, batch: 1 << 40 });
        assert_eq!(b.slots.len(), 512);
    }

    #[test]
    fn refusals() {
        let new = |rows, batch_per_rank, rank, world| {
            let o = SamplerOptions { seed: 0, shuffle: true, endless: false, batch_per_rank, rank, world };
            Sampler::new(Rows::all(rows), o).unwrap_err()
        };
        assert_eq!(new(0, 1, 0, 1), SamplerError::NoRows);
        assert_eq!(new(1, 0, 0, 1), SamplerError::NoBatch);
        assert_eq!(new(1, 1, 2, 2), SamplerError::Rank { rank: 2, world: 2 });
        assert_eq!(new(1, 1, 0, 0), SamplerError::Rank { rank: 0, world: 0 });
        assert!(matches!(new(1, usize::MAX, 0, 2), SamplerError::TooLarge { .. }));
    }
}
