//! The loader's batches are a function of data, seed and position: not of workers, ranks or luck.
mod loader_common;

use std::sync::Arc;
use std::time::Duration;

use loader_common::{Memory, Setup, all, dataset, options, pixels, sampler};
use ocelli_data::batch::Batch;
use ocelli_data::loader::{Loader, LoaderOptions};
use ocelli_data::sampler::Position;
use proptest::prelude::*;

/// Row numbers of the usable rows, read off the pixels.
fn rows_in(batch: &Batch, n: usize) -> Vec<usize> {
    let image = batch.images.len() / batch.rows;
    let weights = batch.weights.chunks_exact(batch.text_len + 1);
    let real = batch.images.chunks_exact(image).zip(weights).filter(|(_, w)| w.iter().any(|&w| w > 0.0));
    real.map(|(image, _)| (0..n).find(|&row| pixels(row) == image).expect("a known picture")).collect()
}

fn uneven(row: usize) -> Duration {
    Duration::from_micros([0, 900, 50, 0, 300][row % 5])
}

#[test]
fn any_number_of_workers_gives_equal_batches() {
    let mut source = Memory { delay: Some(uneven), ..Memory::numbered(45) };
    source.bad.extend([3, 20, 21]);
    source.panics.extend([7]);
    let d = dataset(Arc::new(source), Setup::default());
    let s = sampler(45, 8, 0, 1, false);
    let alone = all(&d, &s, Position::default(), 0, 3);
    assert_eq!(alone.len(), 18);
    for workers in [1, 2, 8] {
        assert_eq!(all(&d, &s, Position::default(), workers, 3), alone, "{workers} workers");
    }
}

#[test]
fn resume_from_any_position() {
    let d = dataset(Arc::new(Memory::numbered(21)), Setup::default());
    let s = sampler(21, 4, 0, 1, false);
    let whole = all(&d, &s, Position::default(), 2, 3);
    for (i, loaded) in whole.iter().enumerate() {
        if i > 0 {
            assert_eq!(loaded.position, whole[i - 1].next);
        }
        assert_eq!(all(&d, &s, loaded.position, i % 3, 3), whole[i..], "from {:?}", loaded.position);
    }
    // The end of an epoch, not yet written as the beginning of the next.
    assert_eq!(all(&d, &s, Position { epoch: 0, batch: 6 }, 1, 3), whole[6..]);
}

/// Text lengths of all batches of two epochs, `window` of them a step, from a position on.
fn lengths(window: usize, from: Position, workers: usize) -> Vec<usize> {
    let d = dataset(Arc::new(Memory::numbered(50)), Setup { max: Some(30), ..Setup::default() });
    let options = LoaderOptions { window, ..options(workers, Some(2)) };
    let mut loader = Loader::start(d, sampler(50, 2, 0, 1, false), from, options).unwrap();
    let epochs = from.epoch..2;
    let mut all = vec![];
    for _ in epochs {
        all.extend(std::iter::from_fn(|| loader.next_batch()).map(|l| l.unwrap().batch.text_len));
    }
    all
}

#[test]
fn the_batches_of_a_step_have_one_length() {
    let alone = lengths(1, Position::default(), 0);
    assert_eq!(alone.len(), 50);
    assert!(alone.iter().any(|n| *n != alone[0]), "{alone:?}");
    // Steps of 4 batches; the last of an epoch has one.
    let longest = |part: &[usize]| vec![*part.iter().max().unwrap(); part.len()];
    let steps = |batches: &[usize]| batches.chunks(4).flat_map(longest).collect::<Vec<_>>();
    let together = [steps(&alone[..25]), steps(&alone[25..])].concat();
    for workers in [0, 3] {
        assert_eq!(lengths(4, Position::default(), workers), together, "{workers} workers");
        // Steps are counted from where a run goes on.
        assert_eq!(lengths(4, Position { epoch: 0, batch: 8 }, workers), together[8..]);
        let later = [steps(&alone[6..25]), steps(&alone[25..])].concat();
        assert_eq!(lengths(4, Position { epoch: 0, batch: 6 }, workers), later);
    }
}

#[test]
fn endless_batches_are_full_and_can_be_resumed() {
    let d = dataset(Arc::new(Memory::numbered(10)), Setup::default());
    let s = sampler(10, 4, 0, 1, true);
    let take = |from, n: usize, workers| {
        let mut loader = Loader::start(d.clone(), s.clone(), from, options(workers, None)).unwrap();
        (0..n).map(|_| loader.next_batch().unwrap().unwrap()).collect::<Vec<_>>()
    };
    let whole = take(Position::default(), 10, 2);
    let rows: Vec<usize> = whole.iter().flat_map(|l| rows_in(&l.batch, 10)).collect();
    for epoch in rows.chunks(10) {
        let mut sorted = epoch.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..10).collect::<Vec<_>>());
    }
    assert_eq!(whole[7].batch.sample_index, [28, 29, 30, 31]);
    assert_eq!(take(whole[6].next, 3, 0), whole[7..]);
}

#[test]
fn buffers_come_back() {
    let d = dataset(Arc::new(Memory::numbered(64)), Setup::default());
    let mut loader =
        Loader::start(d, sampler(64, 8, 0, 1, true), Position::default(), options(2, None)).unwrap();
    let mut addresses = std::collections::BTreeSet::new();
    for _ in 0..200 {
        let batch = loader.next_batch().unwrap().unwrap().batch;
        addresses.insert(batch.images.as_ptr() as usize);
        loader.recycle(batch);
    }
    // Three ahead and the one in use.
    assert!(addresses.len() <= 4, "{} image buffers", addresses.len());
}

/// Pictures that a device still reads are never written: later batches get other memory, and no more of it than is read.
#[test]
fn pictures_that_are_still_read_are_left_alone() {
    let d = dataset(Arc::new(Memory::numbered(64)), Setup::default());
    for workers in [0, 2] {
        let (d, s) = (d.clone(), sampler(64, 8, 0, 1, true));
        let mut loader = Loader::start(d, s, Position::default(), options(workers, None)).unwrap();
        let mut addresses = std::collections::BTreeSet::new();
        let mut read = std::collections::VecDeque::new();
        for _ in 0..200 {
            let batch = loader.next_batch().unwrap().unwrap().batch;
            addresses.insert(batch.images.as_ptr() as usize);
            read.push_back((batch.images.clone(), batch.images.to_vec()));
            loader.recycle(batch);
            if read.len() > 3 {
                let (images, before) = read.pop_front().unwrap();
                assert_eq!(*images, *before);
            }
        }
        // Three ahead, three that are read, the one in use, and one that was let go since.
        assert!(addresses.len() <= 8, "{} image buffers", addresses.len());
    }
}

/// What a buffer held before does not show, not even in rows that are bad or absent.
#[test]
fn used_buffers_leave_no_trace() {
    let mut source = Memory::numbered(21);
    source.bad.extend([2, 11, 12]);
    let d = dataset(Arc::new(source), Setup::default());
    let s = sampler(21, 4, 0, 1, false);
    let clean = all(&d, &s, Position::default(), 0, 4);
    for workers in [0, 2] {
        let mut loader =
            Loader::start(d.clone(), s.clone(), Position::default(), options(workers, Some(4))).unwrap();
        for wanted in &clean {
            let loaded = loader.next_batch().or_else(|| loader.next_batch()).unwrap().unwrap();
            assert_eq!(&loaded, wanted);
            let mut batch = loaded.batch;
            batch.images.get_mut().unwrap().fill(0xab);
            batch.tokens.fill(9);
            batch.targets.fill(9);
            batch.weights.fill(f32::NAN);
            batch.sample_index.fill(9);
            loader.recycle(batch);
        }
    }
}

#[test]
fn look_ahead_is_bounded() {
    let source = Arc::new(Memory::numbered(1000));
    let d = dataset(source.clone(), Setup::default());
    let mut loader =
        Loader::start(d, sampler(1000, 10, 0, 1, false), Position::default(), options(2, None)).unwrap();
    let reads = || source.reads.load(std::sync::atomic::Ordering::Relaxed);
    let settle = |n| {
        let start = std::time::Instant::now();
        while reads() < n && start.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(reads(), n);
    };
    settle(30);
    loader.next_batch().unwrap().unwrap();
    settle(40);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Every usable row exactly once an epoch over all ranks; ranks agree on the shape of every batch; dropout
    /// keys do not depend on the number of ranks.
    #[test]
    fn exactly_once_over_ranks(
        n in 1usize..60, batch in 1usize..9, w in 0usize..4, workers in 0usize..3,
        bad in prop::collection::btree_set(0usize..60, 0..6),
    ) {
        let world = [1, 2, 4, 8][w];
        let bad: std::collections::BTreeSet<usize> = bad.into_iter().filter(|&b| b < n).collect();
        let source = Memory { bad: bad.clone(), ..Memory::numbered(n) };
        let d = dataset(Arc::new(source), Setup::default());
        let ranks: Vec<_> = (0..world)
            .map(|rank| all(&d, &sampler(n, batch, rank, world, false), Position::default(), workers, 2))
            .collect();
        let steps = ranks[0].len();
        prop_assert_eq!(steps, 2 * n.div_ceil(batch * world));
        let (mut seen, mut skipped) = (vec![0; n], vec![0; n]);
        for step in 0..steps {
            let mut index = Vec::new();
            for rank in &ranks {
                let (loaded, first) = (&rank[step], &ranks[0][step]);
                prop_assert_eq!((loaded.position, loaded.next), (first.position, first.next));
                prop_assert_eq!((loaded.batch.rows, loaded.batch.text_len), (batch, first.batch.text_len));
                rows_in(&loaded.batch, n).into_iter().for_each(|row| seen[row] += 1);
                loaded.batch.skipped.iter().for_each(|s| skipped[s.row] += 1);
                index.extend_from_slice(&loaded.batch.sample_index);
            }
            prop_assert!(index.windows(2).all(|w| w[1] == w[0] + 1), "{:?}", index);
        }
        for row in 0..n {
            let wanted = if bad.contains(&row) { (0, 2) } else { (2, 0) };
            prop_assert_eq!((seen[row], skipped[row]), wanted, "row {}", row);
        }
    }
}
