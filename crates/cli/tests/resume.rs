//! Which snapshot a run goes on from, and what is said of the others, through the real binary.

#[path = "support/edit.rs"]
mod edit;
mod support;

use edit::edit;
use support::Bench;

/// CSV files of the project's own pictures: the same picture again with each of the captions.
fn csv(b: &Bench, name: &str, captions: &[&str]) {
    let inputs = include_str!("../../../images/inputs.csv");
    let picture = inputs.lines().nth(1).unwrap().split(',').next().unwrap();
    let rows: String = captions.iter().map(|caption| format!("{picture},{caption}\n")).collect();
    std::fs::write(b.path(name), format!("b64string_images,caption\n{rows}")).unwrap();
}

const ROWS: &[&str] = &[
    "--config-name",
    "csv_train",
    "data_config.vocab_path=auto",
    "data_config.endless=false",
    "data_config.train_split_ratio=1",
    "trainer_config.max_iters=null",
];

/// The newest snapshot of the newest run.
fn newest(b: &Bench) -> String {
    b.snapshots().last().unwrap().strip_prefix(b.dir.path()).unwrap().display().to_string()
}

#[test]
fn latest_takes_the_newest_that_fits_and_says_what_it_passes_over() {
    let b = Bench::new();
    csv(&b, "a.csv", &["a barn", "a big barn"]);
    csv(&b, "b.csv", &["the barn", "the big barn", "barns"]);
    let train = |more: &[&str]| b.train(&[ROWS, more].concat());
    let (a, other) = ("data_config.data_path=a.csv", "data_config.data_path=b.csv");
    train(&[a]).done();
    let first = newest(&b);
    train(&[other]).done();
    let second = newest(&b);
    train(&[a, "model_config.n_embd=32"]).done();
    let third = newest(&b);
    let latest = "trainer_config.snapshot_load_strategy=latest";
    let said = train(&[a, latest, "trainer_config.epochs=2"]).done();
    said.mentions(&[
        &format!("passed over: {third}: model_config.n_embd was 32, is 16"),
        &format!("passed over: {second}: data_config.data_path was \"b.csv\", is \"a.csv\""),
        &format!("going on from {first} (step 1, epoch 1)"),
        "done: 2 steps",
    ]);
    // Named outright, other data are refused.
    let resume = |more: &[&str]| train(&[&["--resume", &second][..], more].concat());
    resume(&[a]).refused(&[&second, "data_config.data_path was \"b.csv\", is \"a.csv\"", "init_from"]);
    // Moved data are the same data.
    std::fs::copy(b.path("b.csv"), b.path("moved.csv")).unwrap();
    resume(&["data_config.data_path=moved.csv", "trainer_config.epochs=2"])
        .done()
        .mentions(&["changed since: data_config.data_path was \"b.csv\", is \"moved.csv\""]);
}

#[test]
fn where_nothing_fits_the_newest_ones_differences_are_named() {
    let b = Bench::new();
    let train = |more: &[&str]| b.train(&[ROWS, &["data_config.data_path=a.csv"], more].concat());
    csv(&b, "a.csv", &["a barn", "a big barn"]);
    let latest = "trainer_config.snapshot_load_strategy=latest";
    train(&[latest]).done().mentions(&["no snapshot of this configuration yet: starting anew"]);
    train(&["trainer_config.epochs=2"]).done();
    let last = newest(&b);
    csv(&b, "a.csv", &["a barn", "a red barn"]);
    let before = b.snapshots().len();
    let changed = "the contents of a.csv changed";
    train(&[latest]).refused(
        &[&last, "the newest of 3 snapshots of 'csv_train'", changed, "to start anew leave"]
            .map(|part| if part.starts_with("to start") { "To start anew leave" } else { part }),
    );
    train(&["trainer_config.snapshot_load_strategy=0"]).refused(&["00_snapshot.safetensors", changed]);
    train(&["--resume", &last]).refused(&[&last, changed]);
    assert_eq!(b.snapshots().len(), before);
}

#[test]
fn a_missing_epoch_brings_what_all_runs_have() {
    let b = Bench::new();
    let rows = ["data_config.train_samples=4", "trainer_config.max_iters=null"];
    let ask = "trainer_config.snapshot_load_strategy=7";
    b.train(&[&rows[..], &[ask]].concat()).refused(&["no run of 'shapes' is there"]);
    b.train(&[&rows[..], &["trainer_config.epochs=3"]].concat()).done();
    b.train(&["data_config.train_samples=null", "trainer_config.max_iters=2"]).done();
    let said = b.train(&[&rows[..], &[ask]].concat()).refused(&[
        "no run of 'shapes' has 07_snapshot.safetensors",
        "trainer_config.snapshot_interval is null",
    ]);
    let lines: Vec<&str> = said.err.lines().filter(|l| l.starts_with("  runs/shapes-")).collect();
    assert_eq!(lines.len(), 2, "{}", said.err);
    assert!(
        lines[0].ends_with(": no end of an epoch; the newest is 00_0000002_snapshot.safetensors"),
        "{lines:?}"
    );
    assert!(lines[1].ends_with(": epochs 0 to 2"), "{lines:?}");
}

/// The end of an epoch is looked for as `latest` looks: in the same places, by the time of saving, and whether it fits.
#[test]
fn an_epoch_number_finds_what_latest_would() {
    let b = Bench::new();
    csv(&b, "a.csv", &["a barn", "a big barn"]);
    let shared = format!("trainer_config.snapshot_dir={}", b.path("shared").display());
    let data = "data_config.data_path=a.csv";
    let train = |more: &[&str]| b.train(&[ROWS, &[data, &shared], more].concat());
    train(&["trainer_config.run_dir=first"]).done();
    let first = b.snapshots().pop().unwrap();
    train(&["trainer_config.run_dir=second"]).done();
    let second = b.snapshots().pop().unwrap();
    train(&["trainer_config.run_dir=second", "model_config.n_embd=32"]).done();
    let other = b.snapshots().pop().unwrap();
    // Under a third root there is no run at all.
    let ask = |strategy: &str| {
        let strategy = format!("trainer_config.snapshot_load_strategy={strategy}");
        train(&[&strategy, "trainer_config.run_dir=third", "trainer_config.max_iters=1"]).done().out
    };
    for newest in [&second, &first] {
        for strategy in ["0", "latest"] {
            let out = ask(strategy);
            let going = format!("going on from {} (step 1, epoch 1)", newest.display());
            assert!(out.contains(&going), "{going} not in {out}");
            let passed = format!("passed over: {}: model_config.n_embd was 32, is 16", other.display());
            assert_eq!(out.contains(&passed), newest == &second, "{out}");
        }
        // Saved later, whatever the names of the runs say.
        edit(&first, |meta| meta["saved_unix_ms"] = serde_json::json!(9_000_000_000_000_u64));
    }
    let wide = ["trainer_config.snapshot_load_strategy=0", "model_config.n_embd=8"];
    train(&wide)
        .refused(&["the newest of 3 snapshots of 'csv_train' at the end of epoch 0", "n_embd was 16, is 8"]);
}

#[test]
fn weights_come_from_a_folder_too_and_other_sizes_are_named() {
    let b = Bench::new();
    b.train(&["trainer_config.max_iters=4", "trainer_config.snapshot_interval=2"]).done();
    let run = b.run_folder();
    let init = |path: &std::path::Path| format!("model_config.init_from={}", path.display());
    let train = |path: &std::path::Path, more: &[&str]| {
        b.train(
            &[&["trainer_config.max_iters=1", "trainer_config.run_dir=other", &init(path)], more].concat(),
        )
    };
    for path in [run.clone(), run.join("snapshots"), run.join("snapshots/00_0000004_snapshot.safetensors")] {
        train(&path, &[]).done().mentions(&["weights: ", "00_0000004_snapshot.safetensors"]);
    }
    train(&run, &["model_config.n_embd=32", "model_config.n_layer=2", "model_config.patch_size=4"]).refused(
        &[
            "00_0000004_snapshot.safetensors",
            "model_config.n_embd is 32 here, 16 in the file",
            "model_config.n_layer is 2 here, 1 in the file",
            "model_config.patch_size is 4 here, 8 in the file",
        ],
    );
    train(&run, &["model_config.n_head=4"]).done().mentions(&["model_config.n_head was 2, is 4"]);
    std::fs::write(run.join("snapshots/00_0000009_snapshot.safetensors"), b"damaged").unwrap();
    train(&run, &[]).done().mentions(&["warning: ", "00_0000009", "weights: "]);
    std::fs::create_dir(b.path("empty")).unwrap();
    train(&b.path("empty"), &[]).refused(&["empty: there is no snapshot in this folder"]);
}

#[test]
fn more_steps_than_can_be_counted_are_refused() {
    let b = Bench::new();
    let rows = ["data_config.train_samples=8", "trainer_config.max_iters=null"];
    let many = [&rows[..], &["trainer_config.epochs=8388609"]].concat();
    b.train(&many).refused(&["trainer_config.epochs 8388609", "16777218 steps", "16777216", "max_iters"]);
    assert!(!b.path("runs").exists());
    b.train(&[&many[..], &["trainer_config.max_iters=2"]].concat()).done();
}

/// Kernels chosen by measuring decide the last bits: a run that goes on with others says so. The CPU has none.
#[test]
fn another_tuning_is_told() {
    let b = Bench::new();
    b.train(&["trainer_config.max_iters=2"]).done();
    let snapshot = b.snapshots().pop().unwrap();
    let on = ["train", "--resume", snapshot.to_str().unwrap(), "trainer_config.max_iters=3"];
    let on = [&on[..], &["trainer_config.device=cpu"]].concat();
    let quiet = b.run(&on).done();
    assert!(!quiet.out.contains("measured kernels"), "{}", quiet.out);
    edit(&snapshot, |meta| meta["tuning_hash"] = "3:0123456789abcdef".into());
    b.run(&on).done().mentions(&[
        "changed since: the snapshot was made with measured kernels (3:0123456789abcdef)",
        "now there are no measured ones (trainer_config.autotune)",
    ]);
}
