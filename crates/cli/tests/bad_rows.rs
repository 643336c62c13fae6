//! Rows that cannot be used, and rows that are not as they should be, through the real binary.

mod support;

use serde_json::json;
use support::{Bench, csv, rows, with};

/// Epochs of their own length.
const EPOCHS: [&str; 2] = ["data_config.endless=false", "trainer_config.max_iters=null"];

#[test]
fn bad_samples_are_skipped_listed_and_too_many_end_the_run() {
    let b = Bench::new();
    let base = with(&csv(&b, 18, 2), &EPOCHS);
    b.train(&base).refused(&["2 of 20 samples", "not_an_image", "max_skip_ratio", "rows.csv:20 (row 18)"]);
    let lenient = with(&base, &["data_config.max_skip_ratio=0.2"]);
    b.train(&lenient).done().mentions(&["skipped samples: 2 not_an_image", "18 samples"]);
    // A quarter of the training rows at most.
    let half = ["data_config.train_split_ratio=0.5", "data_config.max_skip_ratio=0.3"];
    b.train(&with(&base, &half)).done();
}

#[test]
fn an_endless_run_is_judged_after_its_first_pass_and_keeps_what_it_learnt() {
    let b = Bench::new();
    let base = with(&csv(&b, 18, 2), &["trainer_config.max_iters=1000"]);
    let said = b.train(&base).refused(&["2 of 20 samples could not be used (2 not_an_image)", "--resume"]);
    let saved = b.snapshots();
    assert_eq!(saved.len(), 1);
    assert!(saved[0].ends_with("snapshots/00_0000005_snapshot.safetensors"), "{saved:?}");
    let name = saved[0].strip_prefix(b.dir.path()).unwrap().to_str().unwrap();
    assert!(said.err.contains(&format!("--resume {name} (5 steps)")), "{}", said.err);
    let s = b.summary();
    assert_eq!((&s["ended"], &s["steps"], &s["samples"]), (&json!("bad_samples"), &json!(5), &json!(18)));
    let more = ["train", "--resume", name, "data_config.max_skip_ratio=0.2", "trainer_config.max_iters=8"];
    b.run(&more).done().mentions(&["done: 8 steps"]);
}

#[test]
fn a_large_set_is_judged_after_a_thousand_samples() {
    let b = Bench::new();
    let more = ["trainer_config.train_batch_size=50", "trainer_config.max_iters=1000"];
    let said = b.train(&with(&csv(&b, 1100, 100), &more)).refused(&[" of 1000 samples could not be used"]);
    assert_eq!(said.err.matches("\n  rows.csv:").count(), 3, "{}", said.err);
    assert!(b.snapshots()[0].ends_with("00_0000020_snapshot.safetensors"));
}

#[test]
fn a_run_too_short_to_be_judged_says_its_doubts() {
    let b = Bench::new();
    let base = with(&csv(&b, 20, 20), &["trainer_config.max_iters=2"]);
    let said = b.train(&base).done();
    assert!(said.err.contains("of 8 samples could not be used: a run that draws more"), "{}", said.err);
}

#[test]
fn without_a_usable_sample_the_first_pass_ends_the_run() {
    for endless in ["data_config.endless=true", "data_config.endless=false"] {
        let b = Bench::new();
        let base = with(&csv(&b, 0, 6), &[endless, "data_config.max_skip_ratio=1"]);
        let said = b.train(&base).refused(&[
            "none of 6 samples drawn could be used (6 not_an_image)",
            "(row 0): not_an_image",
            "skipped.jsonl",
        ]);
        assert!(!said.out.contains("step 0"), "{}", said.out);
        assert_eq!(said.err.matches("\n  rows.csv:").count(), 3, "{}", said.err);
        assert!(b.snapshots().is_empty());
        assert_eq!(b.summary()["skipped"], json!({"not_an_image": 6}));
    }
}

#[test]
fn names_of_files_where_pictures_belong_are_known() {
    let b = Bench::new();
    let names = rows(
        &b,
        &["AAAA,bytes", "photos/cat 1.jpg,a cat", "photos/dog.JPEG,a dog", "https://x.y/z.png?w=9,a cow"],
    );
    b.train(&names).refused(&[
        "none of 4 samples drawn could be used (2 file_name, 1 not_an_image, 1 web_address)",
        "addresses are not fetched",
        "`photos/dog.JPEG` names a file",
        "The column `b64string_images` holds names of files",
        "data_config.dataset=folder",
        "metadata.csv",
        "`file_name`",
    ]);
    // Where the first rows are all names, nothing is tried.
    let names = rows(&b, &["photos/cat 1.jpg,a cat", "photos/dog.JPEG,a dog", "https://x.y/z.png?w=9,a cow"]);
    b.train(&names).refused(&[
        "the column `b64string_images` holds names of files (`photos/cat 1.jpg`)",
        "data_config.dataset=folder data_config.data_path=.",
        "metadata.csv",
    ]);
}

/// Odd captions, as often drawn as it may be and wherever they are: in both parts together.
#[test]
fn a_row_counts_once_however_often_it_is_drawn() {
    let captions = include_str!("../../data/tests/cases/08_captions/captions.csv");
    let three = [&EPOCHS[..], &["trainer_config.epochs=3"]].concat();
    for more in [&three[..], &["trainer_config.max_iters=40"]] {
        for split in ["data_config.train_split_ratio=1", "data_config.train_split_ratio=0.6"] {
            let b = Bench::new();
            let base = with(&rows(&b, &[]), &[split, "data_config.max_skip_ratio=1"]);
            std::fs::write(b.path("rows.csv"), captions).unwrap();
            let limit = ["data_config.max_seq_length=256"];
            b.train(&[&base, more, &limit].concat()).done().mentions(&[
                "skipped samples: 2 empty_caption (listed in skipped.jsonl)",
                "\n1 caption truncated",
            ]);
            let listed = b.log("skipped.jsonl");
            assert_eq!(listed.len(), 2, "{listed:?}");
            assert_ne!(listed[0]["row"], listed[1]["row"]);
            let s = b.summary();
            assert_eq!((&s["skipped"], &s["truncated"]), (&json!({"empty_caption": 2}), &json!(1)));
            assert_eq!((&s["replaced"], &s["warnings"]), (&json!(0), &json!({})));
        }
    }
}

#[test]
fn replaced_characters_count_once() {
    let replaced = |epochs: &str| {
        let b = Bench::new();
        let base = with(&rows(&b, &[]), &EPOCHS);
        for (name, text) in [
            ("rows.csv", include_str!("../../data/tests/cases/08_captions/captions.csv")),
            ("vocab.txt", include_str!("../../data/tests/cases/08_captions/vocab_small.txt")),
        ] {
            std::fs::write(b.path(name), text).unwrap();
        }
        let more = [
            "data_config.vocab_path=vocab.txt",
            "data_config.unknown=replace",
            "data_config.max_skip_ratio=1",
            epochs,
        ];
        let said = b.train(&with(&base, &more)).done();
        let n = b.summary()["replaced"].as_u64().unwrap();
        said.mentions(&[&format!("\n{n} unknown characters replaced")]);
        n
    };
    let once = replaced("trainer_config.epochs=1");
    assert!(once > 1);
    assert_eq!(replaced("trainer_config.epochs=3"), once);
}

#[test]
fn a_picture_without_its_end_is_used_and_counted() {
    use base64::Engine as _;
    let b = Bench::new();
    let bytes = include_bytes!("../../data/tests/cases/01_broken_images/no_eoi.jpg");
    let picture = base64::engine::general_purpose::STANDARD.encode(bytes);
    let row = format!("{picture},a picture");
    let more = [&EPOCHS[..], &["trainer_config.epochs=3"]].concat();
    let said = b.train(&with(&rows(&b, &[&row]), &more)).done();
    said.mentions(&["\n1 picture without end marker: used", "done: 3 steps, 3 samples"]);
    assert_eq!(b.summary()["warnings"], json!({"no_end_marker": 1}));
}
