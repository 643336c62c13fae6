//! Steps whose loss or gradient is no finite number, through the real binary: skipped, counted, and the end of a run if
//! there are too many in a row.

mod support;

use support::{Bench, enlarge, rows, with};

/// A picture of one grey pixel, whose numbers are near 0 for the model, and a white one.
const GREY: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGOoKckAAALIAVlf/plWAAAAAElFTkSuQmCC,a dot";
const WHITE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4//8/AAX+Av4N70a4AAAAAElFTkSuQmCC,a dot";

/// The arguments of a run over `pictures`, one a batch, with a weight of a fresh model enlarged.
fn wild(b: &Bench, pictures: &[&str], weight: &str, factor: f32) -> Vec<&'static str> {
    let all = with(
        &rows(b, pictures),
        &[
            "trainer_config.train_batch_size=1",
            "data_config.endless=false",
            "trainer_config.epochs=1",
            "trainer_config.max_iters=null",
            "trainer_config.lr=1e-6",
            "trainer_config.clip_grad_norm=null",
        ],
    );
    b.train(&with(&all, &["trainer_config.max_iters=1"])).done();
    let run = b.run_folder();
    b.run(&["export", "--snapshot", run.to_str().unwrap(), "--out", "w.safetensors"]).done();
    std::fs::remove_dir_all(b.path("runs")).unwrap();
    enlarge(&b.path("w.safetensors"), weight, factor);
    with(&all, &["model_config.init_from=w.safetensors"])
}

#[test]
fn one_bad_batch_is_skipped_and_counted() {
    let b = Bench::new();
    let pictures = [GREY, GREY, WHITE, GREY, GREY];
    // In 16 bits a white picture is too large for these weights.
    let all = wild(&b, &pictures, "vision_encoder.patch_embedding.conv.weight", 1e5);
    let half =
        ["trainer_config.use_amp=true", "trainer_config.amp_dtype=fp16", "trainer_config.amp_residual=amp"];
    let said = b.train(&with(&all, &half)).done();
    said.mentions(&["1 step behind step", "no weight was changed", "skipped 1 step: ", "done: 4 steps"]);
    let lines = b.log("metrics.jsonl");
    let of = |kind: &str| lines.iter().filter(|l| l["kind"] == kind).collect::<Vec<_>>();
    assert_eq!((of("step").len(), of("bad_step").len(), of("overflow").len()), (4, 1, 0));
    assert_eq!(of("bad_step")[0]["loss"], "NaN", "{:?}", of("bad_step"));
    let steps: Vec<u64> = of("step").iter().map(|l| l["step"].as_u64().unwrap()).collect();
    assert_eq!(steps, [1, 2, 3, 4]);
    assert_eq!((&b.summary()["bad_steps"], &b.summary()["ended"]), (&1.into(), &"done".into()));
}

#[test]
fn too_many_in_a_row_end_the_run() {
    let b = Bench::new();
    let all = wild(&b, &[GREY; 40], "decoder.lm_head.weight", 1e30);
    let more = ["trainer_config.max_bad_steps=3", "trainer_config.log_interval=2"];
    let said = b.train(&with(&all, &more)).refused(&[
        "the loss became",
        "at step 1 ",
        "3 times in a row (trainer_config.max_bad_steps)",
        "There is no good snapshot",
    ]);
    // Told once its metrics were read, and not long after.
    assert!(said.err.contains("2 of trainer_config.max_bad_steps=3 in a row"), "{}", said.err);
    let lines = b.log("metrics.jsonl");
    assert!(lines.iter().all(|l| l["kind"] == "bad_step") && lines.len() == 3, "{lines:?}");
    assert!(b.snapshots().is_empty());
}

#[test]
fn a_run_without_a_single_good_step_is_no_success() {
    let b = Bench::new();
    let all = wild(&b, &[GREY; 4], "decoder.lm_head.weight", 1e30);
    b.train(&all).refused(&["the loss became", "4 times in a row"]);
    assert!(b.snapshots().is_empty());
}

#[test]
fn the_last_good_snapshot_is_named() {
    let b = Bench::new();
    let args = [
        "trainer_config.lr=1e18",
        "trainer_config.clip_grad_norm=null",
        "trainer_config.max_iters=200",
        "trainer_config.snapshot_interval=1",
        "trainer_config.max_bad_steps=4",
        "trainer_config.lr_schedule=constant",
        "trainer_config.warmup_iters=0",
    ];
    let good = b.train(&["trainer_config.max_iters=2", "trainer_config.snapshot_interval=1"]).done();
    let newest = b.snapshots().pop().unwrap();
    let wild = with(&["--resume", newest.to_str().unwrap()], &args);
    let said = b.run(&with(&["train"], &wild)).refused(&["4 times in a row", "The last good snapshot is "]);
    assert!(good.ok && said.err.contains("_snapshot.safetensors (step "), "{}", said.err);
}
