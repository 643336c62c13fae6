//! Trouble never hangs, kills or reorders: panics, drops in the middle, wrong requests.
mod loader_common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use loader_common::{Memory, Setup, all, dataset, options, sampler};
use ocelli_data::batch::{Dataset, DatasetError, LossMode, reading_a_sample};
use ocelli_data::loader::{Loader, LoaderError};
use ocelli_data::sampler::Position;
use ocelli_data::tokenizer::{CharTokenizer, UnknownPolicy};

#[test]
fn a_source_that_always_panics_skips_everything() {
    let mut source = Memory { chars_panic: true, ..Memory::numbered(20) };
    source.panics.extend(0..20);
    let d = dataset(Arc::new(source), Setup::default());
    for workers in [0, 1, 4] {
        let batches = all(&d, &sampler(20, 8, 0, 1, false), Position::default(), workers, 1);
        assert_eq!(batches.iter().map(|l| l.batch.skipped.len()).sum::<usize>(), 20);
        let reasons = batches.iter().flat_map(|l| &l.batch.skipped).map(|s| s.why.reason);
        assert!(reasons.into_iter().all(|r| r == "decoder_panic"));
        assert!(batches.iter().all(|l| l.batch.tokens_weight == 0.0 && l.batch.real_rows == 0));
    }
    assert!(!reading_a_sample());
}

#[test]
fn dropped_in_the_middle() {
    for workers in [1, 3] {
        let slow = |_| Duration::from_millis(20);
        let source = Arc::new(Memory { delay: Some(slow), ..Memory::numbered(1000) });
        let d = dataset(source.clone(), Setup::default());
        let mut loader =
            Loader::start(d, sampler(1000, 4, 0, 1, true), Position::default(), options(workers, None))
                .unwrap();
        loader.next_batch().unwrap().unwrap();
        let start = Instant::now();
        drop(loader);
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
        // Every thread is gone: nobody else holds the source.
        assert_eq!(Arc::strong_count(&source), 1);
    }
}

#[test]
fn dropped_at_once_and_at_every_stage() {
    let d = dataset(Arc::new(Memory::numbered(9)), Setup::default());
    for taken in 0..6 {
        let s = sampler(9, 2, 0, 1, false);
        let mut loader = Loader::start(d.clone(), s, Position::default(), options(2, Some(1))).unwrap();
        (0..taken).for_each(|_| drop(loader.next_batch()));
    }
}

#[test]
fn none_once_at_each_border() {
    let d = dataset(Arc::new(Memory::numbered(5)), Setup::default());
    for workers in [0, 2] {
        let s = sampler(5, 2, 0, 1, false);
        let mut loader = Loader::start(d.clone(), s, Position::default(), options(workers, Some(2))).unwrap();
        let epochs: Vec<_> =
            (0..10).map(|_| loader.next_batch().map(|l| l.unwrap().position.epoch)).collect();
        let (a, b) = (Some(0), Some(1));
        assert_eq!(epochs, [a, a, a, None, b, b, b, None, None, None]);
    }
}

#[test]
fn rows_that_the_source_lacks() {
    let d = dataset(Arc::new(Memory::numbered(5)), Setup::default());
    let start = Loader::start(d, sampler(6, 2, 0, 1, false), Position::default(), options(0, None));
    assert_eq!(start.err(), Some(LoaderError::Rows { row: 5, rows: 5 }));
}

#[test]
fn a_batch_that_no_memory_holds_is_an_error_that_stays() {
    let d = dataset(Arc::new(Memory::numbered(5)), Setup::default());
    let tokenizer = CharTokenizer::learn("a".chars(), true, UnknownPolicy::Error).unwrap();
    let source = Arc::new(Memory::numbered(5));
    let huge = Dataset::new(source, Arc::new(tokenizer), 1 << 31, LossMode::Masked, d.lengths().clone());
    let huge = Arc::new(huge.unwrap());
    for workers in [0, 2] {
        let s = sampler(5, 2, 0, 1, false);
        let mut loader = Loader::start(huge.clone(), s, Position::default(), options(workers, None)).unwrap();
        for _ in 0..3 {
            assert!(matches!(loader.next_batch(), Some(Err(LoaderError::Memory(_)))));
        }
    }
}

#[test]
fn impossible_data_sets() {
    let tokenizer = CharTokenizer::learn("a".chars(), false, UnknownPolicy::Error).unwrap();
    let d = dataset(Arc::new(Memory::numbered(5)), Setup::default());
    let new = |size, mode| {
        let source = Arc::new(Memory::numbered(5));
        Dataset::new(source, Arc::new(tokenizer.clone()), size, mode, d.lengths().clone()).err()
    };
    assert_eq!(new(4, LossMode::Masked), Some(DatasetError::NoEndOfText));
    assert_eq!(new(0, LossMode::Published), Some(DatasetError::NoPixels));
    assert_eq!(new(4, LossMode::Published), None);
}
