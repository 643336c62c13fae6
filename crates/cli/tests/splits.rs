//! Splits by the names of files and folders, through the real binary: no two are taken for one, nothing that is held out
//! is trained on, and what is left out is said; from the hub as from this machine.

mod support;

use ocelli_testkit::hub::{Repository, Server};
use support::{Bench, Said, TINY, said};

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
