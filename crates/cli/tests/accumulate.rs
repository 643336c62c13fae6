//! `trainer_config.grad_accum` through the real binary.

mod support;

use support::{Bench, csv, rows, with};

/// The text of a 1x1 PNG in base64.
const DOT: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGPg5OQEAAA6ABztCJuOAAAAAElFTkSuQmCC";

/// Loss and gradient norm of each step, and how many there were.
fn steps(b: &Bench) -> Vec<(f64, f64)> {
    let lines = b.log("metrics.jsonl");
    let steps = lines.iter().filter(|l| l["kind"] == "step");
    steps.map(|l| (l["loss"].as_f64().unwrap(), l["grad_norm"].as_f64().unwrap())).collect()
}

fn same(a: &[(f64, f64)], b: &[(f64, f64)]) -> bool {
    let near = |x: f64, y: f64| (x - y).abs() < 1e-4 * x.abs();
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| near(a.0, b.0) && near(a.1, b.1))
}

#[test]
fn several_small_batches_are_one_large_one_with_dropout_too() {
    let common = ["trainer_config.max_iters=5", "trainer_config.lr=0.01", "model_config.dropout=0.2"];
    let run = |batch: &str, accum: &str| {
        let b = Bench::new();
        b.train(&with(&common, &[batch, accum])).done().mentions(&["done: 5 steps"]);
        steps(&b)
    };
    let one = run("trainer_config.train_batch_size=8", "trainer_config.grad_accum=1");
    let four = run("trainer_config.train_batch_size=2", "trainer_config.grad_accum=4");
    let other = run("trainer_config.train_batch_size=4", "trainer_config.grad_accum=1");
    assert!(same(&one, &four), "{one:?}\n{four:?}");
    assert!(!same(&one, &other));
}

/// The published loss counts padding: in batches of two the captions of a step must get the length that they have in
/// one batch, the last and shorter step of an epoch included.
#[test]
fn several_small_batches_are_one_large_one_where_padding_counts() {
    let caption =
        |i: usize| "a dot and a dot and a dot and a dot".chars().take(3 + 5 * (i % 7)).collect::<String>();
    let run = |padding: &str, batch: &str, accum: &str| {
        let b = Bench::new();
        let lines: Vec<String> = (0..14).map(|i| format!("{DOT},{}", caption(i))).collect();
        let lines: Vec<&str> = lines.iter().map(|l| &l[..]).collect();
        let whole = ["data_config.loss=published", "data_config.endless=false", "trainer_config.epochs=2"];
        let longest = "data_config.max_seq_length=40";
        let sizes =
            [padding, longest, batch, accum, "trainer_config.max_iters=null", "trainer_config.use_amp=false"];
        b.train(&with(&rows(&b, &lines), &with(&whole, &sizes))).done().mentions(&["done: 4 steps"]);
        steps(&b)
    };
    for padding in ["data_config.padding=longest", "data_config.padding=max_length"] {
        let one = run(padding, "trainer_config.train_batch_size=8", "trainer_config.grad_accum=1");
        let four = run(padding, "trainer_config.train_batch_size=2", "trainer_config.grad_accum=4");
        assert!(same(&one, &four), "{padding}\n{one:?}\n{four:?}");
    }
}

/// 10 rows in batches of 3 are 3 + 3 + 3 + 1: two steps an epoch, the second over 4 rows; in batches of 5 the same
/// rows are two steps of 5, so only counts agree.
#[test]
fn an_epochs_last_step_may_have_fewer_batches_and_a_resume_goes_on_between_steps() {
    let whole =
        ["data_config.endless=false", "data_config.train_split_ratio=1", "trainer_config.max_iters=null"];
    let accum =
        ["trainer_config.train_batch_size=3", "trainer_config.grad_accum=2", "trainer_config.epochs=3"];
    let b = Bench::new();
    let base = with(&csv(&b, 10, 0), &with(&whole, &accum));
    b.train(&base).done().mentions(&["done: 6 steps, 30 samples", "step 6/6"]);
    let straight = steps(&b);

    let b = Bench::new();
    let base = with(&csv(&b, 10, 0), &with(&whole, &accum));
    b.train(&with(&base, &["trainer_config.snapshot_interval=1"])).done();
    let third = b.snapshots().into_iter().find(|p| p.ends_with("01_0000003_snapshot.safetensors")).unwrap();
    b.run(&["train", "--resume", third.to_str().unwrap(), "trainer_config.run_dir=resumed"]).done();
    let resumed = std::fs::read_dir(b.path("resumed")).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(resumed.join("metrics.jsonl")).unwrap();
    let lines = text.lines().map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap());
    let losses: Vec<f64> =
        lines.filter(|l| l["kind"] == "step").map(|l| l["loss"].as_f64().unwrap()).collect();
    assert_eq!(losses, straight[3..].iter().map(|s| s.0).collect::<Vec<_>>());
}
