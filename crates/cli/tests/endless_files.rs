//! Files that never end, and pipes that nobody writes to: refused at once, with little memory.
#![cfg(unix)]

mod support;

use support::{Bench, csv, with};

#[test]
fn a_pipe_in_the_place_of_data_is_refused_and_not_waited_for() {
    let b = Bench::new();
    assert!(std::process::Command::new("mkfifo").arg(b.path("pipe.csv")).status().unwrap().success());
    let preset = ["--config-name", "csv_train", "data_config.data_path=pipe.csv"];
    for dataset in ["csv", "tsv", "parquet", "folder"] {
        let dataset = format!("data_config.dataset={dataset}");
        b.train(&with(&preset, &[&dataset])).refused(&["pipe.csv", "plain file"]);
    }
}

#[test]
fn a_device_in_the_place_of_a_vocabulary_or_a_picture_is_refused() {
    let b = Bench::new();
    let base = csv(&b, 3, 0);
    b.train(&with(&base, &["data_config.vocab_path=/dev/zero"])).refused(&["/dev/zero", "not a file"]);
    b.train(&with(&base, &["trainer_config.max_iters=1"])).done();
    let snapshot = b.snapshots()[0].to_str().unwrap().to_owned();
    b.run(&["caption", "--snapshot", &snapshot, "/dev/zero"]).refused(&["/dev/zero", "too_many_bytes"]);
}
