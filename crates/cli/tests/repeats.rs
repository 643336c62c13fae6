//! Rows that show the same picture, through the real binary: they are known by what is cheap to look at, stay on one side of
//! a split, are captioned once, and what was not looked at is said.

#[path = "support/sources.rs"]
mod sources;
mod support;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use sources::Row;
use support::{Bench, Said, tiny, unlike, with};

const PICTURE: &[u8] = include_bytes!("../../data/tests/cases/03_alpha_palette_grey/grey_L.png");
/// What is said of parquet and folders, where bytes are not compared.
const NOT_LOOKED_FOR: &str = "not looked for, and so perhaps on both sides of the split: ";

/// The picture with the number `i`, equal to no other.
fn picture(i: usize) -> Vec<u8> {
    [PICTURE, &vec![b'.'; i]].concat()
}

/// A run that keeps half of the pictures to validate on.
fn train(b: &Bench, dataset: &str, path: &str) -> Said {
    let keys = [format!("data_config.dataset={dataset}"), format!("data_config.data_path={path}")];
    let more =
        ["data_config.train_split_ratio=0.5", "trainer_config.max_iters=1", "data_config.vocab_path=auto"];
    let name = ["--config-name", "csv_train", "data_config.image_col=null", "data_config.caption_col=null"];
    b.run(&tiny(&with(&name, &with(&keys.each_ref().map(|key| &**key), &more))))
}

/// The rows that a run kept to validate on, each picture once, and how many captions it was measured by.
fn held_out(b: &Bench) -> Vec<(u64, usize)> {
    let run = b.run_folder().display().to_string();
    b.run(&["eval", "--snapshot", &run, "--out", "held_out.jsonl"]).done();
    let text = std::fs::read_to_string(b.path("held_out.jsonl")).unwrap();
    let line = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        (line["row"].as_u64().unwrap(), line["references"].as_array().unwrap().len())
    };
    text.lines().map(line).collect()
}

#[test]
fn every_spelling_of_base64_is_the_same_picture() {
    let b = Bench::new();
    let spelled = |i: usize, how: usize| {
        let bytes = picture(i);
        let plain = STANDARD.encode(&bytes);
        match how {
            0 => plain,
            1 => plain.trim_end_matches('=').into(),
            2 => URL_SAFE_NO_PAD.encode(&bytes),
            3 => format!("\"data:image/png;base64,{plain}\""),
            _ => format!("\"{}\n{}\"", &plain[..76], &plain[76..]),
        }
    };
    let rows: String = (0..40).map(|i| format!("{},picture {}\n", spelled(i % 8, i / 8), i % 8)).collect();
    std::fs::write(b.path("rows.csv"), format!("image,caption\n{rows}")).unwrap();
    let said = train(&b, "csv", "rows.csv").done();
    let said =
        said.mentions(&["40 rows show 8 different pictures", "rows: 20 to train on, 20 to validate on"]);
    // All repeats of a table are known.
    assert!(!said.out.contains("not looked for"), "{}", said.out);
    let rows = held_out(&b);
    let pictures: std::collections::BTreeSet<u64> = rows.iter().map(|(row, _)| row % 8).collect();
    assert!((rows.len(), pictures.len()) == (4, 4) && rows.iter().all(|(_, refs)| *refs == 5), "{rows:?}");
    b.run(&["data", "check", "rows.csv"]).done().mentions(&["40 rows show 8 different pictures"]);
}

/// Twelve rows: the path of each, and the number of its picture.
fn parquet(b: &Bench, path: fn(usize) -> String, number: fn(usize) -> usize, bytes: bool) {
    let paths: Vec<String> = (0..12).map(path).collect();
    let row = |i: usize| Row { picture: picture(number(i)), caption: format!("picture {}", i % 6) };
    let rows: Vec<(Row, &str)> = paths.iter().enumerate().map(|(i, path)| (row(i), &**path)).collect();
    sources::parquet_with_paths(&b.path("rows.parquet"), &rows, bytes);
}

#[test]
fn parquet_rows_of_one_path_are_one_picture() {
    let b = Bench::new();
    parquet(&b, |i| format!("{}{}.png", if i < 6 { "" } else { "./" }, i % 6), |i| i % 6, true);
    let other = "pictures of equal bytes in rows with different paths";
    let said = train(&b, "parquet", "rows.parquet").done();
    said.mentions(&[
        "12 rows show 6 different pictures",
        "rows: 6 to train on, 6 to validate on",
        NOT_LOOKED_FOR,
        other,
    ]);
    let rows = held_out(&b);
    assert!(rows.len() == 3 && rows.iter().all(|(_, refs)| *refs == 2), "{rows:?}");
    b.run(&["data", "check", "rows.parquet", "data_config.train_split_ratio=0.5"])
        .done()
        .mentions(&[NOT_LOOKED_FOR, other]);
    let whole = b.run(&["data", "check", "rows.parquet", "data_config.train_split_ratio=1"]).done();
    assert!(!whole.out.contains("not looked for"), "{}", whole.out);
}

#[test]
fn paths_that_different_pictures_share_are_not_believed() {
    let b = Bench::new();
    parquet(&b, |_| "image.png".into(), |i| i, true);
    let said = train(&b, "parquet", "rows.parquet").done();
    said.mentions(&["rows: 6 to train on, 6 to validate on", "different pictures have the same path"]);
    let b = Bench::new();
    parquet(&b, |_| String::new(), |i| i, true);
    train(&b, "parquet", "rows.parquet").done().mentions(&["there are no paths to tell them by"]);
}

#[test]
fn names_of_one_file_are_one_picture() {
    let b = Bench::new();
    (0..6).for_each(|i| std::fs::write(b.path(&format!("{i}.png")), picture(i)).unwrap());
    parquet(&b, |i| format!("{}{}.png", if i < 6 { "x/../" } else { "" }, i % 6), |i| i, false);
    let said = train(&b, "parquet", "rows.parquet").done();
    said.mentions(&["12 rows show 6 different pictures", NOT_LOOKED_FOR]);
    let b = Bench::new();
    (0..6).for_each(|i| std::fs::write(b.path(&format!("{i}.png")), picture(i)).unwrap());
    let names: Vec<String> = (0..12).map(|i| format!("{}.png", i % 6)).collect();
    sources::parquet_of_text(&b.path("names.parquet"), &names, &names);
    train(&b, "parquet", "names.parquet").done().mentions(&["12 rows show 6 different pictures"]);
    // Base64 that is short is read, and nothing is left unknown.
    let dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGPg5OQEAAA6ABztCJuOAAAAAElFTkSuQmCC";
    let texts: Vec<String> = (0..12).map(|i| unlike(dot, i % 6)).collect();
    sources::parquet_of_text(&b.path("texts.parquet"), &texts, &names);
    let said = train(&b, "parquet", "texts.parquet").done().mentions(&["12 rows show 6 different pictures"]);
    assert!(!said.out.contains("not looked for"), "{}", said.out);
}

#[cfg(unix)]
#[test]
fn links_to_a_file_in_a_folder_are_one_picture() {
    let b = Bench::new();
    std::fs::create_dir(b.path("f")).unwrap();
    for i in 0..6 {
        std::fs::write(b.path(&format!("f/a{i}.png")), picture(i)).unwrap();
        std::os::unix::fs::symlink(format!("a{i}.png"), b.path(&format!("f/b{i}.png"))).unwrap();
        let captions = [(format!("f/a{i}.txt"), "a dot"), (format!("f/b{i}.txt"), "one dot")];
        captions.iter().for_each(|(name, text)| std::fs::write(b.path(name), text).unwrap());
    }
    let said = train(&b, "folder", "f").done();
    said.mentions(&[
        "12 rows show 6 different pictures",
        NOT_LOOKED_FOR,
        "files of equal bytes under different names",
    ]);
    let rows = held_out(&b);
    assert!(rows.len() == 3 && rows.iter().all(|(_, refs)| *refs == 2), "{rows:?}");
    b.run(&["data", "check", "f"]).done().mentions(&[NOT_LOOKED_FOR]);
}
