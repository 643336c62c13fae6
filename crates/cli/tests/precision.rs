//! Mixed precision through the real binary.

mod support;

use support::{Bench, enlarge, with};

const AMP: [&str; 3] =
    ["trainer_config.use_amp=true", "trainer_config.max_iters=30", "trainer_config.log_interval=10"];

fn losses(b: &Bench) -> Vec<f64> {
    let lines = b.log("metrics.jsonl");
    lines.iter().filter(|l| l["kind"] == "step").map(|l| l["loss"].as_f64().unwrap()).collect()
}

#[test]
fn runs_in_16_bits_learn_as_runs_in_32_and_resume_to_the_same_bits() {
    let run = |more: &[&str]| {
        let b = Bench::new();
        b.train(&with(&AMP, more)).done().mentions(&["done: 30 steps"]);
        losses(&b)
    };
    let off = run(&["trainer_config.use_amp=false"]);
    for more in [
        &["trainer_config.amp_dtype=bf16"][..],
        &["trainer_config.amp_dtype=bf16", "trainer_config.amp_residual=f32"],
        &["trainer_config.amp_dtype=fp16"],
        &["trainer_config.amp_dtype=fp16", "trainer_config.grad_accum=2"],
    ] {
        let on = run(more);
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 0.05 * b.abs();
        assert!(on.len() == 30 && on != off, "{more:?}");
        assert!(more.len() > 1 || on.iter().zip(&off).all(near), "{more:?}: {on:?}\n{off:?}");
        let b = Bench::new();
        let base = with(&AMP, more);
        b.train(&with(&base, &["trainer_config.max_iters=11"])).done();
        std::fs::rename(b.run_folder(), b.path("first")).unwrap();
        b.train(&with(&base, &["--resume", "first", "trainer_config.max_iters=30"])).done();
        assert_eq!(losses(&b)[..], on[11..], "{more:?}");
    }
}

#[test]
fn an_overflow_takes_no_step_and_is_said() {
    let b = Bench::new();
    let base = wild(&b);
    let said =
        b.train(&with(&base, &["trainer_config.max_iters=20", "trainer_config.log_interval=1"])).done();
    let lines = b.log("metrics.jsonl");
    let overflows = lines.iter().filter(|l| l["kind"] == "overflow").count();
    assert!(overflows > 0, "{}", said.out);
    said.mentions(&["overflowed and took no step; the scale is"]);
    let steps: Vec<u64> =
        lines.iter().filter(|l| l["kind"] == "step").map(|l| l["step"].as_u64().unwrap()).collect();
    assert_eq!(steps, Vec::from_iter(1..21), "steps count what was taken");
}

#[test]
fn keys_that_wait_for_another_say_so() {
    let b = Bench::new();
    let quick = ["trainer_config.max_iters=1"];
    b.train(&with(&quick, &["trainer_config.use_amp=true"]))
        .done()
        .mentions(&["unless trainer_config.amp_dtype is set"]);
    b.train(&with(&quick, &["trainer_config.amp_dtype=bf16"])).done().mentions(&[
        "without effect on the CPU unless trainer_config.use_amp is true: trainer_config.amp_dtype",
    ]);
    b.train(&with(&quick, &["trainer_config.amp_dtype=bf16", "trainer_config.use_amp=false"]))
        .done()
        .mentions(&["without effect while use_amp is false: trainer_config.amp_dtype"]);
}

const FP16: [&str; 3] =
    ["trainer_config.use_amp=true", "trainer_config.amp_dtype=fp16", "trainer_config.lr=1e-4"];

/// The arguments of a run whose first gradients overflow: those that pass through weights this large, under the first
/// scale; the loss does not.
fn wild(b: &Bench) -> Vec<&'static str> {
    let rows = support::csv(b, 6, 0);
    b.train(&with(&rows, &["trainer_config.lr=1e-4", "trainer_config.max_iters=1"])).done();
    let run = b.run_folder();
    b.run(&["export", "--snapshot", run.to_str().unwrap(), "--out", "w.safetensors"]).done();
    std::fs::remove_dir_all(b.path("runs")).unwrap();
    enlarge(&b.path("w.safetensors"), "decoder.lm_head.weight", 3000.0);
    with(&with(&rows, &FP16), &["model_config.init_from=w.safetensors"])
}

/// Overflows at the start of a run are no want of weight, wherever the run ends or is judged.
#[test]
fn overflows_from_the_first_step_on_end_no_run() {
    let b = Bench::new();
    let base = wild(&b);
    for more in [
        &["trainer_config.max_iters=20", "trainer_config.log_interval=1"][..],
        &["trainer_config.max_iters=1", "trainer_config.log_interval=1"],
    ] {
        let said = b.train(&with(&base, more)).done();
        assert!(said.out.contains("overflowed and took no step"), "{}", said.out);
        std::fs::remove_dir_all(b.path("runs")).unwrap();
    }
}

/// Only steps that were taken count for what is due.
#[test]
fn what_is_due_follows_the_steps_taken() {
    let b = Bench::new();
    let more = [
        "trainer_config.max_iters=20",
        "trainer_config.log_interval=10",
        "trainer_config.snapshot_interval=4",
        "trainer_config.eval_interval=7",
        "data_config.train_split_ratio=0.5",
        "data_config.endless=true",
        "trainer_config.log_verbose=true",
    ];
    for verbose in [true, false] {
        let more = if verbose { &more[..] } else { &more[..6] };
        let said = b.train(&with(&wild(&b), more)).done();
        let lines = b.log("metrics.jsonl");
        assert!(lines.iter().filter(|l| l["kind"] == "overflow").count() > 1, "{}", said.out);
        let of = |kind: &str| -> Vec<u64> {
            lines.iter().filter(|l| l["kind"] == kind).map(|l| l["step"].as_u64().unwrap()).collect()
        };
        assert_eq!(of("step"), Vec::from_iter(1..21));
        // A validation tells of the steps before it.
        assert_eq!((of("validation"), of("progress")), (vec![7, 14, 20], vec![7, 10, 14, 20]));
        let names: Vec<String> =
            b.snapshots().iter().map(|p| p.file_name().unwrap().to_string_lossy().into_owned()).collect();
        let steps: Vec<&str> = names.iter().map(|name| &name[name.find('_').unwrap() + 1..][..7]).collect();
        assert_eq!(steps, ["0000004", "0000008", "0000012", "0000016", "0000020"], "{names:?}");
        let said: Vec<&str> = said.out.lines().filter(|l| l.contains(", dt: ")).collect();
        assert_eq!(said.len(), if verbose { 20 } else { 0 }, "{said:?}");
        std::fs::remove_dir_all(b.path("runs")).unwrap();
    }
}
