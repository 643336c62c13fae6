//! A step whose loss or gradient is no finite number changes nothing but what counts it, in every type, on the CPU and on
//! a GPU; the next one is what it would have been without it, to the bit.

mod step_support;

use ocelli_cpu::CpuExecutor;
use ocelli_cuda::{CudaExecutor, CudaOptions};
use ocelli_data::batch::Batch;
use ocelli_ir::executor::Executor;
use ocelli_ir::{DType, SlotKind};
use ocelli_passes::{Options, Precision};
use ocelli_train::engine::{Captions, Engine, Setup};
use ocelli_train::program::Optimizer;
use std::sync::Arc;
use step_support::MODEL;

const ROWS: usize = 3;
const TEXT: usize = 5;

fn engine(executor: &Arc<dyn Executor>, half: Option<DType>, batches: usize) -> Engine {
    let setup = Setup {
        model: Box::new(MODEL),
        optimizer: Some(Optimizer { scale_loss: half == Some(DType::F16), batches, ..Optimizer::ADAM }),
        options: Options {
            precision: half.map(|half| Precision { half, stream: DType::F32 }),
            ..Options::default()
        },
        captions: Captions { side_by_side: 1, positions: 4 },
    };
    let mut engine = Engine::new(executor.clone(), setup, 7).unwrap();
    engine.set_lr(0.01).unwrap();
    engine
}

fn batch() -> Batch {
    let ids = |n: usize| (0..n).map(|i| (i * 5 % 7) as u32).collect::<Vec<_>>();
    Batch {
        rows: ROWS,
        text_len: TEXT,
        size: 8,
        images: ids(ROWS * 8 * 8 * 3).iter().map(|&x| (x * 30) as u8).collect(),
        tokens: ids(ROWS * TEXT),
        targets: ids(ROWS * (TEXT + 1)),
        weights: vec![1.0; ROWS * (TEXT + 1)],
        sample_index: (0..ROWS as u32).collect(),
        tokens_weight: (ROWS * (TEXT + 1)) as f32,
        real_rows: ROWS,
        ..Batch::default()
    }
}

/// Weights, moments, sums, and the number of steps: all that a bad step leaves alone.
fn learnt(e: &Engine) -> Vec<(String, Vec<u8>)> {
    let kept = |s: &ocelli_ir::Slot| {
        matches!(s.kind, SlotKind::Parameter | SlotKind::Moment | SlotKind::Accumulator)
            || s.name == "optimizer.step"
    };
    e.spec().iter().filter(|(_, s)| kept(s)).map(|(id, s)| (s.name.clone(), e.read(id).unwrap())).collect()
}

fn step(e: &mut Engine, batches: usize) {
    (1..=batches).for_each(|i| e.train(&batch(), i == batches).unwrap());
}

fn check(executor: &Arc<dyn Executor>, half: Option<DType>, batches: usize) {
    let what = format!("{} {half:?} {batches}", executor.target().name());
    let [mut straight, mut hurt] = [0, 1].map(|_| engine(executor, half, batches));
    step(&mut straight, batches);
    step(&mut hurt, batches);
    assert!(learnt(&straight) == learnt(&hurt), "{what}: two runs differ");
    let slot = hurt.spec().find("decoder.lm_head.bias").unwrap();
    let whole = hurt.read(slot).unwrap();
    for poison in [f32::NAN, f32::INFINITY, f32::MAX] {
        let mut bad = whole.clone();
        bad[..4].copy_from_slice(&poison.to_le_bytes());
        hurt.write(slot, &bad).unwrap();
        let (before, attempts) = (learnt(&hurt), hurt.attempts().unwrap());
        step(&mut hurt, batches);
        assert!(before == learnt(&hurt), "{what}: {poison} changed what was learnt");
        let metrics = hurt.metrics(attempts, attempts + 1).unwrap()[0];
        assert!(!metrics.taken(), "{what}: {poison}: {metrics:?}");
        assert_eq!(hurt.attempts().unwrap(), attempts + 1);
    }
    hurt.write(slot, &whole).unwrap();
    step(&mut straight, batches);
    step(&mut hurt, batches);
    // The scale of the loss may have fallen: powers of two, which leave the gradients' bits alone but for the smallest.
    if half != Some(DType::F16) {
        assert!(learnt(&straight) == learnt(&hurt), "{what}: the next step is another one");
    }
    let attempts = hurt.attempts().unwrap();
    assert!(hurt.metrics(attempts - 1, attempts).unwrap()[0].taken(), "{what}: no step is taken any more");
}

fn all(executor: &Arc<dyn Executor>) {
    for half in [None, Some(DType::Bf16), Some(DType::F16)] {
        for batches in [1, 2] {
            check(executor, half, batches);
        }
    }
}

#[test]
fn a_bad_step_changes_nothing_on_the_cpu() {
    let executor: Arc<dyn Executor> = Arc::new(CpuExecutor::new(Some(2)).unwrap());
    all(&executor);
}

#[test]
fn a_bad_step_changes_nothing_on_the_gpu() {
    for cuda_graph in [true, false] {
        match CudaExecutor::new(CudaOptions { cuda_graph, ..CudaOptions::default() }) {
            Ok(executor) => {
                let executor: Arc<dyn Executor> = Arc::new(executor);
                all(&executor);
            }
            Err(e) if std::env::var_os("OCELLI_NEEDS_GPU").is_none() => {
                println!("skipped: no CUDA device ({e})");
            }
            Err(e) => panic!("no CUDA device: {e}"),
        }
    }
}
