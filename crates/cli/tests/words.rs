//! What messages say, and that nothing which others wrote acts on a terminal, through the real binary.

mod support;

use safetensors::tensor::{Dtype, TensorView};
use serde_json::Value;
use support::{Bench, Said, csv, rows, with};

/// Captions of one picture each.
fn captions<'a>(b: &Bench, texts: &[&str]) -> Vec<&'a str> {
    let all = include_str!("../../data/tests/cases/08_captions/captions.csv");
    let picture = all.lines().nth(1).unwrap().split(',').nth(1).unwrap();
    let lines: Vec<String> = texts.iter().map(|text| format!("{picture},{text}")).collect();
    rows(b, &lines.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn rows_count_from_zero_everywhere() {
    let b = Bench::new();
    let base = captions(&b, &["aa", "aa", "ab"]);
    std::fs::write(b.path("vocab.txt"), "a\nc\n").unwrap();
    let vocabulary = "data_config.vocab_path=vocab.txt";
    b.train(&with(&base, &[vocabulary]))
        .refused(&["rows count from 0", "'b' (U+0062): 1 time, first in row 2"]);
    let check = b.run(&["data", "check", "--json", "rows.csv", vocabulary]);
    let found: Value = serde_json::from_str(&check.out).unwrap();
    assert_eq!(found["unknown_characters"][0]["first_row"], 2, "{found}");
    // The same row with a bad picture.
    let text = std::fs::read_to_string(b.path("rows.csv")).unwrap();
    let broken = format!("{}\nAAAA,ab\n", text.lines().take(3).collect::<Vec<_>>().join("\n"));
    std::fs::write(b.path("rows.csv"), broken).unwrap();
    b.train(&with(&base, &["trainer_config.max_iters=2"])).refused(&["rows.csv:4 (row 2): not_an_image"]);
    assert_eq!(b.log("skipped.jsonl")[0]["row"], 2);
}

const HOSTILE: &str = "\u{1b}[2Ja\u{9b}31m\u{202e}b";

/// Control characters of C0 and C1, and a mark that turns text around.
#[track_caller]
fn harmless(said: &Said) {
    for text in [&said.out, &said.err] {
        let acting = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.contains(acting), "{text:?}");
    }
}

#[test]
fn captions_of_others_do_not_act_on_a_terminal() {
    let b = Bench::new();
    let base = captions(&b, &[HOSTILE; 8]);
    let more = ["trainer_config.max_iters=40", "trainer_config.lr=0.01", "data_config.train_split_ratio=0.5"];
    let said = b.train(&with(&base, &more)).done().mentions(&["true:  \\u{1b}[2Ja\\u{9b}31m\\u{202e}b"]);
    harmless(&said);
    let snapshot = b.snapshots()[0].display().to_string();
    let picture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pictures/barn.jpg");
    let caption = ["caption", "--snapshot", &snapshot, "--prompt", HOSTILE, "--max-length", "20", picture];
    let said = b.run(&caption).done();
    harmless(&said);
    assert!(said.out.starts_with("\\u{1b}[2Ja"), "{}", said.out);
    let said = b.run(&with(&caption, &["--json"])).done();
    harmless(&said);
    let line: Value = serde_json::from_str(&said.out).unwrap();
    assert!(line["caption"].as_str().unwrap().starts_with(HOSTILE), "{line}");
    for command in ["check", "show"] {
        let index: &[&str] = if command == "show" { &["--index", "0", "--out", "seen.png"] } else { &[] };
        for form in [&[][..], &["--json"]] {
            harmless(&b.run(&[&["data", command, "rows.csv"], index, form].concat()).done());
        }
    }
    // Characters that a vocabulary lacks are named.
    std::fs::write(b.path("vocab.txt"), "a\nb\n").unwrap();
    harmless(&b.train(&with(&base, &["data_config.vocab_path=vocab.txt"])).refused(&["U+001B"]));
}

#[cfg(unix)]
#[test]
fn names_of_files_do_not_act_on_a_terminal() {
    let b = Bench::new();
    let name = format!("pic{HOSTILE}.jpg");
    std::fs::create_dir(b.path("photos")).unwrap();
    for i in 0..3 {
        std::fs::write(b.path(&format!("photos/{i}{name}")), "no picture").unwrap();
        std::fs::write(b.path(&format!("photos/{i}{}", name.replace("jpg", "txt"))), "a text").unwrap();
    }
    let preset = ["--config-name", "csv_train", "data_config.dataset=folder", "data_config.data_path=photos"];
    let base = with(&preset, &["data_config.vocab_path=auto", "data_config.train_split_ratio=1"]);
    harmless(&b.train(&base).refused(&["none of 3 samples", "\\u{1b}[2Ja"]));
    harmless(&b.run(&["data", "check", "photos"]).refused(&["\\u{1b}[2Ja"]));
    b.train(&["trainer_config.max_iters=1"]).done();
    let snapshot = b.snapshots()[0].display().to_string();
    let caption = b.run(&["caption", "--snapshot", &snapshot, &name]).refused(&["pic\\u{1b}[2J"]);
    harmless(&caption);
    let said = b.run(&["caption", "--json", "--snapshot", &snapshot, &name]);
    harmless(&said);
    assert_eq!(serde_json::from_str::<Value>(&said.out).unwrap()["image"], name);
    for args in [&["caption", &format!("--{name}")][..], &[&name], &["train", "--resume", &name]] {
        let said = b.run(args);
        assert!(!said.ok);
        harmless(&said);
    }
}

#[test]
fn advice_is_what_helps() {
    let b = Bench::new();
    // A limit that is too small is no fault of the data.
    let said = b.train(&with(&csv(&b, 4, 0), &["data_config.max_pixels=10"]));
    let said = said.refused(&["4 too_many_pixels", "Raise data_config.max_pixels"]);
    assert!(!said.err.contains("epair the data"), "{}", said.err);
    let b = Bench::new();
    let base = with(&captions(&b, &["aa", "bb"]), &["data_config.vocab_path=vocab.txt"]);
    std::fs::write(b.path("vocab.txt"), "y\nz\n").unwrap();
    let said = b.train(&with(&base, &["data_config.unknown=replace"]));
    let said = said.refused(&["2 unknown_character", "vocabulary that has the characters of the captions"]);
    assert!(!said.err.contains("epair the data"), "{}", said.err);
    b.train(&with(&csv(&b, 3, 3), &[])).refused(&["3 of 6 samples", "Repair the data"]);
    let clip = ["trainer_config.max_iters=1", "trainer_config.clip_grad_norm=1e-20"];
    b.train(&clip).done().mentions(&["note: clip_grad_norm 1e-20 is below eps 1e-8"]);
}

#[test]
fn one_is_singular() {
    let b = Bench::new();
    let base = with(&captions(&b, &["a", "b"]), &["trainer_config.max_iters=1", "data_config.loss=masked"]);
    b.train(&base).done().mentions(&["captions: 1 character on average, 1 at most"]);
}

#[test]
fn weights_of_another_program_are_said_as_that() {
    let b = Bench::new();
    let data = [0_u8; 8];
    let tensor = TensorView::new(Dtype::F32, vec![2], &data).unwrap();
    std::fs::write(b.path("other.safetensors"), safetensors::serialize([("w", tensor)], None).unwrap())
        .unwrap();
    let said = b.train(&["model_config.init_from=other.safetensors"]).refused(&[
        "other.safetensors",
        "its tensors do not fit the model",
        "` is missing",
        "more\n",
        "the published model",
    ]);
    assert!(!said.err.contains("snapshot") && said.err.lines().count() < 20, "{}", said.err);
}

#[test]
fn a_prompt_and_a_flawed_picture_are_spoken_of_as_such() {
    let b = Bench::new();
    b.train(&["trainer_config.max_iters=1"]).done();
    let snapshot = b.snapshots()[0].display().to_string();
    let flawed = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/tests/cases/01_broken_images/no_eoi.jpg");
    let caption = |more: &[&str]| b.run(&with(&["caption", "--snapshot", &snapshot, flawed], more));
    let said = caption(&["--prompt", "\u{1F600}"])
        .refused(&["--prompt: ", "(U+1F600) is not in the vocabulary (1 unknown character in this text)"]);
    assert!(!said.err.contains("data_config"), "{}", said.err);
    let said = caption(&[]).done();
    assert!(said.err.contains("no_eoi.jpg: without end marker: used"), "{}", said.err);
    let line: Value = serde_json::from_str(&caption(&["--json"]).done().out).unwrap();
    assert_eq!(line["warnings"], serde_json::json!(["no_end_marker"]));
}
