//! `ocelli eval`, through the real binary.

#[cfg(unix)]
#[path = "support/pty.rs"]
mod pty;
mod support;

use serde_json::Value;
use std::path::Path;
use support::{Bench, Said, with};

/// The text of a 1x1 PNG in base64.
const DOT: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGPg5OQEAAA6ABztCJuOAAAAAElFTkSuQmCC";

/// A trained tiny model: its run folder.
fn trained(b: &Bench, args: &[&str]) -> (String, Said) {
    let said = b.train(&with(&["trainer_config.max_iters=4"], args)).done();
    (b.run_folder().to_str().unwrap().to_owned(), said)
}

/// Standard output as one JSON object.
#[track_caller]
fn figures(said: &Said) -> Value {
    assert_eq!(said.out.lines().count(), 1, "{}", said.out);
    serde_json::from_str(&said.out).unwrap()
}

/// The last validation loss that a run wrote down.
fn validated(b: &Bench) -> f64 {
    let lines = b.log("metrics.jsonl");
    lines.iter().rfind(|l| l["kind"] == "validation").unwrap()["loss"].as_f64().unwrap()
}

/// A CSV table with `n` rows of a dot.
fn table(path: &Path, n: usize) {
    let rows: String =
        (0..n).map(|i| format!("{},a dot number {}\n", support::unlike(DOT, i), i % 7)).collect();
    std::fs::write(path, format!("b64string_images,caption\n{rows}")).unwrap();
}

#[test]
fn drawn_pictures_have_the_loss_and_the_attributes_that_training_reported() {
    let b = Bench::new();
    let (run, told) = trained(&b, &[]);
    let said = b.run(&["eval", "--snapshot", &run, "--json"]).done();
    let e = figures(&said);
    assert_eq!(e["loss"].as_f64().unwrap(), validated(&b));
    assert_eq!(e["perplexity"].as_f64().unwrap(), validated(&b).exp());
    assert_eq!((&e["rows"], &e["pictures"], &e["step"]), (&6.into(), &6.into(), &4.into()));
    let right = 100.0 * e["attributes"]["right"].as_f64().unwrap();
    let line = format!("attributes named right on 6 held-out pictures: {right:.1}%");
    assert!(told.out.contains(&line), "{line}\n{}", told.out);
    let text = b.run(&["eval", "--snapshot", &run]).done().mentions(&["exact match", "CIDEr", "ROUGE-L"]);
    let loss = format!("loss {:.4}, perplexity {:.4}: ", validated(&b), validated(&b).exp());
    assert!(text.out.contains(&loss) && text.out.contains(&line), "{}", text.out);
    // No result depends on the number of threads.
    let one = b.run(&["eval", "--snapshot", &run, "--json", "--threads", "1"]).done();
    let two = b.run(&["eval", "--snapshot", &run, "--json", "--threads", "2"]).done();
    assert_eq!((one.out, &two.out), (two.out.clone(), &said.out));
}

#[test]
fn rows_set_apart_have_the_loss_that_training_reported() {
    for loss in ["published", "masked"] {
        let b = Bench::new();
        table(&b.path("rows.csv"), 11);
        let loss = format!("data_config.loss={loss}");
        let csv =
            ["--config-name", "csv_train", "data_config.data_path=rows.csv", "data_config.vocab_path=auto"];
        let (run, _) = trained(&b, &with(&csv, &["data_config.train_split_ratio=0.5", &loss]));
        let said = b.run(&["eval", "--snapshot", &run, "--json"]).done();
        let e = figures(&said);
        assert_eq!(e["loss"].as_f64().unwrap(), validated(&b), "{loss}");
        assert_eq!((&e["attributes"], &e["rows"]), (&Value::Null, &5.into()));
        assert_eq!(said.err, "");
        // Rows of one picture, wherever they stand, are its captions.
        let shown = |i, caption: &str| format!("{},{caption}\n", support::unlike(DOT, i));
        let rows =
            [shown(0, "a dot"), shown(1, "a tone"), shown(0, "a red dot"), shown(0, "one dot")].concat();
        std::fs::write(b.path("again.csv"), format!("b64string_images,caption\n{rows}")).unwrap();
        let again = figures(&b.run(&["eval", "--snapshot", &run, "again.csv", "--json"]).done());
        assert_eq!(
            (&again["rows"], &again["pictures"], &again["references"]),
            (&4.into(), &2.into(), &4.into())
        );
        // The rows that were trained on, as other data.
        b.run(&["eval", "--snapshot", &run, "rows.csv", "--json"])
            .done()
            .mentions(&["\"rows\":11", "warning: the model was trained on rows of these very data"]);
        b.run(&["eval", "--snapshot", &run, "data_config.train_split_ratio=1"])
            .refused(&["no rows to validate on", "SOURCE"]);
        table(&b.path("rows.csv"), 12);
        b.run(&["eval", "--snapshot", &run]).done().mentions(&["warning: the data changed since"]);
    }
}

/// A folder with three pictures: of two and one captions, and one that is no picture.
fn folder(b: &Bench, name: &str) {
    let picture = include_bytes!("../../data/tests/cases/03_alpha_palette_grey/grey_L.png");
    let folder = b.path(name);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("a.png"), picture).unwrap();
    std::fs::write(folder.join("b.png"), picture).unwrap();
    std::fs::write(folder.join("c.png"), "<!doctype html><p>not found").unwrap();
    let rows = "a.png,big red circle top left\na.png,big red star top left\nb.png,small blue star\nc.png,big red star\n";
    std::fs::write(folder.join("metadata.csv"), format!("file_name,text\n{rows}")).unwrap();
}

#[test]
fn a_folder_after_a_run_on_a_table_is_told_as_that() {
    let b = Bench::new();
    let rows: String = (0..6).map(|i| format!("{},a dot number {i}\n", support::unlike(DOT, i))).collect();
    std::fs::write(b.path("rows.csv"), format!("shot,words\n{rows}")).unwrap();
    let own = ["data_config.image_col=shot", "data_config.caption_col=words", "data_config.vocab_path=auto"];
    let csv = with(&["--config-name", "csv_train", "data_config.data_path=rows.csv"], &own);
    let (run, _) = trained(&b, &csv);
    folder(&b, "mine");
    let eval =
        ["eval", "--snapshot", &run, "mine", "data_config.unknown=replace", "data_config.max_skip_ratio=0.5"];
    b.run(&eval).refused(&[
        "no column `shot`",
        "The run was on dataset csv with data_config.image_col=shot data_config.caption_col=words; this source is read \
         as dataset folder",
    ]);
    b.run(&with(&eval, &["data_config.image_col=null", "data_config.caption_col=null"])).done();
    // Of the same kind it is the column alone.
    std::fs::write(b.path("other.csv"), "picture,text\nAAAA,a\n").unwrap();
    let said = b.run(&["eval", "--snapshot", &run, "other.csv"]).refused(&["no column `shot`"]);
    assert!(!said.err.contains("The run was on"), "{}", said.err);
}

#[test]
fn other_data_with_several_captions_and_a_bad_row() {
    let b = Bench::new();
    let (run, _) = trained(&b, &[]);
    folder(&b, "mine");
    let run = |more: &[&str]| {
        b.run(&with(&["eval", "--snapshot", &run, "mine", "data_config.max_skip_ratio=0.5"], more))
    };
    let first = figures(&run(&["--json", "--out", "new/captions.jsonl"]).done());
    assert_eq!((&first["rows"], &first["pictures"], &first["references"]), (&3.into(), &2.into(), &3.into()));
    assert_eq!(first["skipped"]["not_an_image"], 1);
    assert_eq!(first["bad"][0]["row"], 3);
    let text = std::fs::read_to_string(b.path("new/captions.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(
        lines[0]["references"],
        serde_json::json!(["big red circle top left", "big red star top left"])
    );
    assert_eq!((lines.len(), &lines[2]["error"]["reason"]), (3, &"not_an_image".into()));
    assert!(lines[1]["caption"].is_string() && lines[1]["log_probability"].as_f64().unwrap() < 0.0);
    // Each caption counts in the loss, each picture is captioned once.
    let all = figures(&run(&["--json", "data_config.caption_choice=all"]).done());
    assert_eq!((&all["rows"], &all["pictures"], &all["references"]), (&4.into(), &2.into(), &3.into()));
    for key in ["bleu", "cider", "rouge_l", "exact_match"] {
        assert_eq!(all[key], first[key], "{key}");
    }
    assert!(all["tokens"].as_f64() > first["tokens"].as_f64());
    run(&[]).done().mentions(&[
        "2 pictures, 3 references",
        "skipped samples: 1 not_an_image",
        "metadata.csv:5 (row 3)",
        "4 captions of 3 pictures: the loss uses the first of each",
    ]);
    assert_eq!(figures(&run(&["--json", "--limit", "1"]).done())["rows"], 1);
    // More bad rows than are borne: the figures are there, and it is no success.
    let said = run(&["data_config.max_skip_ratio=0.1"]);
    assert!(said.out.contains("CIDEr"), "{}", said.out);
    said.refused(&["1 of 3 rows could not be used, more than data_config.max_skip_ratio=0.1"]);
    for name in ["a.png", "b.png"] {
        std::fs::write(b.path("mine").join(name), "").unwrap();
    }
    run(&[]).refused(&["none of 3 samples drawn could be used", "2 empty_file", "metadata.csv:2 (row 0)"]);
}

#[test]
fn a_split_to_validate_on_is_taken_and_unknown_characters_are_named() {
    let b = Bench::new();
    let (run, _) = trained(&b, &[]);
    for split in ["train", "validation"] {
        folder(&b, &format!("mine/{split}"));
    }
    let e = |more: &[&str]| {
        b.run(&with(&["eval", "--snapshot", &run, "--json", "data_config.max_skip_ratio=1"], more))
    };
    let said = e(&["mine"]).done();
    assert!(figures(&said)["source"].as_str().unwrap().contains("mine/validation"), "{}", said.out);
    let shards = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/coco");
    let parquet = figures(&e(&[shards, "data_config.unknown=replace"]).done());
    assert!(parquet["source"].as_str().unwrap().contains("validation"), "{parquet}");
    assert_eq!((&parquet["rows"], &parquet["pictures"]), (&5.into(), &5.into()));
    table(&b.path("rows.csv"), 3);
    e(&["rows.csv"]).refused(&[
        "not in the vocabulary",
        "'0' (U+0030)",
        "that of the snapshot",
        "unknown=replace",
    ]);
    let replaced = figures(&e(&["rows.csv", "data_config.unknown=replace"]).done());
    assert!(replaced["replaced"].as_u64().unwrap() >= 3, "{replaced}");
    // A name is read as it is, whatever the grammar of overrides makes of its characters.
    #[cfg(unix)]
    {
        std::fs::copy(b.path("rows.csv"), b.path("${x}\\b.csv")).unwrap();
        let odd = figures(&e(&["${x}\\b.csv", "data_config.unknown=replace"]).done());
        assert_eq!(odd["rows"], replaced["rows"], "{odd}");
    }
}

#[test]
fn what_cannot_be_evaluated_is_said() {
    let b = Bench::new();
    let (run, _) = trained(&b, &[]);
    let picture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pictures/barn.jpg");
    let eval = |args: &[&str]| b.run(&with(&["eval", "--snapshot", &run], args));
    eval(&[picture]).refused(&["pictures without captions", "ocelli caption"]);
    eval(&["none.csv"]).refused(&["none.csv", "No such file"]);
    eval(&["a.csv", "b.csv"]).refused(&["2 sources are named"]);
    for (key, said) in [
        ("model_config.n_embd=32", "model_config.n_embd was 16, is 32"),
        // No shape tells these: the same weights would be another function.
        ("model_config.n_head=4", "model_config.n_head was 2, is 4"),
        ("model_config.residual=published", "model_config.residual was \"pre_norm\", is \"published\""),
    ] {
        eval(&[key]).refused(&["its weights were trained in another model", said, "Leave these keys out"]);
    }
    eval(&["model_config.dropout=0.5"]).done();
    eval(&["data_config.nonsense=1"]).refused(&["nonsense"]);
    eval(&["--out", "."]).refused(&["--out .", "is a folder"]);
    table(&b.path("rows.csv"), 2);
    eval(&["--out", "rows.csv", "./rows.csv"]).refused(&["would replace what is read"]);
    std::fs::write(b.path("file"), "").unwrap();
    eval(&["--out", "file/captions.jsonl"]).refused(&["--out file/captions.jsonl", "cannot write"]);
    b.run(&["eval", "--snapshot", "nowhere"]).refused(&["nowhere"]);
    for args in [&["--limit", "0"][..], &["--threads", "0"]] {
        assert_eq!(eval(args).code, Some(2), "{args:?}");
    }
    assert_eq!(b.run(&["eval"]).code, Some(2));
}

#[test]
fn a_device_that_is_not_there_is_refused_as_in_training() {
    if Path::new("/dev/nvidia0").exists() {
        return;
    }
    let b = Bench::new();
    let (run, _) = trained(&b, &[]);
    let picture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pictures/barn.jpg");
    let why = b.train(&["trainer_config.device=cuda"]).refused(&["trainer_config.device=cuda"]).err;
    let why = why.lines().find(|l| l.starts_with("error: ")).unwrap();
    b.run(&["eval", "--snapshot", &run, "trainer_config.device=cuda"]).refused(&[why]);
    b.run(&["caption", "--snapshot", &run, "--device", "cuda", picture]).refused(&[why]);
    for device in ["auto", "cpu"] {
        b.run(&["caption", "--snapshot", &run, "--device", device, picture]).done();
        b.run(&["eval", "--snapshot", &run, &format!("trainer_config.device={device}")]).done();
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_it_without_figures() {
    let b = Bench::new();
    let (run, _) = trained(&b, &[]);
    let args = ["eval", "--snapshot", &run, "data_config.val_samples=1000000", "--out", "captions.jsonl"];
    let mut eval = pty::OnTerminal::start(b.command(&args));
    eval.wait_for(|line| line.contains("/1000000 rows"));
    eval.interrupt();
    let (status, lines) = eval.end();
    assert_eq!(status.code(), Some(1), "{lines:#?}");
    assert!(lines.iter().any(|l| l.starts_with("ending as soon as the batch in hand is done")), "{lines:#?}");
    let last = lines.last().unwrap();
    assert!(
        last.starts_with("error: interrupted after ")
            && last.ends_with("of 1000000 rows: there are no figures"),
        "{lines:#?}"
    );
    assert!(!b.path("captions.jsonl").exists());
}
