//! Out of memory is foreseen from the plans: what is needed, what is free, what would fit. No device is needed for it; on a
//! GPU it is held against what is taken.

use ocelli_config::{Config, Request, load};
use ocelli_cuda::{CudaExecutor, CudaOptions, CudaTarget, Machine};
use ocelli_ir::executor::Executor;
use ocelli_ir::memory::Room;
use ocelli_train::TrainError;
use ocelli_train::engine::{Captions, Engine};
use ocelli_train::memory::{Load, Measured, Task, TooLarge, check, check_task, foresee, needs, task_needs};
use ocelli_train::program::Size;
use std::sync::Arc;

const LOAD: Load = Load { vocab: 78, text: 64, lengths: 3, validates: true };

fn config(overrides: &[&str]) -> Config {
    let small = [
        "model_config.n_layer=2",
        "model_config.num_blks=2",
        "model_config.image_embed_dim=64",
        "trainer_config.eval_batch_size=32",
    ];
    let all = small.iter().chain(overrides).map(ToString::to_string).collect();
    load(&Request { name: None, path: None, overrides: all }).unwrap().config
}

fn bytes(c: &Config) -> usize {
    needs(c, LOAD, &CudaTarget::new(Machine::new(132))).unwrap().bytes()
}

fn refused(c: &Config, free: usize) -> TooLarge {
    let room = Room { free, total: free.max(16 << 30) };
    match check(c, LOAD, &CudaTarget::new(Machine::new(132)), room) {
        Err(TrainError::TooLarge(why)) => *why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_fits_to_the_byte_is_taken_and_what_does_not_is_refused() {
    let c = config(&["trainer_config.train_batch_size=32"]);
    let need = bytes(&c);
    let target = CudaTarget::new(Machine::new(132));
    check(&c, LOAD, &target, Room { free: need, total: need }).unwrap();
    let why = refused(&c, need - 1);
    assert_eq!((why.needs.bytes(), why.rows, why.at_least), (need, 31, false));
}

#[test]
fn every_trick_that_saves_memory_does_so_beside_the_others() {
    // The published model; a GPU on which hidden layers are one op, and one on which they are not.
    let hopper = Machine { wgmma: true, shared: 227 << 10, ..Machine::new(132) };
    let scratch = |machine: Machine, recompute: &str| {
        let amp =
            ["trainer_config.use_amp=true", "trainer_config.amp_dtype=bf16", "trainer_config.compile=true"];
        let overrides = amp.iter().chain([&recompute, &"trainer_config.train_batch_size=64"]);
        let overrides = overrides.map(ToString::to_string).collect();
        let request = Request { name: Some("csv_train".into()), path: None, overrides };
        let c = load(&request).unwrap().config;
        let size = Load { vocab: 78, text: 256, lengths: 1, validates: false };
        needs(&c, size, &CudaTarget::new(machine)).unwrap().programs.arena
    };
    let [plain, layers] = [Machine::new(132), hopper].map(|m| {
        let [all, less] = ["false", "true"].map(|on| scratch(m, &format!("trainer_config.recompute={on}")));
        assert!(less * 10 < all * 9, "recompute takes {less}, without it {all}");
        [all, less]
    });
    println!("scratch bytes without and with recompute: {layers:?} with layers as one op, {plain:?} without");
    assert!(layers[0] * 10 < plain[0] * 7 && layers[1] < plain[1], "{layers:?} {plain:?}");
}

#[test]
fn the_largest_batch_is_the_largest() {
    let c = config(&["trainer_config.train_batch_size=500"]);
    for fits in [33, 77, 300] {
        let smaller = config(&[&format!("trainer_config.train_batch_size={fits}")]);
        let why = refused(&c, bytes(&smaller));
        assert_eq!(why.rows, fits);
        let text = why.to_string();
        assert!(text.contains(&format!(" Set trainer_config.train_batch_size={fits} (")), "{text}");
    }
}

#[test]
fn every_remedy_is_enough() {
    let c = config(&["trainer_config.train_batch_size=512"]);
    let need = bytes(&c);
    let free = need * 8 / 10;
    let why = refused(&c, free);
    let text = why.to_string();
    assert!(why.remedies.len() >= 3, "{text}");
    for remedy in &why.remedies {
        let mut overrides: Vec<&str> = remedy.overrides.split(' ').collect();
        overrides.insert(0, "trainer_config.train_batch_size=512");
        if remedy.overrides.contains("use_amp") {
            overrides.push("trainer_config.amp_dtype=bf16");
        }
        let with = config(&overrides);
        assert_eq!(bytes(&with), remedy.bytes, "{remedy}");
        assert!(remedy.bytes <= free, "{remedy}");
        if with.trainer.grad_accum > 1 {
            assert_eq!(with.trainer.grad_accum * with.trainer.train_batch_size, 512, "{remedy}");
        }
    }
    for part in ["cuda: ", "the run needs ", " are free", "program 'train[B=512,T=64]'", "The largest batch"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_model_that_is_too_large_is_told_as_such() {
    let c = config(&["trainer_config.train_batch_size=8"]);
    let why = refused(&c, 1000);
    assert_eq!((why.rows, why.remedies.len()), (0, 0));
    let text = why.to_string();
    assert!(text.contains("Not even a batch of one row fits: take a smaller model"), "{text}");
    assert!(text.contains("nvidia-smi"), "{text}");
}

#[test]
fn an_evaluation_can_be_what_is_too_large() {
    let c = config(&["trainer_config.train_batch_size=2", "trainer_config.eval_batch_size=4096"]);
    let fits = config(&["trainer_config.train_batch_size=2", "trainer_config.eval_batch_size=1000"]);
    let why = refused(&c, bytes(&fits));
    assert!(why.needs.largest.starts_with("evaluate[B=4096"), "{why}");
    assert_eq!(why.rows, 1000, "{why}");
    assert_eq!(why.remedies[0].overrides, "trainer_config.eval_batch_size=1000", "{why}");
}

const CAPTIONING: Task =
    Task { captions: Captions { side_by_side: 16, positions: 65 }, prompt: 3, measured: None };

fn task_bytes(c: &Config, task: Task) -> usize {
    task_needs(c, 78, task, &CudaTarget::new(Machine::new(132))).unwrap().bytes()
}

fn refused_task(c: &Config, task: Task, free: usize) -> TooLarge {
    let room = Room { free, total: 16 << 30 };
    match check_task(c, 78, task, &CudaTarget::new(Machine::new(132)), room) {
        Err(TrainError::TooLarge(why)) => *why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_evaluation_of_a_trained_model_is_foreseen() {
    let c = config(&[]);
    let measured = |rows| Some(Measured { rows, text: 64, lengths: 2 });
    let task = |rows| Task { measured: measured(rows), ..CAPTIONING };
    let need = task_bytes(&c, task(512));
    let room = Room { free: need, total: need };
    check_task(&c, 78, task(512), &CudaTarget::new(Machine::new(132)), room).unwrap();
    for fits in [20, 100, 511] {
        let free = if fits == 511 { need - 1 } else { task_bytes(&c, task(fits)) };
        let why = refused_task(&c, task(512), free);
        assert_eq!((why.rows, why.needs.bytes()), (fits, need));
        let [remedy] = &why.remedies[..] else { panic!("{why}") };
        assert_eq!(remedy.overrides, format!("trainer_config.eval_batch_size={fits}"));
        assert!(remedy.bytes <= free && remedy.bytes == task_bytes(&c, task(fits)), "{why}");
        let text = why.to_string();
        for part in
            ["the evaluation needs ", "evaluate[B=512,T=64]", "rows. Set trainer_config.eval_batch_size="]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    // A model without an optimiser has no moments.
    assert!(task_bytes(&c, task(32)) < bytes(&config(&["trainer_config.train_batch_size=32"])));
}

#[test]
fn captioning_is_foreseen() {
    let c = config(&[]);
    let few = Task { captions: Captions { side_by_side: 5, ..CAPTIONING.captions }, ..CAPTIONING };
    let why = refused_task(&c, CAPTIONING, task_bytes(&c, few));
    let text = why.to_string();
    assert_eq!(why.rows, 5, "{text}");
    let parts = ["captioning needs ", "There is room for 5 pictures: name no more", "--device cpu"];
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    let text = refused_task(&c, CAPTIONING, 1000).to_string();
    assert!(text.contains("Not even one picture fits. The CPU has"), "{text}");
}

/// What was foreseen holds on a GPU: the programs take at least the plan's share, and no more than was said.
#[test]
fn a_gpu_takes_what_was_foreseen() {
    // More than any device has.
    let huge = config(&[
        "trainer_config.train_batch_size=65536",
        "trainer_config.use_amp=False",
        "model_config.n_embd=512",
        "model_config.n_layer=8",
    ]);
    let long = Load { text: 127, ..LOAD };
    assert!(needs(&huge, long, &CudaTarget::new(Machine::new(132))).unwrap().bytes() > 1 << 40);
    let executor = match CudaExecutor::new(CudaOptions::default()) {
        Ok(executor) => Arc::new(executor),
        Err(e) if std::env::var_os("OCELLI_NEEDS_GPU").is_none() => {
            println!("skipped: no CUDA device ({e})");
            return;
        }
        Err(e) => panic!("no CUDA device: {e}"),
    };
    let c = config(&["trainer_config.train_batch_size=1024", "trainer_config.use_amp=False"]);
    let load = Load { lengths: 1, validates: false, ..LOAD };
    let needs = needs(&c, load, executor.target()).unwrap();
    let free = || executor.room().unwrap().unwrap().free;
    let setup = |c, load: Load| ocelli_train::run::setup(c, load.vocab, load.text, 1).unwrap();
    let planned = foresee(&c, load, &setup(&c, load), &*executor).unwrap();
    let before = free();
    let mut engine = Engine::new(executor.clone(), setup(&c, load), 1).unwrap();
    engine.adopt(planned);
    engine.step_programs(Size { batch: 1024, text: load.text }).unwrap();
    let taken = before.saturating_sub(free());
    println!("taken {taken}, by the plans {}, foreseen {}", needs.bytes() - needs.overhead, needs.bytes());
    assert!(taken >= needs.bytes() - needs.overhead, "{taken} of {needs:?}");
    assert!(taken <= needs.bytes(), "{taken} of {needs:?}");
    let Err(TrainError::TooLarge(why)) = foresee(&huge, long, &setup(&huge, long), &*executor) else {
        panic!("it does not fit")
    };
    println!("{why}");
    assert!((16..65_536).contains(&why.rows), "{why}");
}
