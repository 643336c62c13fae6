//! A run that goes on in the middle of an epoch takes the batches that it would have taken: every kind of source, rows in
//! every order, any number of workers. Through the real binary: loss, gradient and weight of each step are the same to the
//! last digit.

#[path = "support/sources.rs"]
mod sources;
mod support;

use serde_json::Value;
use sources::{Row, dataset};
use support::Bench;

/// Pictures of one colour each, captions of many lengths.
fn rows() -> Vec<Row> {
    let picture = |i: u8| ocelli_data::image::png(&[5 * i; 48], 4).unwrap();
    let caption = |i: u8| "a dot ".repeat(1 + usize::from(i * 7 % 11)) + &i.to_string();
    (0..46).map(|i| Row { picture: picture(i), caption: caption(i) }).collect()
}

/// Each step of the only run in a folder.
fn steps(b: &Bench, folder: &str) -> Vec<Value> {
    let runs: Vec<_> = std::fs::read_dir(b.path(folder)).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    let text = std::fs::read_to_string(runs[0].join("metrics.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["kind"] == "step").collect()
}

#[test]
fn the_next_batch_is_the_same() {
    let orders: [&[&str]; 4] = [
        &["trainer_config.epochs=2"],
        &["trainer_config.epochs=2", "data_config.bucket=true"],
        &["trainer_config.epochs=2", "data_config.shuffle=window", "data_config.shuffle_window=12"],
        &[
            "data_config.bucket=true",
            "data_config.shuffle=window",
            "data_config.shuffle_window=12",
            "data_config.endless=true",
        ],
    ];
    for kind in ["rows.csv", "rows.tsv", "rows.parquet", "rows.tar", "beside", "shapes"] {
        let path = format!("data_config.data_path={kind}");
        for order in orders {
            let b = Bench::new();
            let data: Vec<&str> = if kind == "shapes" {
                vec!["data_config.train_samples=46"]
            } else {
                sources::write(&b, kind, &rows());
                vec![dataset(kind), &path, "data_config.vocab_path=auto", "data_config.train_split_ratio=0.9"]
            };
            let train = |folder: &str, more: &[&str]| {
                let folder = format!("trainer_config.run_dir={folder}");
                let common = ["trainer_config.lr=0.01", "trainer_config.log_interval=1", &folder];
                b.train(&[&common[..], &data, order, more].concat()).done()
            };
            let said = train("whole", &["trainer_config.max_iters=16", "data_config.num_workers=2"]);
            assert_eq!(
                [said.out, said.err].concat().contains("without data_config.bucket"),
                order.contains(&"data_config.bucket=true")
            );
            let whole = steps(&b, "whole");
            assert_eq!(whole.len(), 16, "{kind} {order:?}");
            train("first", &["trainer_config.max_iters=5", "data_config.num_workers=0"]);
            let snapshot = b.snapshots().last().unwrap().display().to_string();
            train(
                "rest",
                &["--resume", &snapshot, "trainer_config.max_iters=16", "data_config.num_workers=3"],
            );
            assert_eq!([steps(&b, "first"), steps(&b, "rest")].concat(), whole, "{kind} {order:?}");
        }
    }
}
