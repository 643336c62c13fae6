//! Hostile pictures and captions in every kind of source that can hold them, through the real binary: each gets the outcome
//! in `crates/data/tests/cases/expected.json`.

#[path = "support/sources.rs"]
mod sources;
mod support;

use base64::Engine as _;
use ocelli_data::image::{DecodeOptions, decode};
use serde_json::{Map, Value, json};
use sources::{KINDS, Row, dataset};
use std::path::{Path, PathBuf};
use support::{Bench, Said};

const ALL_BAD: &str = "data_config.max_skip_ratio=1";

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/tests/cases")
}

fn expected(case: &str) -> Map<String, Value> {
    let all: Value =
        serde_json::from_str(&std::fs::read_to_string(cases().join("expected.json")).unwrap()).unwrap();
    all[case].as_object().unwrap().clone()
}

/// The records of a table of the cases: picture in base64, caption.
fn records(name: &str) -> Vec<[String; 2]> {
    let mut reader = csv::Reader::from_path(cases().join(name)).unwrap();
    reader.records().map(|r| r.unwrap()).map(|r| [r[1].to_owned(), r[2].to_owned()]).collect()
}

/// The same with pictures decoded as far as they can be: a file or a column of bytes holds anything.
fn rows(name: &str) -> Vec<Row> {
    let decoded = |text: &String| base64::engine::general_purpose::STANDARD.decode(text);
    let row = |[picture, caption]: [String; 2]| Row {
        picture: decoded(&picture).unwrap_or_else(|_| picture.clone().into_bytes()),
        caption,
    };
    records(name).into_iter().map(row).collect()
}

#[track_caller]
fn parsed(said: &Said) -> Value {
    serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{e}: {}{}", said.out, said.err))
}

/// What `data check` says of the only split.
#[track_caller]
fn checked(b: &Bench, kind: &str, more: &[&str]) -> Value {
    let said = b.run(&[&["data", "check", "--json", kind, ALL_BAD], more].concat());
    parsed(&said)["parts"][0].clone()
}

/// A row as the model sees it, 96 pixels wide and high, and what is said of it.
#[track_caller]
fn shown(b: &Bench, kind: &str, index: usize, more: &[&str]) -> (Vec<u8>, Value) {
    let (index, out) = (index.to_string(), b.path("seen.png"));
    let args =
        ["data", "show", kind, "--index", &index, "--out", "seen.png", "--json", "model_config.img_size=96"];
    let said = b.run(&[&args, more].concat()).done();
    let seen = decode(&std::fs::read(&out).unwrap(), &DecodeOptions::default()).unwrap();
    assert_eq!((seen.width, seen.height), (96, 96));
    (seen.pixels, parsed(&said))
}

fn points_match(what: &str, pixels: &[u8], points: &Value, tolerance: u64) {
    for point in points.as_array().unwrap() {
        let at = |axis: usize| (point["at"][axis].as_f64().unwrap() * 96.0).min(95.0) as usize;
        for channel in 0..3 {
            let wanted = point["rgb"][channel].as_u64().unwrap();
            let found = u64::from(pixels[(at(1) * 96 + at(0)) * 3 + channel]);
            // One level more: the picture was scaled.
            assert!(
                wanted.abs_diff(found) <= tolerance + 1,
                "{what} at {point}: {found} in channel {channel}"
            );
        }
    }
}

/// Every picture of the cases, in every kind of source: skipped for the right reason, or seen as it should be.
#[test]
fn pictures() {
    let folders =
        ["01_broken_images", "03_alpha_palette_grey", "05_exif_orientation", "07_decompression_bomb"];
    let all: Vec<(String, Value, Vec<u8>)> = folders
        .into_iter()
        .flat_map(|folder| expected(folder).into_iter().map(move |(name, outcome)| (folder, name, outcome)))
        .map(|(folder, name, outcome)| {
            let bytes = std::fs::read(cases().join(folder).join(&name)).unwrap();
            (name, outcome, bytes)
        })
        .collect();
    assert_eq!(all.len(), 26);
    let rows: Vec<Row> = all
        .iter()
        .map(|(name, _, picture)| Row { picture: picture.clone(), caption: name.clone() })
        .collect();
    for kind in KINDS {
        let b = Bench::new();
        sources::write(&b, kind, &rows);
        let part = checked(&b, kind, &[]);
        let reason = |i: usize| {
            let found = part["bad"].as_array().unwrap().iter().find(|bad| bad["row"] == json!(i));
            found.map(|bad| bad["reason"].as_str().unwrap().to_owned())
        };
        assert_eq!(part["warnings"], json!({"no_end_marker": 1}), "{kind}");
        for (i, (name, outcome, _)) in all.iter().enumerate() {
            let what = format!("{name} in {kind}");
            if outcome["outcome"] == "skip" {
                // In a table of text a file without bytes is an empty field.
                let empty = name == "zero_bytes.jpg" && matches!(kind, "rows.csv" | "rows.tsv");
                let wanted = if empty { "empty_image" } else { outcome["reason"].as_str().unwrap() };
                assert_eq!(reason(i).as_deref(), Some(wanted), "{what}");
                continue;
            }
            assert_eq!(reason(i), None, "{what}");
            let tolerance = outcome["tol"].as_u64().unwrap();
            let (pixels, row) = shown(&b, kind, i, &[]);
            assert_eq!(json!([row["width"], row["height"]]), outcome["size"], "{what}");
            assert_eq!(row["caption"], json!(name));
            points_match(&what, &pixels, &outcome["points"], tolerance);
            if let Some(points) = outcome.get("points_drop") {
                let (pixels, _) = shown(&b, kind, i, &["data_config.alpha=drop"]);
                points_match(&what, &pixels, points, tolerance);
            }
        }
    }
}

/// Captions stay what they are, empty ones are skipped, and what the vocabulary lacks is found before the first step.
#[test]
fn captions() {
    let rows = rows("08_captions/captions.csv");
    let wanted = expected("08_captions")["captions.csv"]["rows"].as_array().unwrap().clone();
    for kind in KINDS {
        let b = Bench::new();
        sources::write(&b, kind, &rows);
        std::fs::copy(cases().join("08_captions/vocab_small.txt"), b.path("vocab.txt")).unwrap();
        let limit = ["data_config.max_seq_length=256", "model_config.max_positions=300"];
        let part = checked(&b, kind, &limit);
        assert_eq!((&part["rows"], &part["truncated"]), (&json!(17), &json!(1)), "{kind}: {part}");
        assert_eq!(part["skipped"], json!({"empty_caption": 2}), "{kind}");
        for (i, row) in wanted.iter().enumerate().filter(|(_, row)| !row["text"].is_null()) {
            let (_, seen) = shown(&b, kind, i, &limit);
            assert_eq!(seen["caption"], row["text"], "{kind}");
            assert_eq!(seen["truncated"], json!(row["outcome"] == "truncate"), "{kind}");
        }
        let path = format!("data_config.data_path={kind}");
        let base =
            [dataset(kind), &path, ALL_BAD, "data_config.train_split_ratio=1", "trainer_config.max_iters=2"];
        let small = ["data_config.vocab_path=vocab.txt"];
        // All of them, each with its count and its first row.
        let refused =
            b.train(&[&base[..], &small].concat()).refused(&["vocab.txt", "data_config.unknown=replace"]);
        for line in [
            "'!' (U+0021): 1 time, first in row ",
            "'\u{e9}' (U+00E9): 1 time, first in row ",
            "'\\u{301}' (U+0301): 1 time, first in row ",
            "'\u{1f600}' (U+1F600): 1 time, first in row ",
        ] {
            assert!(refused.err.contains(line), "{kind}: no {line} in {}", refused.err);
        }
        assert!(!b.path("runs").exists());
        b.train(&[&base[..], &small, &["data_config.unknown=replace"]].concat()).done();
    }
}

/// Base64 as people write it, in every source with a column of text.
#[test]
fn base64_of_every_habit() {
    let wanted = expected("10_huge_base64")["images.csv"]["rows"].as_array().unwrap().clone();
    let records = records("10_huge_base64/images.csv");
    let (pictures, captions): (Vec<String>, Vec<String>) = records.into_iter().map(|[p, c]| (p, c)).unzip();
    let b = Bench::new();
    std::fs::copy(cases().join("10_huge_base64/images.csv"), b.path("rows.csv")).unwrap();
    let mut tsv = csv::WriterBuilder::new().delimiter(b'\t').from_path(b.path("rows.tsv")).unwrap();
    tsv.write_record(["image", "caption"]).unwrap();
    pictures.iter().zip(&captions).for_each(|row| tsv.write_record([row.0, row.1]).unwrap());
    drop(tsv);
    sources::parquet_of_text(&b.path("rows.parquet"), &pictures, &captions);
    for kind in ["rows.csv", "rows.tsv", "rows.parquet"] {
        let part = checked(&b, kind, &[]);
        assert_eq!(part["usable"], json!(5), "{kind}: {part}");
        for (i, row) in wanted.iter().enumerate() {
            let found = part["bad"].as_array().unwrap().iter().find(|bad| bad["row"] == json!(i));
            let found = found.map_or("ok".into(), |bad| format!("skip:{}", bad["reason"].as_str().unwrap()));
            assert_eq!(json!(found), row["outcome"], "{} in {kind}", row["id"]);
        }
        let path = format!("data_config.data_path={kind}");
        let all = ["data_config.train_split_ratio=1", ALL_BAD, dataset(kind), &path];
        b.train(&all)
            .done()
            .mentions(&["5 samples", "skipped samples: 2 bad_base64, 1 empty_image, 1 truncated"]);
    }
}

/// Bad rows between good ones: an epoch has its four steps, and each usable row is in it once.
#[test]
fn a_mixed_set_trains() {
    let rows = rows("00_mixed_run/train.csv");
    for kind in KINDS {
        let b = Bench::new();
        sources::write(&b, kind, &rows);
        let path = format!("data_config.data_path={kind}");
        let all =
            [dataset(kind), &path, "data_config.train_split_ratio=1", "trainer_config.train_batch_size=16"];
        b.train(&all)
            .done()
            .mentions(&["done: 4 steps, 61 samples", "skipped samples: 1 empty_caption, 2 not_an_image"]);
        assert_eq!(b.log("skipped.jsonl").len(), 3, "{kind}");
    }
    let b = Bench::new();
    std::fs::copy(cases().join("00_mixed_run/train.csv"), b.path("train.csv")).unwrap();
    let all = [
        "data_config.dataset=csv",
        "data_config.data_path=train.csv",
        "data_config.train_split_ratio=1",
        "trainer_config.train_batch_size=16",
    ];
    b.train(&all).done().mentions(&[
        "done: 4 steps, 61 samples",
        "skipped samples: 1 bad_base64, 1 empty_caption, 1 not_an_image",
    ]);
    // Each says why, where, and how much was seen.
    let mut listed = b.log("skipped.jsonl");
    listed.sort_by_key(|line| line["row"].as_u64());
    let of = |key: &str| listed.iter().map(|line| line[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("row"), [json!(7), json!(20), json!(40)]);
    assert_eq!(of("reason"), [json!("not_an_image"), json!("empty_caption"), json!("bad_base64")]);
    assert_eq!(of("bytes"), [json!(3), Value::Null, json!(3)]);
    assert_eq!(of("source"), vec![json!("train.csv"); 3]);
}
