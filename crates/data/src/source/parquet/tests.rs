//! Files in which many rows share one compressed picture.

use std::time::{Duration, Instant};

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::*;

/// Rows of a row group.
const ROWS: usize = 5_000;

/// Bytes that do not shrink.
fn noise(bytes: usize) -> Vec<u8> {
    let next = |state: &mut u64| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        Some((*state >> 56) as u8)
    };
    std::iter::repeat_n((), bytes).scan(7_u64, |state, ()| next(state)).collect()
}

/// A file of two row groups in which all rows have `picture`.
fn write(path: &Path, picture: &[u8], properties: WriterProperties) {
    let schema = parse_message_type("message m { required binary image; required binary caption (UTF8); }");
    let file = std::fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema.unwrap().into(), properties.into()).unwrap();
    for _ in 0..2 {
        let mut group = writer.next_row_group().unwrap();
        for value in [picture, b"a caption"] {
            let mut column = group.next_column().unwrap().unwrap();
            let values = vec![ByteArray::from(value.to_vec()); ROWS];
            column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
}

fn packed() -> parquet::file::properties::WriterPropertiesBuilder {
    let builder = WriterProperties::builder().set_compression(Compression::ZSTD(Default::default()));
    builder.set_statistics_enabled(EnabledStatistics::None)
}

/// Reads all rows; says how many bytes were spooled and in how many units the file lies.
fn read_all(path: &Path, picture: &[u8]) -> (u64, usize) {
    let set = Parquet::open(path, &SplitNames::default(), &ParquetOptions::default()).unwrap().train;
    for row in 0..set.len() {
        let Picture::Bytes(found) = set.picture(row).unwrap() else { panic!("no bytes in row {row}") };
        assert!(*found == *picture, "row {row}");
    }
    let mut units: Vec<usize> =
        (0..set.len()).map(|row| set.units.find(row).map_or(0, |(u, _)| u.first_in_shard)).collect();
    units.dedup();
    (set.spool.bytes(), units.len())
}

#[test]
fn a_picture_that_many_rows_share_is_unpacked_and_kept_once() {
    let (dir, picture) = (tempfile::tempdir().unwrap(), noise(100_000));
    let path = dir.path().join("a.parquet");
    write(&path, &picture, packed().build());
    assert!(std::fs::metadata(&path).unwrap().len() < 300_000);
    let start = Instant::now();
    assert_eq!(read_all(&path, &picture), (100_000, 2));
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

/// Small pages that share a dictionary are one unit, for it is unpacked for each.
#[test]
fn pages_with_an_index_do_not_unpack_the_dictionary_each() {
    let (dir, picture) = (tempfile::tempdir().unwrap(), noise(100_000));
    let path = dir.path().join("a.parquet");
    let pages = packed().set_data_page_row_count_limit(10).set_write_batch_size(10);
    write(&path, &picture, pages.build());
    assert_eq!(read_all(&path, &picture), (100_000, 2));
}

/// Without a dictionary, what is the same is still kept once.
#[test]
fn repeated_pictures_are_kept_once() {
    let (dir, picture) = (tempfile::tempdir().unwrap(), noise(1_000));
    let path = dir.path().join("a.parquet");
    write(
        &path,
        &picture,
        packed().set_dictionary_enabled(false).set_data_page_row_count_limit(1_000).build(),
    );
    let (spooled, units) = read_all(&path, &picture);
    assert_eq!(spooled, 1_000);
    assert!(units > 2, "{units}");
}

/// Rows that repeat others take next to nothing: a file may well have more rows than bytes.
#[test]
fn more_rows_than_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    let schema = parse_message_type("message m { required binary image; required binary caption (UTF8); }");
    let file = std::fs::File::create(&path).unwrap();
    let mut writer =
        SerializedFileWriter::new(file, schema.unwrap().into(), packed().build().into()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for values in [["one", "two"], ["a caption", "another"]] {
        let mut column = group.next_column().unwrap().unwrap();
        let values: Vec<ByteArray> = (0..30_000).map(|i| values[i / 500 % 2].into()).collect();
        column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
    let bytes = std::fs::metadata(&path).unwrap().len();
    assert!(bytes < 30_000, "{bytes}");
    let set = Parquet::open(&path, &SplitNames::default(), &ParquetOptions::default()).unwrap().train;
    assert_eq!((set.len(), set.caption(29_999).unwrap().as_str()), (30_000, "another"));
    let Picture::Bytes(found) = set.picture(29_400).unwrap() else { panic!("no bytes") };
    assert_eq!(*found, *b"one");
}

/// Pages with checksums: a wrong one is found, and costs the rows of its page alone.
#[test]
fn checksums_of_pages_are_looked_at() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/parquet/checksums.parquet");
    let mut bytes = std::fs::read(path).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("t.parquet");
    let open = || Parquet::open(&copy, &SplitNames::default(), &ParquetOptions::default()).unwrap().train;
    std::fs::write(&copy, &bytes).unwrap();
    let set = open();
    let Picture::Bytes(third) = set.picture(2).unwrap() else { panic!("no bytes") };
    // It stands in statistics as well.
    for at in 0..bytes.len() - third.len() {
        if bytes[at..].starts_with(&third) {
            bytes[at + third.len() / 2] ^= 4;
        }
    }
    std::fs::write(&copy, &bytes).unwrap();
    let set = open();
    let found: Vec<_> = (0..set.len()).map(|row| set.picture(row).err().map(|e| e.reason)).collect();
    assert_eq!(found, [None, None, Some("corrupt"), None, None, None]);
}
