//! An order for sources too large for the memory: blocks of rows that lie together are put in a random order and
//! joined into windows, and rows are shuffled within a window. So a pass reads each block about once.
//!
//! Invariants: the order of an epoch is a function of (seed, epoch), the rows and the blocks alone; every row once.
use ocelli_ir::rng::mix;

use super::memo::Memo;
use super::permutation::Permutation;
use crate::source::Blocks;
use crate::split::Rows;
use std::sync::Arc;

/// The rows to draw from, by the block that they lie in.
#[derive(Debug)]
pub(super) struct Grouped {
    /// All of them, ascending: four bytes each, so that ten million take 40 MB.
    rows: Vec<u32>,
    /// First place in `rows` of each block with rows, then their number.
    starts: Vec<usize>,
    /// Rows of a window, at least, if there are so many.
    least: usize,
    epochs: Memo<u64, Epoch>,
}

/// The order of one epoch.
#[derive(Debug)]
pub(super) struct Epoch {
    /// The blocks in their order.
    blocks: Vec<usize>,
    /// Where each of them begins in the epoch.
    places: Vec<usize>,
    /// Where each window begins, then the number of rows.
    windows: Vec<usize>,
    seed: u64,
    epoch: u64,
}

impl Grouped {
    /// Nothing if rows are numbered beyond 32 bits.
    pub(super) fn new(rows: &Rows, blocks: &Blocks, least: usize) -> Option<Self> {
        let mut all = rows.iter().map(u32::try_from).collect::<Result<Vec<u32>, _>>().ok()?;
        all.sort_unstable();
        let place = |start: &usize| all.partition_point(|row| (*row as usize) < *start);
        let mut starts: Vec<usize> = blocks.starts().iter().map(place).collect();
        starts.extend([0, all.len()]);
        starts.sort_unstable();
        starts.dedup();
        Some(Self { rows: all, starts, least: least.max(1), epochs: Memo::default() })
    }

    /// The order of an epoch.
    pub(super) fn epoch(&self, seed: u64, epoch: u64) -> Arc<Epoch> {
        self.epochs.get(epoch, || {
            let n = self.starts.len() - 1;
            let order = Permutation::new(n as u64, seed, "block order", epoch);
            let blocks: Vec<usize> = (0..n as u64).map(|i| order.at(i) as usize).collect();
            let (mut places, mut windows, mut end) = (Vec::with_capacity(n), vec![0], 0);
            for block in &blocks {
                if end - windows[windows.len() - 1] >= self.least && self.rows.len() - end >= self.least {
                    windows.push(end);
                }
                places.push(end);
                end += self.starts[block + 1] - self.starts[*block];
            }
            windows.push(end);
            Epoch { blocks, places, windows, seed, epoch }
        })
    }

    /// The row at a place of an epoch, which is below their number.
    pub(super) fn at(&self, epoch: &Epoch, place: usize) -> Option<usize> {
        let window = epoch.windows.partition_point(|start| *start <= place).checked_sub(1)?;
        let (start, end) = (*epoch.windows.get(window)?, *epoch.windows.get(window + 1)?);
        let seed = mix(epoch.seed.wrapping_add(window as u64));
        let order = Permutation::new((end - start) as u64, seed, "window order", epoch.epoch);
        let place = start + order.at((place - start) as u64) as usize;
        let i = epoch.places.partition_point(|start| *start <= place).checked_sub(1)?;
        let row = self.rows.get(self.starts[epoch.blocks[i]] + place - epoch.places[i])?;
        Some(*row as usize)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::split::split;

    proptest! {
        /// Every row of a split exactly once in each epoch, and a window has few blocks: reading goes through the file
        /// by and by.
        #[test]
        fn every_row_once_and_few_blocks_at_a_time(
            n in 2usize..2000, block in 1usize..50, least in 1usize..300, epoch in 0u64..3, seed: u64,
        ) {
            let blocks = Blocks::join((0..n).step_by(block).map(|row| (row, true)), n, 1);
            let rows = split(n, 0.8, seed).unwrap().train;
            let grouped = Grouped::new(&rows, &blocks, least).unwrap();
            let order = grouped.epoch(seed, epoch);
            let drawn: Vec<usize> = (0..rows.len()).map(|i| grouped.at(&order, i).unwrap()).collect();
            let sorted = |mut rows: Vec<usize>| { rows.sort_unstable(); rows };
            prop_assert_eq!(sorted(drawn.clone()), sorted(rows.iter().collect()));
            prop_assert!(grouped.at(&order, rows.len()).is_none());
            for window in order.windows.windows(2) {
                let (from, to) = (window[0], window[1]);
                let of: std::collections::BTreeSet<usize> = drawn[from..to].iter().map(|r| r / block).collect();
                let first = drawn[..from].iter().map(|r| r / block).collect();
                prop_assert!(of.is_disjoint(&first), "a block is in one window");
                prop_assert!(to - from >= least.min(rows.len()) && to - from < 2 * least + 2 * block);
            }
        }
    }

    #[test]
    fn epochs_and_seeds_have_orders_of_their_own() {
        let (rows, blocks) = (Rows::all(400), Blocks::join((0..400).map(|row| (row, false)), 400, 10));
        let grouped = Grouped::new(&rows, &blocks, 40).unwrap();
        let of = |seed, epoch| {
            let order = Grouped::new(&rows, &blocks, 40).unwrap().epoch(seed, epoch);
            (0..400).map(|i| grouped.at(&order, i).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(of(1, 0), of(1, 0));
        assert!(of(1, 0) != of(1, 1) && of(1, 0) != of(2, 0));
        assert!(of(1, 0)[..40].windows(2).filter(|w| w[1] == w[0] + 1).count() < 10);
    }
}
