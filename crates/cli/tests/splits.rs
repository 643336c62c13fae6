//! Splits by the names of files and folders, through the real binary: no two are taken for one, nothing that is held out
//! is trained on, and what is left out is said; from the hub as from this machine.

mod support;

use ocelli_testkit::hub::{Repository, Server};
use serde_json::{Value, json};
use support::{Bench, Said, TINY, csv, said, unlike, with};

const SHARD: &[u8] = include_bytes!("coco/validation-00000-of-00001.parquet");
const PICTURE: &[u8] = include_bytes!("../../data/tests/cases/03_alpha_palette_grey/grey_L.png");
const PRESET: &[&str] =
    &["train", "--config-name", "coco_train", "data_config.vocab_path=auto", "trainer_config.max_iters=1"];

/// Splits of five rows each, on this machine and at a hub.
struct Sets {
    bench: Bench,
    server: Server,
}

impl Sets {
    fn of(splits: &[&str]) -> Self {
        let bench = Bench::new();
        std::fs::create_dir_all(bench.path("set/data")).unwrap();
        let mut hub = Repository::new("owner/set");
        for name in splits.iter().map(|split| format!("data/{split}-00000-of-00001.parquet")) {
            std::fs::write(bench.path("set").join(&name), SHARD).unwrap();
            hub = hub.with(&name, SHARD);
        }
        Self { bench, server: Server::start(move |asked| hub.answer(asked)) }
    }

    /// What training says of either.
    fn train(&self, more: &[&str]) -> [Said; 2] {
        ["data_config.data_path=set", "data_config.data_path=owner/set"].map(|path| {
            let mut command = self.bench.command(&[PRESET, TINY, &[path], more].concat());
            command
                .env("HF_ENDPOINT", self.server.url())
                .env("HF_HOME", self.bench.path("hf"))
                .env("NO_PROXY", "*");
            for name in [
                "HF_TOKEN",
                "HF_HUB_CACHE",
                "HUGGINGFACE_HUB_CACHE",
                "HF_HUB_OFFLINE",
                "TRANSFORMERS_OFFLINE",
            ] {
                command.env_remove(name);
            }
            said(command.output().unwrap())
        })
    }
}

#[test]
fn a_split_is_taken_alone() {
    let sets = Sets::of(&["train", "train_small", "validation"]);
    for said in sets.train(&[]) {
        said.done().mentions(&[
            "splits: `train` to train on, `validation` to validate on, of `train`, `train_small`, `validation`",
            "rows: 5 to train on, 5 to validate on",
        ]);
    }
    for said in sets.train(&["data_config.train_split=train_small", "data_config.val_split=train"]) {
        said.done().mentions(&["splits: `train_small` to train on, `train` to validate on"]);
    }
    let sets = Sets::of(&["train", "validation_seen", "validation_unseen"]);
    for said in sets.train(&[]) {
        said.done().mentions(&["names another split, such as `validation_seen`, `validation_unseen`)"]);
    }
    for said in sets.train(&["data_config.val_split=validation_seen"]) {
        said.done().mentions(&["rows: 5 to train on, 5 to validate on"]);
    }
}

#[test]
fn of_several_that_could_be_meant_none_is_guessed() {
    for pair in [["train_en", "train_de"], ["train_a", "train_b"]] {
        for said in Sets::of(&pair).train(&[]) {
            let names = [format!("`{}`", pair[0]), format!("`{}`", pair[1])];
            said.refused(&[
                "no split `train`",
                &names[0],
                &names[1],
                "Set data_config.train_split to one of them",
            ]);
        }
    }
    for said in Sets::of(&["train_a", "train_b"]).train(&["data_config.train_split=train_b"]) {
        said.done().mentions(&["`train_b` to train on, of `train_a`, `train_b`"]);
    }
}

#[test]
fn a_file_beside_the_splits_is_said_to_be_left_out() {
    let b = Bench::new();
    std::fs::create_dir_all(b.path("set/train")).unwrap();
    for name in ["train/a.parquet", "b.parquet"] {
        std::fs::write(b.path("set").join(name), SHARD).unwrap();
    }
    let left = "warning: left out: 1 parquet file in no split, such as b.parquet";
    let said = b.run(&[PRESET, TINY, &["data_config.data_path=set"]].concat()).done();
    assert!(said.err.contains(left), "{}", said.err);
    b.run(&["data", "check", "set"]).done().mentions(&[left]);
}

/// Folders of pictures with captions beside them.
fn folder(pictures: &[&str]) -> Bench {
    let b = Bench::new();
    for name in pictures {
        let path = b.path("f").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path.with_extension("txt"), name).unwrap();
        std::fs::write(path, PICTURE).unwrap();
    }
    b
}

fn trained(pictures: &[&str]) -> Said {
    let keys = ["data_config.dataset=folder", "data_config.data_path=f", "trainer_config.max_iters=1"];
    folder(pictures).train(&keys)
}

#[test]
fn held_out_pictures_are_not_trained_on() {
    trained(&["Train/x.png", "Train/z.png", "Validation/y.png"]).done().mentions(&[
        "splits: `Train` to train on, `Validation` to validate on",
        "rows: 2 to train on, 1 to validate",
    ]);
    trained(&["my/train/x.png", "my/validation/y.png"])
        .refused(&["`my/validation`", "data_config.data_path=f/my"]);
    trained(&["a.png", "b.png", "test/x.png"]).refused(&["1 picture to train on in `test`", "another name"]);
    let left = "left out: 4 pictures outside of the splits, such as f/a.png";
    let said = trained(&["a.png", "b.png", "c.png", "train/x.png", "train/y.png", "test_set/z.png"]).done();
    assert!(said.err.contains(left), "{}", said.err);
}

#[test]
fn the_rows_of_a_picture_in_a_table_stay_on_one_side() {
    let b = Bench::new();
    csv(&b, 1, 0);
    let table = std::fs::read_to_string(b.path("rows.csv")).unwrap();
    let picture = table.lines().nth(1).unwrap().split(',').next().unwrap();
    // Each picture twice, far from each other; the caption tells which it is.
    let rows: String = (0..16).map(|i| format!("{},picture {}\n", unlike(picture, i % 8), i % 8)).collect();
    std::fs::write(b.path("rows.csv"), format!("b64string_images,caption\n{rows}")).unwrap();
    let keys = [
        "--config-name",
        "csv_train",
        "data_config.data_path=rows.csv",
        "data_config.vocab_path=auto",
        "data_config.train_split_ratio=0.5",
        "trainer_config.max_iters=1",
    ];
    b.train(&keys)
        .done()
        .mentions(&["16 rows show 8 different pictures", "rows: 8 to train on, 8 to validate on"]);
    let run = b.run_folder().display().to_string();
    b.run(&["eval", "--snapshot", &run, "--out", "held_out.jsonl"]).done();
    let held_out = std::fs::read_to_string(b.path("held_out.jsonl")).unwrap();
    let rows: Vec<u64> = held_out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["row"].as_u64().unwrap())
        .collect();
    // Eight rows of four pictures, each captioned once: both rows of each are there.
    let pictures: std::collections::BTreeSet<u64> = rows.iter().map(|row| row % 8).collect();
    assert_eq!((rows.len(), pictures.len()), (4, 4), "{rows:?}");
}

/// A validation split of which nothing can be used is found by a look and before training.
#[test]
fn a_validation_split_of_no_use_is_refused() {
    let b = folder(&["train/x.png", "train/y.png", "validation/z.png", "validation/w.png"]);
    for name in ["z", "w"] {
        std::fs::write(b.path(&format!("f/validation/{name}.png")), &PICTURE[..60]).unwrap();
    }
    b.run(&["data", "check", "f"]).refused(&["f/validation", "none of 2 rows can be used"]);
    let keys = ["data_config.dataset=folder", "data_config.data_path=f", "trainer_config.max_iters=1"];
    b.train(&keys).refused(&["none of 2 rows to validate on can be used", "w.png", "data_config.val_split"]);
    assert!(!b.path("runs").exists());
    std::fs::write(b.path("f/validation/z.png"), PICTURE).unwrap();
    b.train(&keys).done();
    b.run(&["data", "check", "f"]).done();
}

/// Rows set apart by a ratio may be very few: that none of them can be used is told before the first step.
#[test]
fn rows_set_apart_that_are_of_no_use_are_told_of() {
    let told = |good_first: bool| {
        let b = Bench::new();
        let keys =
            with(&csv(&b, 1, 1), &["data_config.train_split_ratio=0.5", "data_config.max_skip_ratio=1"]);
        if !good_first {
            let text = std::fs::read_to_string(b.path("rows.csv")).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            std::fs::write(b.path("rows.csv"), [lines[0], lines[2], lines[1], ""].join("\n")).unwrap();
        }
        let said = b.train(&with(&keys, &["trainer_config.max_iters=1"]));
        let what = "warning: none of 1 row to validate on can be used";
        said.err.contains(what) && said.err.contains("there will be no validation loss") && said.ok
    };
    assert_ne!(told(true), told(false), "one of two rows is bad, and one of two validates");
}

/// One number for a row, whichever captions are chosen.
#[test]
fn a_row_has_one_number() {
    let b = folder(&["a.png", "b.png", "c.png"]);
    let lines = "a.png,one\na.png,two\nb.png,three\nb.png,four\nc.png,five\n";
    std::fs::write(b.path("f/metadata.csv"), format!("file_name,text\n{lines}")).unwrap();
    std::fs::write(b.path("f/b.png"), &PICTURE[..60]).unwrap();
    let place = json!("f/metadata.csv:4 (row 2)");
    let keys = [
        "data_config.dataset=folder",
        "data_config.data_path=f",
        "data_config.max_skip_ratio=1",
        "data_config.train_split_ratio=1",
        "data_config.endless=false",
        "trainer_config.max_iters=null",
        "trainer_config.epochs=1",
    ];
    b.train(&keys).done();
    let listed = &b.log("skipped.jsonl")[0];
    assert_eq!((&listed["row"], &listed["place"]), (&json!(2), &place));
    let found: Value = serde_json::from_str(&b.run(&["data", "check", "f", "--json"]).out).unwrap();
    let bad = &found["parts"][0]["bad"][0];
    assert_eq!((&bad["row"], &bad["place"]), (&json!(2), &place));
    let show = |index: &str| b.run(&["data", "show", "f", "--index", index, "--out", "x.png"]);
    show("2").refused(&["f/metadata.csv:4 (row 2)"]);
    show("4").done().mentions(&["row 4 of folder f/metadata.csv (3 pictures, 5 captions)", "caption: five"]);
    show("5").refused(&["has the rows 0 to 4"]);
}
