//! What reading asks of the allocator once it has been over a set: no large memory. In a process of its own, for it counts.
//!
//! Left are small ones. Of some 200 for a row, 192 are the scaler's (weights for each row and column of the square); the others are a
//! caption and its ids, what a file's header says, a batch's list of rows. The largest are of 2 to 5 kB.

use std::alloc::System;
use std::path::Path;
use std::sync::Arc;

use ocelli_data::batch::{Dataset, Lengths, LossMode, Padding};
use ocelli_data::image::{DecodeOptions, decode};
use ocelli_data::loader::{Loader, LoaderOptions};
use ocelli_data::sampler::{Position, Sampler};
use ocelli_data::scan::ContentStats;
use ocelli_data::source::parquet::{Parquet, ParquetOptions};
use ocelli_data::source::{Source, SplitNames};
use ocelli_data::split::Rows;
use ocelli_data::tokenizer::{CharTokenizer, UnknownPolicy};
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const ROWS: usize = 64;
const BATCH: usize = 8;

fn photo(i: usize) -> Vec<u8> {
    let name = ["420.jpg", "422.jpg", "444.jpg", "grey.jpg", "progressive.jpg"][i % 5];
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/photo").join(name)).unwrap()
}

fn write(path: &Path, compression: Compression) {
    let schema = "message m { required binary image; required binary caption (UTF8); }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder().set_compression(compression).set_dictionary_enabled(false);
    let file = std::fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, properties.build().into()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let pictures = (0..ROWS).map(|i| photo(i).into());
    let captions = (0..ROWS).map(|i| format!("picture {i}").into_bytes().into());
    for values in [pictures.collect::<Vec<ByteArray>>(), captions.collect()] {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

fn dataset(path: &Path) -> Arc<Dataset> {
    let set = Parquet::open(path, &SplitNames::default(), &ParquetOptions::default()).unwrap().train;
    let stats = ContentStats::scan(&set);
    let letters = (0..set.len()).flat_map(|row| set.caption(row).unwrap().chars().collect::<Vec<_>>());
    let tokenizer = CharTokenizer::learn(letters, true, UnknownPolicy::Error).unwrap();
    let lengths = Lengths::plan(Padding::Longest, None, &stats).unwrap();
    Dataset::new(Arc::new(set), Arc::new(tokenizer), 96, LossMode::Masked, lengths).unwrap().into()
}

/// Allocations and their bytes for each row of an epoch, the ones before it done.
fn steady(dataset: &Arc<Dataset>, workers: usize) -> (f64, f64) {
    let sampler = Sampler::in_order(Rows::all(ROWS), BATCH).unwrap();
    let options = LoaderOptions { workers, ahead: 4, until_epoch: Some(12), window: 1 };
    let mut loader = Loader::start(dataset.clone(), sampler, Position::default(), options).unwrap();
    let mut epochs = |n: usize| {
        for _ in 0..n {
            while let Some(loaded) = loader.next_batch() {
                let batch = loaded.unwrap().batch;
                assert_eq!(batch.real_rows, BATCH);
                loader.recycle(batch);
            }
        }
    };
    epochs(6);
    let region = Region::new(MEMORY);
    epochs(5);
    let change = region.change();
    let rows = (5 * ROWS) as f64;
    let count = change.allocations + change.reallocations;
    (count as f64 / rows, change.bytes_allocated as f64 / rows)
}

/// One test: another one at the same time would be counted too. The pixels alone take up to 230,400 bytes, and half as much again on the way.
#[test]
fn a_steady_epoch_asks_for_no_large_memory() {
    what_memory_held_before_does_not_show();
    let dir = tempfile::tempdir().unwrap();
    for (name, compression) in [("plain", Compression::UNCOMPRESSED), ("packed", Compression::SNAPPY)] {
        let path = dir.path().join(format!("{name}.parquet"));
        write(&path, compression);
        let dataset = dataset(&path);
        for workers in [0, 2] {
            let (count, bytes) = steady(&dataset, workers);
            println!(
                "{name}, {workers} workers: {count:.1} allocations of {bytes:.0} bytes in all for a row"
            );
            assert!(bytes < 32_000.0 && count < 260.0, "{name}, {workers} workers: {count} of {bytes} bytes");
        }
    }
}

/// Memory that was used before changes no pixel.
fn what_memory_held_before_does_not_show() {
    let all: Vec<_> = (0..5).map(photo).collect();
    let pixels = |bytes: &[u8]| decode(bytes, &DecodeOptions::default()).unwrap().pixels;
    let fresh = |i: usize| std::thread::scope(|s| s.spawn(|| pixels(&all[i])).join().unwrap());
    let wanted: Vec<_> = (0..5).map(fresh).collect();
    for i in [3, 0, 4, 1, 2, 1, 0, 3, 4, 2, 2, 1] {
        assert!(pixels(&all[i]) == wanted[i], "picture {i}");
    }
}
