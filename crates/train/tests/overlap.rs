//! Launches that start while the one before them ends change no bit: steps of the published size, where kernels of both branches
//! run side by side and scratch memory is used again and again. And weights in 16 bits follow the weights. Without a GPU:
//! "skipped: no CUDA device".

use ocelli_cuda::{CudaExecutor, CudaOptions, Overlap};
use ocelli_data::batch::Batch;
use ocelli_ir::executor::Executor;
use ocelli_ir::{DType, SlotKind};
use ocelli_models::nn::Residual;
use ocelli_models::seemore::SeemoreConfig;
use ocelli_passes::{Options, Precision};
use ocelli_train::engine::{Captions, Engine, Setup};
use ocelli_train::program::Optimizer;
use std::sync::Arc;

const MODEL: SeemoreConfig = SeemoreConfig {
    img_size: 96,
    patch_size: 16,
    image_embed_dim: 512,
    num_blks: 3,
    n_embd: 128,
    n_head: 8,
    n_layer: 8,
    vocab_size: 78,
    max_positions: 257,
    dropout: 0.1,
    emb_dropout: 0.1,
    blk_dropout: 0.1,
    residual: Residual::PreNorm,
};
const TEXT: usize = 256;
const STEPS: usize = 20;

fn batch(rows: usize, step: usize) -> Batch {
    let ids = |n: usize, below: usize| (0..n).map(move |i| (i * 31 + i / 7 + step * 13) % below);
    let places = rows * (TEXT + 1);
    Batch {
        rows,
        text_len: TEXT,
        size: MODEL.img_size,
        images: ids(rows * 96 * 96 * 3, 256).map(|x| x as u8).collect(),
        tokens: ids(rows * TEXT, 78).map(|x| x as u32).collect(),
        targets: ids(places, 78).map(|x| x as u32).collect(),
        weights: vec![1.0; places],
        sample_index: (0..rows as u32).map(|i| i + (step * rows) as u32).collect(),
        tokens_weight: places as f32,
        real_rows: rows,
        ..Batch::default()
    }
}

/// The bf16 next to an f32, of two the even one.
fn bf16(x: &[u8]) -> [u8; 2] {
    let bits = u32::from_le_bytes(x.try_into().unwrap());
    (((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16).to_le_bytes()
}

/// All of the state after steps that the host never waits between; none without a GPU.
fn trained(options: CudaOptions, half: Option<DType>, rows: usize) -> Option<Vec<Vec<u8>>> {
    let executor: Arc<dyn Executor> = match CudaExecutor::new(options) {
        Ok(executor) => Arc::new(executor),
        Err(e) if std::env::var_os("OCELLI_NEEDS_GPU").is_none() => {
            println!("skipped: no CUDA device ({e})");
            return None;
        }
        Err(e) => panic!("no CUDA device: {e}"),
    };
    let setup = Setup {
        model: Box::new(MODEL),
        optimizer: Some(Optimizer::ADAM),
        options: Options {
            precision: half.map(|half| Precision { half, stream: half }),
            ..Options::default()
        },
        captions: Captions { side_by_side: 1, positions: 4 },
    };
    let mut engine = Engine::new(executor, setup, 7).unwrap();
    engine.set_lr(1e-3).unwrap();
    for step in 0..STEPS {
        engine.train(&batch(rows, step), true).unwrap();
    }
    // Weights in 16 bits are what the weights are.
    let mut rounded = 0;
    for (id, slot) in engine.spec().iter() {
        if let SlotKind::Rounded(of) = slot.kind {
            let weight = engine.read(of).unwrap();
            let want: Vec<u8> = weight.chunks_exact(4).flat_map(bf16).collect();
            assert!(engine.read(id).unwrap() == want, "{}", slot.name);
            rounded += 1;
        }
    }
    assert_eq!(rounded > 20, half.is_some(), "{rounded} weights in 16 bits");
    Some(engine.spec().iter().map(|(id, _)| engine.read(id).unwrap()).collect())
}

#[test]
fn launches_that_overlap_change_no_bit() {
    for (half, rows) in [(Some(DType::Bf16), 64), (Some(DType::Bf16), 5), (None, 16)] {
        let mut want = None;
        for cuda_graph in [true, false] {
            for overlap in [Overlap::Off, Overlap::Late, Overlap::Early] {
                let options = CudaOptions { cuda_graph, overlap, ..CudaOptions::default() };
                let Some(have) = trained(options, half, rows) else { return };
                let want = want.get_or_insert_with(|| have.clone());
                assert!(have == *want, "{half:?} {rows}, graph {cuda_graph}, {overlap:?}: other bits");
            }
        }
    }
}
