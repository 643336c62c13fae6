//! `ocelli bench data` through the real binary.

mod support;

use support::{Bench, csv};

#[test]
fn a_source_is_timed_stage_by_stage() {
    let b = Bench::new();
    csv(&b, 5, 1);
    let table = "rows.csv";
    let workers = "data_config.num_workers=2";
    let said = b.run(&["bench", "data", table, workers, "--epochs", "3", "--json"]).done();
    let found: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let epochs = found["epochs"].as_array().unwrap();
    assert_eq!((epochs.len(), found["workers"].as_u64()), (6, Some(2)));
    for (i, epoch) in epochs.iter().enumerate() {
        assert_eq!(epoch["cached"], i >= 3);
        assert_eq!((epoch["images"].as_u64(), epoch["skipped"].as_u64()), (Some(5), Some(1)));
        assert!(epoch["images_per_s"].as_f64().unwrap() > 0.0);
        let stages = epoch["stages"].as_object().unwrap();
        assert_eq!(stages.keys().collect::<Vec<_>>(), ["collate", "decode", "read", "resize"]);
        let taken = |(name, s): (&String, &serde_json::Value)| {
            let decodes = ["decode", "resize"].contains(&&name[..]);
            (s["seconds"].as_f64().unwrap() > 0.0) == (i < 3 || !decodes)
        };
        assert!(stages.iter().all(taken), "{stages:?}");
    }
    let parts = [
        "epoch 2: 5 images in",
        "epoch 4 (from a cache): 5 images in",
        "  decode ",
        "skipped: 1 row",
        "2 workers",
    ];
    b.run(&["bench", "data", table, workers]).done().mentions(&parts);
    b.run(&["bench", "data", "shapes", "data_config.train_samples=40", "data_config.num_workers=auto"])
        .done()
        .mentions(&["epoch 1: 40 images in", "from a cache: not measured"]);
}

#[test]
fn what_cannot_be_timed_is_said() {
    let b = Bench::new();
    b.run(&["bench", "data", "none.csv"]).refused(&["none.csv"]);
    b.run(&["bench", "data", "a.csv", "b.csv"]).refused(&["one source is timed at a time, not 2"]);
    let workers = "data_config.num_workers=many";
    b.run(&["bench", "data", "shapes", workers]).refused(&["num_workers", "an integer or auto"]);
}
