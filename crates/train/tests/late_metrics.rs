//! Metrics that come late: a run writes and tells the same, whenever the device hands them over, with overflows, bad steps and a
//! loss scale among its steps; and on a GPU asking for them after every step costs next to nothing.

mod late_support;

use late_support::{Late, Ran, Tricks, gpu, overrides, run};
use ocelli_data::batch::Batch;
use ocelli_ir::executor::Executor;
use ocelli_train::TrainError;
use ocelli_train::engine::{Engine, Metrics};
use std::sync::Arc;
use std::time::Instant;

/// Polls after which metrics are there: at once, soon, and only when they are waited for.
const DELAYS: [usize; 5] = [0, 1, 3, 7, usize::MAX];

/// Runs with all delays end alike; what they left.
fn alike(more: &[&str], tricks: &Tricks) -> Ran {
    let mut all = DELAYS
        .map(|polls| {
            let late: Arc<dyn Executor> = Late::new(polls, tricks.clone());
            run(&late, &overrides(more))
        })
        .into_iter();
    let first = all.next().unwrap();
    for (late, polls) in all.zip(&DELAYS[1..]) {
        assert_eq!(late.lines, first.lines, "{polls}");
        assert_eq!(late.told, first.told, "{polls}");
        assert_eq!(late.snapshots, first.snapshots, "{polls}");
        assert_eq!(late.why, first.why, "{polls}");
        let steps = |s: &ocelli_train::report::Summary| {
            (s.steps, s.new_steps, s.samples, s.bad_steps, s.validation_loss)
        };
        assert_eq!(late.ended.as_ref().ok().map(steps), first.ended.as_ref().ok().map(steps), "{polls}");
    }
    first
}

#[test]
fn lines_do_not_depend_on_when_metrics_arrive() {
    for verbose in ["trainer_config.log_verbose=true", "trainer_config.log_verbose=false"] {
        let more = [verbose, "trainer_config.snapshot_interval=9", "trainer_config.eval_interval=13"];
        let ran = alike(&more, &Tricks::default());
        assert_eq!(ran.steps("step"), Vec::from_iter(1..41));
        assert_eq!(ran.steps("validation"), [13, 26, 39, 40]);
        // A validation tells of the steps before it.
        assert_eq!(ran.steps("progress"), [7, 13, 14, 21, 26, 28, 35, 39, 40]);
        assert_eq!(ran.snapshots.len(), 5, "{:?}", ran.snapshots);
    }
}

#[test]
fn epochs_that_end_in_the_middle_of_an_interval_keep_their_lines() {
    let more = ["data_config.train_samples=22", "trainer_config.epochs=5", "trainer_config.max_iters=null"];
    let ran = alike(&more, &Tricks::default());
    assert_eq!(ran.steps("step"), Vec::from_iter(1..31));
    let epochs: Vec<u64> = ran.of("step").map(|l| l["epoch"].as_u64().unwrap()).collect();
    assert_eq!(epochs, (0..30).map(|i| i / 6).collect::<Vec<u64>>());
}

#[test]
fn overflows_and_bad_steps_among_them_are_counted_right() {
    let fp16 = [
        "trainer_config.use_amp=true",
        "trainer_config.amp_dtype=fp16",
        "trainer_config.snapshot_interval=6",
    ];
    // At those attempts the scale of the loss is raised, so that gradients overflow until it has fallen again.
    let tricks = Tricks { overflow: vec![1, 6, 13, 40], bad: vec![9, 10, 30] };
    for more in [&fp16[..2], &fp16, &["trainer_config.grad_accum=2"], &["trainer_config.log_interval=1"]] {
        let ran = alike(&[&fp16[..2], more].concat(), &tricks);
        assert!(ran.of("overflow").count() > 6, "{:?}", ran.lines);
        assert_eq!(ran.of("bad_step").count(), 3);
        assert_eq!(ran.steps("step"), Vec::from_iter(1..41), "{more:?}");
        assert_eq!(ran.ended.unwrap().bad_steps, 3);
    }
}

#[test]
fn a_run_of_bad_steps_ends_at_the_same_step_and_names_the_same_snapshot() {
    let more = [
        "trainer_config.max_bad_steps=4",
        "trainer_config.snapshot_interval=5",
        "trainer_config.log_interval=3",
    ];
    for verbose in [false, true] {
        let more =
            if verbose { [&more[..], &["trainer_config.log_verbose=true"]].concat() } else { more.to_vec() };
        // Three in a row are borne, and the fourth that comes behind a step.
        let tricks = Tricks { bad: [2, 3, 4].into_iter().chain(18..60).collect(), ..Tricks::default() };
        let ran = alike(&more, &tricks);
        let Err(e @ TrainError::BadSteps { step, times: 4, .. }) = &ran.ended else {
            panic!("{:?}", ran.ended)
        };
        assert_eq!(*step, 15);
        assert!(e.to_string().contains("0000010_snapshot.safetensors (step 10)"), "{e}");
        assert_eq!(ran.snapshots.len(), 2, "{:?}", ran.snapshots);
        // Nothing is written of what came behind.
        assert_eq!((ran.of("step").count(), ran.of("bad_step").count()), (14, 7));
    }
}

#[test]
fn an_interval_longer_than_the_ring_loses_no_step() {
    let more = ["trainer_config.log_interval=100000", "trainer_config.max_iters=1300"];
    for polls in [0, usize::MAX] {
        let late: Arc<dyn Executor> = Late::new(polls, Tricks::default());
        let ran = run(&late, &overrides(&more));
        assert_eq!(ran.steps("step"), Vec::from_iter(1..1301), "{polls}");
    }
}

#[test]
fn metrics_that_do_not_come_are_waited_for_at_last() {
    let late = Late::new(usize::MAX, Tricks::default());
    let executor: Arc<dyn Executor> = late.clone();
    run(&executor, &overrides(&["trainer_config.log_interval=1", "trainer_config.max_iters=400"]));
    let most = late.most_behind();
    assert!((32..=40).contains(&most), "{most}");
}

/// On a GPU.
#[test]
fn a_gpu_writes_the_same_lines_whether_every_step_is_told_or_not() {
    let Some(gpu) = gpu() else { return };
    let gpu: Arc<dyn Executor> = Arc::new(gpu);
    let base = [
        "trainer_config.max_iters=300",
        "trainer_config.snapshot_interval=90",
        "trainer_config.log_interval=10",
    ];
    let half = ["trainer_config.use_amp=true", "trainer_config.amp_dtype=fp16"];
    for amp in [&half[..], &["trainer_config.use_amp=false"]] {
        let base = [&base, amp].concat();
        let quiet = run(&gpu, &overrides(&base));
        let verbose = run(&gpu, &overrides(&[&base[..], &["trainer_config.log_verbose=true"]].concat()));
        assert_eq!(quiet.lines, verbose.lines);
        assert_eq!(quiet.steps("step"), Vec::from_iter(1..301));
        let seconds = |ran: &Ran| ran.ended.as_ref().unwrap().training.as_secs_f64();
        println!("{amp:?}: 300 steps in {:.3} s, told each in {:.3} s", seconds(&quiet), seconds(&verbose));
    }
}

/// A batch of full rows.
fn batch(side: usize, rows: usize, text: usize) -> Batch {
    let ids = |n: usize| (0..n).map(|i| (i * 7919 % 78) as u32).collect::<Vec<_>>();
    Batch {
        rows,
        text_len: text,
        size: side,
        images: ids(rows * side * side * 3).iter().map(|&x| (x * 3) as u8).collect(),
        tokens: ids(rows * text),
        targets: ids(rows * (text + 1)),
        weights: vec![1.0; rows * (text + 1)],
        sample_index: (0..rows as u32).collect(),
        tokens_weight: (rows * (text + 1)) as f32,
        real_rows: rows,
        ..Batch::default()
    }
}

#[test]
fn asking_a_gpu_for_metrics_after_every_step_costs_next_to_nothing() {
    let Some(gpu) = gpu() else { return };
    let all = overrides(&[
        "model_config.img_size=96",
        "model_config.patch_size=16",
        "model_config.n_embd=128",
        "model_config.n_head=8",
        "model_config.n_layer=8",
        "model_config.image_embed_dim=512",
        "model_config.num_blks=3",
        "trainer_config.use_amp=true",
        "trainer_config.amp_dtype=bf16",
    ]);
    let c = late_support::config(&all);
    let setup = ocelli_train::run::setup(&c, 78, 127, 1000).unwrap();
    let batch = batch(setup.model.picture_side(), 64, 127);
    let mut engine = Engine::new(Arc::new(gpu), setup, 1).unwrap();
    engine.set_lr(1e-4).unwrap();
    let (steps, mut done) = (300, 0);
    let mut timed = |asks: bool, waits: bool| {
        let begin = Instant::now();
        let (mut coming, mut rows): (Option<Metrics>, u64) = (None, 0);
        for _ in 0..steps {
            engine.train(&batch, true).unwrap();
            done += 1;
            if asks && coming.as_ref().is_none_or(|c| waits || c.ready().unwrap()) {
                rows += coming.take().map_or(0, |c| c.take().unwrap().len() as u64);
                coming = Some(engine.begin_metrics(done - 1, done).unwrap());
            }
        }
        assert_eq!(engine.attempts().unwrap(), done);
        (begin.elapsed().as_secs_f64(), rows)
    };
    timed(true, false);
    let mut best = [f64::INFINITY; 3];
    for _ in 0..3 {
        for (best, (asks, waits)) in best.iter_mut().zip([(false, false), (true, false), (true, true)]) {
            let (seconds, rows) = timed(asks, waits);
            assert!(!asks || rows > 20, "{rows} readings of {steps} arrived");
            *best = best.min(seconds);
        }
    }
    let [none, late, waited] = best.map(|s| s / f64::from(steps) * 1e3);
    println!(
        "a step {none:.3} ms, with metrics on their way {late:.3}, waited for one step later {waited:.3}"
    );
    assert!(late <= 1.05 * none, "{late} {none}");
}
