//! Mixed precision through the real binary.

mod support;

use support::{Bench, with};

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
    // Gradients of a learning rate this large overflow fp16 before they overflow f32.
    let said = b.train(&with(
        &AMP,
        &["trainer_config.amp_dtype=fp16", "trainer_config.lr=30", "trainer_config.max_iters=200"],
    ));
    let lines = b.log("metrics.jsonl");
    let overflows = lines.iter().filter(|l| l["kind"] == "overflow").count();
    assert!(overflows > 0, "{}", said.out);
    said.mentions(&["overflowed and took no step; the scale is"]);
    let steps: Vec<u64> =
        lines.iter().filter(|l| l["kind"] == "step").map(|l| l["step"].as_u64().unwrap()).collect();
    assert!(steps.iter().zip(1..).all(|(a, b)| *a == b), "steps count what was taken: {steps:?}");
}

#[test]
fn keys_that_wait_for_another_say_so() {
    let b = Bench::new();
    let quick = ["trainer_config.max_iters=1"];
    b.train(&with(&quick, &["trainer_config.use_amp=true"]))
        .done()
        .mentions(&["unless trainer_config.amp_dtype is set"]);
    b.train(&with(&quick, &["trainer_config.amp_dtype=bf16"]))
        .done()
        .mentions(&["without effect while use_amp is false: trainer_config.amp_dtype"]);
}

/// Overflows at the start of a run are no want of weight, wherever the run ends or is judged.
#[test]
fn overflows_from_the_first_step_on_end_no_run() {
    let b = Bench::new();
    let rows = support::csv(&b, 6, 0);
    let fp16 = ["trainer_config.use_amp=true", "trainer_config.amp_dtype=fp16", "trainer_config.lr=1e-4"];
    b.train(&with(&rows, &["trainer_config.max_iters=1"])).done();
    let run = b.run_folder();
    b.run(&["export", "--snapshot", run.to_str().unwrap(), "--out", "w.safetensors"]).done();
    std::fs::remove_dir_all(b.path("runs")).unwrap();
    // Gradients that pass through weights this large overflow fp16 under the first scale; the loss does not.
    enlarge(&b.path("w.safetensors"), "decoder.lm_head.weight", 3000.0);
    let wild = ["model_config.init_from=w.safetensors"];
    for more in [
        &["trainer_config.max_iters=20", "trainer_config.log_interval=1"][..],
        &["trainer_config.max_iters=1", "trainer_config.log_interval=1"],
    ] {
        let said = b.train(&with(&with(&rows, &fp16), &with(&wild, more))).done();
        assert!(said.out.contains("overflowed and took no step"), "{}", said.out);
        std::fs::remove_dir_all(b.path("runs")).unwrap();
    }
}

/// Multiplies a tensor of a file.
fn enlarge(path: &std::path::Path, name: &str, factor: f32) {
    use safetensors::SafeTensors;
    use safetensors::tensor::{TensorView, serialize};
    let bytes = std::fs::read(path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let tensors: Vec<_> = file
        .iter()
        .map(|(n, t)| {
            let by = if n == name { factor } else { 1.0 };
            let numbers = t.data().chunks_exact(4).map(|c| f32::from_le_bytes(c.try_into().unwrap()) * by);
            (
                n.to_string(),
                t.dtype(),
                t.shape().to_vec(),
                numbers.flat_map(f32::to_le_bytes).collect::<Vec<u8>>(),
            )
        })
        .collect();
    let views = tensors.iter().map(|(n, d, s, data)| (n, TensorView::new(*d, s.clone(), data).unwrap()));
    let out = serialize(views, None).unwrap();
    std::fs::write(path, out).unwrap();
}
