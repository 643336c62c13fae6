//! The exact text of every kind of message: what a person reads is part of the interface.

use ocelli_config::{Config, load_text};

/// The message for a file `my.yaml` and overrides.
fn message(text: &str, overrides: &[&str]) -> String {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    load_text("my.yaml", text, &overrides).expect_err("must not load").to_string()
}

/// The message for one line under `trainer_config`, with its place cut off.
fn trainer(line: &str) -> String {
    let message = message(&format!("trainer_config:\n  {line}\n"), &[]);
    message.strip_prefix("my.yaml:2:3: trainer_config.").expect("place and key").to_owned()
}

#[test]
fn unknown_keys_name_the_nearest() {
    assert_eq!(trainer("epoch: 1"), "epoch: unknown key; did you mean trainer_config.epochs?");
    assert_eq!(
        trainer("batch_size: 1"),
        "batch_size: unknown key; did you mean trainer_config.train_batch_size?"
    );
    assert_eq!(trainer("n_embd: 1"), "n_embd: unknown key; did you mean model_config.n_embd?");
    let group = message("", &["+db=mysql"]);
    assert!(group.contains("db: unknown key; config groups are not supported"), "{group}");
    assert_eq!(trainer("zzzzzz: 1"), "zzzzzz: unknown key; `ocelli config --help` lists every key");
    assert_eq!(
        message("data_path: x", &[]),
        "my.yaml:1:1: data_path: unknown key; did you mean data_config.data_path?"
    );
    assert_eq!(message("model: {}", &[]), "my.yaml:1:1: model: unknown key; did you mean model_config?");
    assert_eq!(
        message("trainer_config.lr: 1", &[]),
        "my.yaml:1:1: trainer_config.lr: unknown key; write it as `lr:` under `trainer_config:`"
    );
}

#[test]
fn wrong_types_say_what_was_expected_and_found() {
    assert_eq!(trainer("epochs: many"), "epochs: expected an integer, found the text \"many\"");
    assert_eq!(trainer("epochs: 1.5"), "epochs: expected an integer, found the number 1.5");
    assert_eq!(
        trainer("epochs: '3'"),
        "epochs: expected an integer, found the text \"3\"; take the quotes away"
    );
    assert_eq!(trainer("max_iters: true"), "max_iters: expected an integer or null, found the boolean true");
    assert_eq!(trainer("lr:"), "lr: expected a number, found null");
    assert_eq!(trainer("lr: [1]"), "lr: expected a number, found a list");
    assert_eq!(trainer("lr: {a: 1}"), "lr: expected a number, found a mapping");
    assert_eq!(trainer("tf32: yes"), "tf32: expected true or false, found the text \"yes\"; write true");
    assert_eq!(trainer("tf32: 0"), "tf32: expected true or false, found the number 0; write false");
    assert_eq!(
        trainer("run_dir: false"),
        "run_dir: expected text, found the boolean false; put it in quotes, on the command line as 'trainer_config.run_dir=\"false\"'"
    );
    assert_eq!(
        trainer("snapshot_load_strategy: last"),
        "snapshot_load_strategy: expected latest or an epoch number or null, found the text \"last\""
    );
    assert_eq!(
        message("trainer_config: 3", &[]),
        "my.yaml:1:17: trainer_config: expected keys with values under it, found the number 3"
    );
    assert_eq!(
        message("[]", &[]),
        "my.yaml:1:1: expected the groups model_config, data_config, trainer_config with keys under them, found a list"
    );
}

#[test]
fn ranges_are_named() {
    assert_eq!(trainer("epochs: 0"), "epochs: must be between 1 and 1000000000000, found 0");
    assert_eq!(trainer("threads: 0"), "threads: must be between 1 and 1024, found 0");
    assert_eq!(trainer("seed: -1"), "seed: must be between 0 and 18446744073709551615, found -1");
    assert_eq!(trainer("lr: 0"), "lr: must be finite and above 0, found 0");
    assert_eq!(trainer("lr: .inf"), "lr: must be finite and above 0, found .inf");
    assert_eq!(trainer("lr: nan"), "lr: must be finite and above 0, found nan");
    assert_eq!(trainer("lr: 1e999"), "lr: must be finite and above 0, found 1e999");
    assert_eq!(
        trainer("lr: 1e-50"),
        "lr: must be finite and above 0, found 1e-50, which is 0 when rounded to 32 bits: make it larger"
    );
    assert_eq!(
        trainer("eps: 1e39"),
        "eps: must be finite and above 0, found 1e39, which is infinite when rounded to 32 bits: make it smaller"
    );
    assert_eq!(trainer("lr: -1e-50"), "lr: must be finite and above 0, found -1e-50");
    assert_eq!(trainer("weight_decay: -1"), "weight_decay: must be finite and not below 0, found -1");
    assert_eq!(trainer("beta1: 1"), "beta1: must be at least 0 and below 1, found 1");
    assert_eq!(
        trainer("optimizer: adamv"),
        "optimizer: must be adam or adamw, found the text \"adamv\"; did you mean adamw?"
    );
    assert_eq!(trainer("run_dir: ''"), "run_dir: must be not empty, found the text \"\"");
    assert_eq!(
        trainer("run_dir: \"a\\nb\""),
        "run_dir: must be without control characters such as line breaks, found the text \"a\\nb\""
    );
    assert_eq!(
        message("data_config:\n  train_split_ratio: 0", &[]),
        "my.yaml:2:3: data_config.train_split_ratio: must be above 0 and at most 1, found 0"
    );
    assert_eq!(
        message("data_config:\n  max_skip_ratio: 2", &[]),
        "my.yaml:2:3: data_config.max_skip_ratio: must be between 0 and 1, found 2"
    );
    let digits = "9".repeat(200);
    assert_eq!(
        trainer(&format!("seed: {digits}")),
        format!("seed: must be between 0 and 18446744073709551615, found {}...", &digits[..60])
    );
}

#[test]
fn broken_files_are_placed() {
    assert_eq!(
        message("trainer_config:\n  lr: 1\n  tf32: true\n  lr: 2\n", &[]),
        "my.yaml:4:3: trainer_config.lr: set twice; first at line 2, column 3"
    );
    assert_eq!(
        message("model_config: {}\nmodel_config: {}\n", &[]),
        "my.yaml:2:1: model_config: set twice; first at line 1, column 1"
    );
    let cut = message("trainer_config:\n  lr: [1\n", &[]);
    assert_eq!(cut, "my.yaml:2:7: not valid YAML: unclosed bracket '['");
    for (text, expected) in [
        ("a: &x 1\nb: *x\n", "my.yaml:2:4: aliases (*name) are not supported; write ${group.key}"),
        ("a: !!int 1\n", "my.yaml:1:4: the tag !!int is not supported; write the value alone"),
        ("{}\n---\n{}\n", "my.yaml:2:1: a second document (---) in one file is not supported"),
        ("[1]: 2\n", "my.yaml:1:1: a key must be plain text, not a list or a mapping"),
        ("hydra: {}\n", "my.yaml:1:1: hydra: hydra.* settings are not supported"),
        (
            "defaults: []\n",
            "my.yaml:1:1: defaults: defaults lists and config groups are not supported; \
             write the values into one file",
        ),
    ] {
        assert_eq!(message(text, &[]), expected, "{text}");
    }
}

/// Overrides that do not go together, and the end of the message.
const CONFLICTS: &[(&[&str], &str)] = &[
    (
        &["data_config.revision=v2"],
        "column 22: data_config.revision: revision is v2, but dataset shapes is not fetched from the hub: leave it null",
    ),
    (
        &["model_config.img_size=50"],
        "column 23: model_config.img_size: img_size 50 is not a multiple of patch_size 16: \
             patches must fill the picture",
    ),
    (
        &["model_config.image_embed_dim=100"],
        "column 30: model_config.image_embed_dim: image_embed_dim 100 is not a multiple of n_head 8: \
             every head takes an equal part of the vision width",
    ),
    (
        &["model_config.n_embd=100"],
        "column 21: model_config.n_embd: n_embd 100 is not a multiple of n_head 8: \
             every head takes an equal part of the text width",
    ),
    (
        &["data_config.max_seq_length=1000"],
        "column 28: data_config.max_seq_length: max_seq_length 1000 needs 1001 positions (one is the \
             image), but model_config.max_positions is 1000: set model_config.max_positions=1001, or at most \
             max_seq_length=999",
    ),
    (
        &["data_config.padding=max_length"],
        "column 21: data_config.padding: padding max_length needs a number in \
             data_config.max_seq_length, which is null",
    ),
    (
        &["data_config.dataset=csv"],
        "column 21: data_config.data_path: data_path is null, but dataset csv is read from there: set it",
    ),
    (
        &["data_config.endless=true"],
        "column 21: trainer_config.max_iters: max_iters is null, but data_config.endless is true: \
             the run would never end",
    ),
    (
        &["data_config.train_samples=null"],
        "column 27: trainer_config.max_iters: max_iters is null, and so is data_config.train_samples: \
             the run would never end; set one of them",
    ),
    (
        &["model_config.n_layer=1000", "model_config.n_embd=8192"],
        "column 21: model_config.n_embd: the model would have 805424199168 parameters, more than the \
             limit of 10000000000; make it smaller",
    ),
    (
        &["model_config.img_size=16384", "model_config.patch_size=128", "trainer_config.eval_batch_size=1"],
        "column 23: trainer_config.train_batch_size: train_batch_size 32 pictures of img_size 16384 take \
             25769803776 bytes, more than the limit of 17179869184",
    ),
    (
        &["trainer_config.beta2=1.0"],
        "column 22: trainer_config.beta2: must be at least 0 and below 1, found 1.0",
    ),
];

#[test]
fn sizes_that_do_not_go_together_are_refused_with_their_numbers() {
    for (overrides, expected) in CONFLICTS {
        let message = message("", overrides);
        assert!(message.ends_with(expected), "{message}\n{expected}");
        assert!(!message.contains('\n'), "{message}");
    }
}

#[test]
fn what_is_not_there_yet_says_so() {
    for (value, expected) in [
        ("trainer_config.use_wandb=true", "use_wandb true is not there yet; only false is"),
        ("trainer_config.profiler_mode=trace", "profiler_mode trace is not there yet; only null is"),
        ("trainer_config.zero=2", "zero 2 is not there yet; only 0 is"),
    ] {
        let file = "data_config:\n  data_path: x\n";
        let resolved = ocelli_config::load_stored("kept.yaml", file, &[value.to_owned()]).unwrap();
        let error = resolved.for_training().unwrap_err().to_string();
        assert!(error.ends_with(expected) && error.starts_with("override '"), "{error}");
    }
    let fine = ["trainer_config.wandb_project=mine".to_owned(), "trainer_config.zero=0".to_owned()];
    load_text("my.yaml", "", &fine).unwrap().for_training().unwrap();
}

#[test]
fn all_problems_are_reported_at_once_in_order() {
    let text = "model_config:\n  n_embd: 100\n  n_layr: 2\ndata_config:\n  endless: on\n";
    let overrides = ["foo", "trainer_config.lr=-1", "trainer_config.zero=1"];
    assert_eq!(
        message(text, &overrides),
        "the configuration has 6 problems:\n  \
         my.yaml:2:3: model_config.n_embd: n_embd 100 is not a multiple of n_head 8: \
         every head takes an equal part of the text width\n  \
         my.yaml:3:3: model_config.n_layr: unknown key; did you mean model_config.n_layer?\n  \
         my.yaml:5:3: data_config.endless: expected true or false, found the text \"on\"; write true\n  \
         override 'foo', column 4: expected `=` and a value: write key=value\n  \
         override 'trainer_config.lr=-1', column 19: trainer_config.lr: must be finite and above 0, found -1\n  \
         override 'trainer_config.zero=1', column 21: trainer_config.zero: zero 1 is not there yet; only 0 is"
    );
}

#[test]
fn a_broken_file_does_not_hide_broken_overrides() {
    let message = message("a: [", &["trainer_config.lrr=1", "data_config.dataset=csv", "~trainer_config.lr"]);
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 3, "{message}");
    assert!(lines[1].contains("not valid YAML"), "{message}");
    assert!(
        lines[2].ends_with("trainer_config.lrr: unknown key; did you mean trainer_config.lr?"),
        "{message}"
    );
}

#[test]
fn stored_configurations_are_checked_like_files() {
    let json = |text: &str| Config::from_json(text).unwrap_err().to_string();
    assert_eq!(
        json(r#"{"model_config": {"n_embd": 100, "x": 1}}"#),
        "the configuration has 2 problems:\n  \
         stored configuration:1:1: model_config.x: unknown key; `ocelli config --help` lists every key\n  \
         stored configuration:1:1: model_config.n_embd: n_embd 100 is not a multiple of n_head 8: \
         every head takes an equal part of the text width"
    );
    assert!(json("{").starts_with("stored configuration:1:1: not valid JSON: "), "{}", json("{"));
    let older = Config::from_json(r#"{"trainer_config": {"lr": 0.5}}"#).unwrap();
    assert_eq!(older.trainer.lr, 0.5);
    assert_eq!(older.model, Config::default().model);

    let mut changed = Config::default();
    changed.trainer.lr = f64::NAN;
    assert_eq!(
        changed.validate().unwrap_err().to_string(),
        "stored configuration:1:1: trainer_config.lr: expected a number, found null"
    );
}

#[test]
fn a_path_to_data_that_would_never_be_opened_is_refused() {
    let refused = "data_config.data_path: data_path is my.csv, but dataset shapes draws its pictures and opens no \
                   file: set data_config.dataset=csv to train on yours";
    let set = "data_config.data_path=my.csv";
    assert_eq!(message("{}", &[set]), format!("override '{set}', column 23: {refused}"));
    let own = "data_config:\n  data_path: my.csv\n";
    assert_eq!(message(own, &[]), format!("my.yaml:2:3: {refused}"));
    for overrides in [&["data_config.dataset=csv"][..], &["data_config.data_path=null"]] {
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        load_text("my.yaml", own, &overrides).unwrap();
    }
    // What an earlier run kept is not the user's doing.
    ocelli_config::load_stored("kept.yaml", own, &[]).unwrap();
}
