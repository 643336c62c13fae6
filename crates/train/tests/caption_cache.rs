//! Captioning with cached keys and values gives the logits of the whole model run over the whole text, at every
//! position, for several pictures side by side, with and without a prompt.

use ocelli_cpu::CpuExecutor;
use ocelli_ir::executor::Executor;
use ocelli_ir::op::{Fill, Gen};
use ocelli_ir::ops::NormalizePixels;
use ocelli_ir::reference::{RefState, evaluate};
use ocelli_ir::tensor::{Data, Tensor};
use ocelli_ir::{DType, Graph, SlotKind, TensorType};
use ocelli_models::Model;
use ocelli_models::nn::{Context, Mode, Residual};
use ocelli_models::seemore::SeemoreConfig;
use ocelli_models::smol::SmolConfig;
use ocelli_passes::Options;
use ocelli_testkit::host::floats;
use ocelli_testkit::tolerance::{Kind, f32_bound, relative_difference};
use ocelli_train::engine::{Captions, Engine, Setup};
use std::collections::HashMap;
use std::sync::Arc;

const MODEL: SeemoreConfig = SeemoreConfig {
    img_size: 16,
    patch_size: 8,
    image_embed_dim: 24,
    num_blks: 1,
    n_embd: 16,
    n_head: 2,
    n_layer: 2,
    vocab_size: 11,
    max_positions: 9,
    dropout: 0.0,
    emb_dropout: 0.0,
    blk_dropout: 0.0,
    residual: Residual::Published,
};
const ROWS: usize = 3;
const TEXT: usize = 8;

/// Logits `[ROWS, TEXT + 1, vocab]` of the whole model in f64.
fn whole(engine: &Engine, pixels: &Tensor<f64>, ids: &[u32]) -> Vec<f64> {
    let mut spec = (**engine.spec()).clone();
    let mut g = Graph::new();
    let images = g.input("images", TensorType::new(DType::U8, [ROWS, 16, 16, 3]));
    let tokens = g.input("tokens", TensorType::u32([ROWS, TEXT]));
    let pictures = g.one(NormalizePixels::IMAGENET, &[images]).unwrap();
    let mut cx = Context::new(&mut g, &mut spec, Mode::Eval);
    let logits = engine.model().logits(&mut cx, pictures, tokens).unwrap();
    g.output("logits", logits);
    let mut state: RefState<f64> = HashMap::new();
    for (id, slot) in engine.spec().iter().filter(|(_, s)| s.kind == SlotKind::Parameter) {
        state.insert(id, Tensor::real(slot.ty.shape.clone(), floats(&engine.read(id).unwrap())));
    }
    let tokens = Tensor::u32([ROWS, TEXT], ids.to_vec());
    let inputs = HashMap::from([("images".to_string(), pixels.clone()), ("tokens".to_string(), tokens)]);
    evaluate(&g, &inputs, &mut state).unwrap()[0].as_real().to_vec()
}

const SMOL: SmolConfig = SmolConfig {
    img_size: 16,
    patch_size: 4,
    image_embed_dim: 24,
    image_n_head: 3,
    image_inner: 20,
    num_blks: 1,
    pixel_shuffle: 2,
    n_embd: 16,
    n_head: 4,
    n_kv_head: 2,
    n_inner: 24,
    n_layer: 2,
    vocab_size: 11,
    max_positions: 9,
    rope_theta: 100.0,
    tie_weights: false,
};

#[test]
fn cached_decoding_equals_the_whole_model() {
    check(MODEL);
    check(SMOL);
    check(SmolConfig { tie_weights: true, ..SMOL });
}

fn check(model: impl Into<Box<dyn Model>>) {
    let executor = Arc::new(CpuExecutor::new(Some(2)).unwrap());
    assert_eq!(executor.target().name(), "cpu");
    let captions = Captions { side_by_side: ROWS, positions: 9 };
    let setup = Setup { model: model.into(), optimizer: None, options: Options::default(), captions };
    let mut engine = Engine::new(executor, setup, 5).unwrap();
    let mut g = Gen::new(4);
    let pixels = g.tensor::<f64>(&TensorType::new(DType::U8, [ROWS, 16, 16, 3]), Fill::Below(256));
    let ids = g.tensor::<f64>(&TensorType::u32([ROWS, TEXT]), Fill::Below(11)).as_u32().to_vec();
    let Data::U8(bytes) = &pixels.data else { panic!("pixels are bytes") };
    let want = whole(&engine, &pixels, &ids);
    let vocab = engine.model().vocab_size();
    let wanted = |position: usize| -> Vec<f64> {
        (0..ROWS).flat_map(|b| want[(b * (TEXT + 1) + position) * vocab..][..vocab].to_vec()).collect()
    };
    let close = |have: Vec<f32>, position: usize, what: &str| {
        let have: Vec<f64> = have.into_iter().map(f64::from).collect();
        let off = relative_difference(&have, &wanted(position));
        assert!(off < f32_bound(Kind::Value), "{what}, position {position}: off by {off:.1e}");
    };
    // Prompts of no, one and several tokens; the last one fills the position table.
    for prompt in [0, 1, 5] {
        let width = prompt.max(1);
        let tokens: Vec<u32> = (0..ROWS).flat_map(|b| ids[b * TEXT..][..width].to_vec()).collect();
        let logits = engine.prefill(bytes, &tokens, prompt).unwrap();
        close(logits, prompt, "prefill");
        for at in prompt + 1..=TEXT {
            let tokens: Vec<u32> = (0..ROWS).map(|b| ids[b * TEXT + at - 1]).collect();
            close(engine.decode(&tokens, at).unwrap(), at, "decode");
        }
    }
}
