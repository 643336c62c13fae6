//! Every row exactly once, for any batch, world and remainder; the world size changes nothing.
use proptest::prelude::*;

use super::*;

fn sampler(rows: usize, batch: usize, world: usize, rank: usize, endless: bool) -> Sampler {
    let options = SamplerOptions { seed: 1337, shuffle: true, endless, batch_per_rank: batch, rank, world };
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

/// Captions whose length is a function of the row.
struct Spread;

impl CaptionLengths for Spread {
    fn caption_length(&self, slot: &Slot) -> usize {
        20 + slot.row * 7919 % 61
    }
}

fn longest(slots: &[Slot]) -> usize {
    slots.iter().map(|slot| Spread.caption_length(slot)).max().unwrap()
}

proptest! {
    /// By length, and in windows of blocks: the same places of the stream, every row once, whoever asks for whatever
    /// batch first; the short batch stays last.
    #[test]
    fn exactly_once_by_length_and_in_windows(
        n in 1usize..900, batch in 1usize..9, w in 0usize..4, endless: bool, window in 0usize..80, seed: u64,
    ) {
        let world = [1, 2, 4, 8][w];
        let make = || {
            let options = SamplerOptions {
                seed, shuffle: true, endless, batch_per_rank: batch, rank: world - 1, world,
            };
            let sampler = Sampler::new(Rows::all(n), options).unwrap().with_buckets(Arc::new(Spread));
            let blocks = Blocks::join((0..n).map(|row| (row, false)), n, 7);
            if window == 0 { sampler } else { sampler.with_shuffle_window(&blocks, window) }
        };
        let (one, size) = (make(), batch * world);
        // Two epochs, or in an endless run as many whole windows.
        let windows = (2 * n).div_ceil(size * BUCKET_WINDOW as usize) as u64;
        let batches = one.batches_per_epoch().map_or(windows * BUCKET_WINDOW, |b| 2 * b);
        let (mut position, mut places, mut rows) = (Position::default(), Vec::new(), vec![0u32; n]);
        let mut all = Vec::new();
        for _ in 0..batches {
            let global = one.batch(position);
            prop_assert!(global.slots.len() == size || global.next.epoch > global.position.epoch);
            places.extend(global.slots.iter().map(|slot| slot.sample_index as usize));
            global.slots.iter().for_each(|slot| rows[slot.row] += 1);
            position = global.next;
            all.push(global);
        }
        for global in all.iter().rev().step_by(5) {
            prop_assert_eq!(&make().batch(global.position), global);
        }
        places.sort_unstable();
        prop_assert!(places.iter().enumerate().all(|(i, place)| i == *place), "every place once");
        if !endless {
            prop_assert!(rows.iter().all(|drawn| *drawn == 2));
        }
    }
}

#[test]
fn by_length_less_is_padded_and_the_sum_without_is_told() {
    let plain = sampler(5000, 16, 2, 0, false);
    let sorted = plain.clone().with_buckets(Arc::new(Spread));
    let (mut with, mut without, mut told) = (0, 0, 0);
    for batch in 0..plain.batches_per_epoch().unwrap() {
        let at = Position { epoch: 1, batch };
        let (s, p) = (sorted.batch(at), plain.batch(at));
        with += longest(&s.slots);
        without += longest(&p.slots);
        told += s.unsorted_longest.unwrap_or(longest(&s.slots));
    }
    assert_eq!(told, without);
    assert!((with as f64) < 0.75 * without as f64, "{with} of {without}");
    let first: Vec<usize> =
        (0..32).map(|batch| longest(&sorted.batch(Position { epoch: 0, batch }).slots)).collect();
    assert!(!first.is_sorted(), "batches of a window are shuffled: {first:?}");
}
