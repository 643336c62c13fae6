//! Parquet sets: the layouts of `tests/parquet` (made by `make_parquet_fixtures.py`), and the ways such a set
//! can be wrong.

use std::path::{Path, PathBuf};

use ocelli_data::source::parquet::{Parquet, ParquetOptions, ParquetSplits};
use ocelli_data::source::{Source, SplitNames};
use tempfile::TempDir;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parquet").join(name)
}

fn splits(path: &Path) -> Result<ParquetSplits, String> {
    Parquet::open(path, &SplitNames::default(), &ParquetOptions::default()).map_err(|e| e.to_string())
}

fn opened(path: &Path) -> Parquet {
    splits(path).unwrap_or_else(|e| panic!("{e}")).train
}

fn refused(path: &Path) -> String {
    splits(path).expect_err("this set must be refused")
}

/// Grey level and caption of each row, or the reason for a skip.
fn rows(source: &dyn Source) -> Vec<String> {
    let row = |row| match source.pictured(row, 4) {
        Ok(sample) => format!("{} {}", sample.pixels[0], sample.caption),
        Err(bad) => bad.reason.to_owned(),
    };
    (0..source.len()).map(row).collect()
}

fn expected(ids: impl IntoIterator<Item = usize>) -> Vec<String> {
    ids.into_iter().map(|i| format!("{} picture {i}", 10 * i)).collect()
}

/// Names of the files in a folder of fixtures.
fn names(folder: &str) -> Vec<String> {
    let entries =
        std::fs::read_dir(fixture(folder)).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    entries.filter(|n| n.ends_with(".parquet")).collect()
}

#[test]
fn every_codec_and_encoding_is_read_in_any_order() {
    assert_eq!(names("codec").len(), 12);
    for name in names("codec") {
        let set = opened(&fixture("codec").join(&name));
        // Backwards first: nothing depends on the order of reading.
        let backwards: Vec<_> = (0..10).rev().map(|row| set.pictured(row, 4).unwrap().pixels[0]).collect();
        assert_eq!(backwards, (0..10).rev().map(|i| 10 * i).collect::<Vec<u8>>(), "{name}");
        assert_eq!(rows(&set), expected(0..10), "{name}");
        assert_eq!(set.caption_chars(3), 9);
        assert_eq!(set.pictured(0, 4).unwrap().original, (8, 8));
        assert!(set.pictured(10, 4).is_err() && set.caption(10).is_err());
    }
}

#[test]
fn every_way_to_hold_a_picture_is_read() {
    for name in ["binary", "large_binary", "base64"] {
        assert_eq!(rows(&opened(&fixture(&format!("image/{name}.parquet")))), expected(0..10), "{name}");
    }
    let mut wanted = expected(0..10);
    wanted[4] = "missing_file".into();
    let named = opened(&fixture("image/path.parquet"));
    assert_eq!(rows(&named), wanted);
    let missing = named.pictured(4, 4).unwrap_err();
    assert!(missing.detail.ends_with("the row holds this path alone, no bytes"), "{missing}");
    wanted[6] = "empty_image".into();
    wanted[8] = "outside_folder".into();
    let mixed = opened(&fixture("image/mixed.parquet"));
    assert_eq!(rows(&mixed), wanted);
    let bad = mixed.pictured(8, 4).unwrap_err();
    assert!(
        bad.place.ends_with("mixed.parquet: picture 8 (row 8)") && bad.detail.contains("Cargo.toml"),
        "{bad}"
    );
}

#[test]
fn captions_are_text_or_lists_of_text() {
    let list = opened(&fixture("caption/list.parquet"));
    let of = |i: usize| -> Vec<String> {
        let grey = 10 * i;
        match i % 4 {
            0 => vec!["empty_caption".into()],
            3 => vec![format!("{grey} picture {i}"), format!("{grey} again {i}")],
            _ => vec![format!("{grey} picture {i}")],
        }
    };
    assert_eq!(rows(&list), (0..10).flat_map(of).collect::<Vec<_>>());
    assert_eq!(list.groups().map(|g| (g.pictures(), g.rows())), Some((10, 12)));
    assert!(list.describe().ends_with("list.parquet (10 pictures, 12 captions)"), "{}", list.describe());
    let raw = opened(&fixture("caption/list_struct.parquet"));
    assert_eq!(
        (raw.len(), rows(&raw)[1].as_str(), rows(&raw)[2].as_str()),
        (20, "0 again 0", "10 picture 1")
    );
    assert_eq!(rows(&opened(&fixture("caption/binary.parquet"))), expected(0..10));
    let nulls = rows(&opened(&fixture("caption/nulls.parquet")));
    assert_eq!(
        (nulls[0].as_str(), nulls[3].as_str(), nulls[4].as_str()),
        ("empty_caption", "empty_caption", "40 picture 4")
    );
    for (name, wanted) in [
        ("latin", &["column `caption`", "picture 1 of the file (from 0): not UTF-8", "\\xe9"][..]),
        ("number", &["column `caption` holds INT64 values", "text, or a list"]),
        ("none", &["has no caption in 10 rows"]),
        ("nested", &["column `caption` holds lists"]),
    ] {
        let text = refused(&fixture(&format!("caption/{name}.parquet")));
        assert!(wanted.iter().all(|part| text.contains(part)), "{text}");
    }
}

#[test]
fn columns_are_found_by_what_they_hold() {
    let open = |name: &str, image: Option<&str>, caption: Option<&str>| {
        let options = ParquetOptions {
            image_col: image.map(str::to_owned),
            caption_col: caption.map(str::to_owned),
            ..ParquetOptions::default()
        };
        let splits = Parquet::open(&fixture(name), &SplitNames::default(), &options);
        splits.map(|s| s.train.notes()[0].clone()).map_err(|e| e.to_string())
    };
    // The published preset's names, which this set does not have.
    let note = open("codec/none.parquet", Some("b64string_images"), Some("caption")).unwrap();
    assert_eq!(note, "columns: `image` holds pictures (bytes and path), `caption` captions");
    assert!(open("columns/two.parquet", None, None).unwrap().contains("`image` holds"));
    assert!(open("columns/two.parquet", Some("thumb"), None).unwrap().contains("`thumb` holds"));
    assert!(
        open("columns/other.parquet", None, Some("words")).unwrap().contains("`jpeg` holds pictures (bytes)")
    );
    for (name, image, caption, wanted) in [
        (
            "columns/other.parquet",
            None,
            None,
            &["no column `caption`", "`jpeg`, `words`", "data_config.caption_col"][..],
        ),
        ("columns/other.parquet", Some("jpg"), None, &["no column `jpg`", "Did you mean `jpeg`?"]),
        ("columns/lists.parquet", None, None, &["`image` holds lists"]),
        ("columns/pixels.parquet", None, None, &["`image` holds lists"]),
        ("codec/none.parquet", Some("caption"), None, &["cannot both be"]),
        ("columns/no_rows.parquet", None, None, &["has no row"]),
    ] {
        let text = open(name, image, caption).expect_err(name);
        assert!(wanted.iter().all(|part| text.contains(part)), "{text}");
    }
}

#[test]
fn shards_and_splits_are_found_by_name() {
    for folder in ["sharded", "sharded/data", "folders", "folders/default"] {
        let found = splits(&fixture(folder)).unwrap();
        assert_eq!(rows(&found.train), expected(0..7), "{folder}");
        assert_eq!(rows(&found.validation.unwrap()), expected(7..9), "{folder}");
        assert!(
            found.notes[0].contains("`train` to train on, `validation` to validate on"),
            "{:?}",
            found.notes
        );
        assert!(found.train.describe().contains("(3 files, 7 rows)"), "{}", found.train.describe());
    }
    let bad = opened(&fixture("sharded")).pictured(7, 4).unwrap_err();
    assert!(bad.detail.contains("7 rows"), "{bad}");
    let all = opened(&fixture("sharded/data/t*-*.parquet").to_path_buf());
    assert_eq!(rows(&all), expected(0..7));
    let one = splits(&fixture("sharded/data/train-00001-of-00003-0a1b2c.parquet")).unwrap();
    assert_eq!((rows(&one.train), one.notes.len()), (expected(3..5), 0));
    let names = SplitNames { train: "validation".into(), validation: Some("test".into()) };
    let found = Parquet::open(&fixture("sharded"), &names, &ParquetOptions::default()).unwrap();
    assert_eq!((rows(&found.train), rows(&found.validation.unwrap())), (expected(7..9), expected([9])));
    let names = SplitNames { train: "all".into(), validation: None };
    let text =
        Parquet::open(&fixture("sharded"), &names, &ParquetOptions::default()).unwrap_err().to_string();
    assert!(text.contains("no split `all`") && text.contains("`test`, `train`, `validation`"), "{text}");
}

/// A folder of copies of fixtures.
fn copies(pairs: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (from, to) in pairs {
        let to = dir.path().join(to);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(fixture(from), to).unwrap();
    }
    dir
}

#[test]
fn sets_that_are_no_sets_are_refused_by_name() {
    let file = "codec/none.parquet";
    let a = "train-00000-of-00003.parquet";
    for (names, wanted) in [
        (&[a, "train-00002-of-00003.parquet"][..], &["1 of 3 parts are missing", "train-00001-of-00003"][..]),
        (&[a, "train-00000-of-00002.parquet"], &["parts of two sets"]),
        (&["train-00000-of-00001-aa.parquet", "train-00000-of-00001-bb.parquet"], &["are the same part"]),
        (&["a/train-00000-of-00001.parquet", "b/train-00000-of-00001.parquet"], &["give one of them"]),
        (&["test-00000-of-00001.parquet"], &["no split `train`", "`test`"]),
        (&["x.txt"], &["no .parquet file"]),
        (&["data-00000-of-00001.arrow", "state.json"], &["save_to_disk", "to_parquet"]),
        (&["dataset_dict.json"], &["holds Arrow files"]),
    ] {
        let pairs: Vec<_> = names.iter().map(|name| (file, *name)).collect();
        let dir = copies(&pairs);
        let text = refused(dir.path());
        assert!(wanted.iter().all(|part| text.contains(part)), "{text}, expected {wanted:?}");
    }
    // With a pattern, what it leaves out was left out on purpose; what is missing is said.
    let dir = copies(&[(file, a), (file, "train-00001-of-00003.parquet"), (file, "notes.parquet")]);
    let found = splits(&dir.path().join("*")).unwrap();
    let told = found.warnings.join("\n");
    assert!(told.contains("train-00002-of-00003"), "{told}");
    assert!(told.contains("left out: 1 parquet file in no split, such as notes.parquet"), "{told}");
    assert!(refused(&dir.path().join("none*")).contains("no file has a name like that"));
    // Files without split names are one set.
    let dir = copies(&[(file, "b.parquet"), ("codec/zstd.parquet", "a.parquet")]);
    assert_eq!(opened(dir.path()).len(), 20);
    // Shards with other columns.
    let dir = copies(&[(file, "a.parquet"), ("columns/other.parquet", "b.parquet")]);
    assert!(refused(dir.path()).contains("b.parquet: no column `image`"), "{}", refused(dir.path()));
}

#[test]
fn cut_files_and_standins_are_refused() {
    let whole = std::fs::read(fixture("codec/snappy.parquet")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    let mut damaged = whole.clone();
    let end = damaged.len();
    damaged[end - 200..end - 100].fill(0xff);
    let mut long = whole.clone();
    long[end - 8..end - 4].copy_from_slice(&u32::MAX.to_le_bytes());
    for (bytes, wanted) in [
        (&whole[..whole.len() / 2], "`PAR1` is missing at its end"),
        (&whole[..end - 1], "is cut or damaged"),
        (b"PAR1", "too short"),
        (b"", "is empty"),
        (&damaged, "footer cannot be read"),
        (&long, "longer than the file"),
        (b"image,caption\nAAAA,x\n", "data_config.dataset=csv"),
        (b"image\tcaption\nAAAA\tx\n", "data_config.dataset=tsv"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (b"<!DOCTYPE html>", "web page"),
        (b"{\"error\": \"Repository not found\"}", "is JSON"),
        (b"\x1f\x8b\x08\0\0", "gzip"),
        (b"\x89PNG\r\n\x1a\n", "PNG picture"),
        (b"PARE1234", "encrypted"),
        (b"\0\x01\x02", "does not begin with `PAR1`"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let text = refused(&path);
        assert!(text.contains("x.parquet") && text.contains(wanted), "{text}, expected {wanted}");
    }
    assert!(refused(&dir.path().join("y.parquet")).contains("Did you mean"));
}

#[test]
fn damage_in_a_page_is_bad_samples_in_that_row_group_alone() {
    let mut bytes = std::fs::read(fixture("codec/none.parquet")).unwrap();
    // The header of the first page.
    bytes[4..12].fill(0xff);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    std::fs::write(&path, bytes).unwrap();
    let found = rows(&opened(&path));
    assert_eq!((&found[..4], &found[4..]), (&vec!["corrupt".to_owned(); 4][..], &expected(4..10)[..]));
    let bad = opened(&path).pictured(1, 4).unwrap_err();
    assert!(bad.detail.contains("in row group 0") && bad.place.contains("row 1"), "{bad}");
}

/// A page that would be unpacked to far more than it takes in the file is refused before it is.
#[test]
fn bombs_are_not_unpacked() {
    let text = refused(&fixture("hostile/caption_bomb.parquet"));
    assert!(
        text.contains("column `caption`, row group 0") && text.contains("bytes unpacked, more than"),
        "{text}"
    );
    let text = refused(&fixture("hostile/null_bomb.parquet"));
    assert!(text.contains("a column claims 20000000 values"), "{text}");
    let set = opened(&fixture("hostile/picture_bomb.parquet"));
    let bad = set.pictured(0, 4).unwrap_err();
    assert!(bad.reason == "corrupt" && bad.detail.contains("and is refused"), "{bad}");
    assert_eq!(set.pictured(1, 4).unwrap().pixels[0], 10);
}

/// A page that holds more than its header claims is not unpacked to its end: the reader would go on for as long as
/// there is something.
#[test]
fn a_page_that_claims_less_than_it_holds_is_refused() {
    for codec in ["gzip", "brotli"] {
        let mut bytes = std::fs::read(fixture(&format!("codec/{codec}.parquet"))).unwrap();
        // The first page lies behind `PAR1`: its kind, then its size unpacked, doubled for the sign.
        assert!(bytes[4] == 0x15 && bytes[6] == 0x15 && bytes[7] & 0x7f > 2, "{codec}: {:?}", &bytes[..12]);
        bytes[7] -= 2;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lies.parquet");
        std::fs::write(&path, &bytes).unwrap();
        let bad = opened(&path).pictured(0, 4).unwrap_err();
        assert!(bad.reason == "corrupt" && bad.detail.contains("that it claims"), "{codec}: {bad}");
    }
}

#[test]
fn the_fingerprint_is_of_the_content() {
    let of = |name: &str| opened(&fixture(name)).fingerprint();
    assert_eq!(of("codec/none.parquet"), of("codec/none.parquet"));
    let dir = copies(&[("codec/none.parquet", "elsewhere.parquet")]);
    assert_eq!(of("codec/none.parquet"), opened(dir.path()).fingerprint());
    assert_ne!(of("codec/none.parquet"), of("caption/nulls.parquet"));
    assert_ne!(of("sharded"), of("codec/none.parquet"));
}

#[test]
fn many_threads_read_at_once() {
    let set = opened(&fixture("sharded"));
    let alone: Vec<_> = (0..set.len()).map(|row| set.pictured(row, 8)).collect();
    let set = opened(&fixture("sharded"));
    std::thread::scope(|scope| {
        for first in 0..4 {
            let (set, alone) = (&set, &alone);
            scope.spawn(move || {
                for row in (first..set.len()).chain(0..first) {
                    assert_eq!(set.pictured(row, 8), alone[row]);
                }
            });
        }
    });
}
