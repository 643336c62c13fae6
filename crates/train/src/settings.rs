//! From configuration keys to what programs and data are made of.

use crate::program::{Decay, Group, Optimizer, OptimizerKind, Schedule};
use ocelli_config as config;
use ocelli_config::{Config, ModelConfig};
use ocelli_data::batch::{LossMode, Padding};
use ocelli_data::image::{AlphaMode, DecodeOptions};
use ocelli_data::tokenizer::UnknownPolicy;
use ocelli_ir::DType;
use ocelli_models::Model;
use ocelli_models::nn::Residual;
use ocelli_models::seemore::SeemoreConfig;
use ocelli_models::smol::SmolConfig;
use ocelli_passes::{Options, Precision};

/// Batches read ahead.
pub(crate) const AHEAD: usize = 4;

/// Pictures captioned side by side, at most: the cache of keys and values grows with them.
pub const SIDE_BY_SIDE: usize = 16;

/// Threads that decode where the machine decides, at most: no device eats what more of them make.
const MOST_WORKERS: usize = 64;

/// Threads that decode ahead; 0: none but the one that trains.
pub fn workers(c: &Config) -> usize {
    match c.data.num_workers {
        config::Workers::Count(count) => count,
        config::Workers::Auto => workers_of(std::thread::available_parallelism().map_or(1, usize::from)),
    }
}

/// As many as so many cores have use for. Of one or two none is left free: a thread that trains waits for its data there,
/// or computes on the same cores as they do.
fn workers_of(cores: usize) -> usize {
    if cores > 2 { (cores - 1).min(MOST_WORKERS) } else { cores }
}

/// The model of a configuration and a vocabulary.
pub fn model(c: &ModelConfig, vocab_size: usize) -> Box<dyn Model> {
    match c.architecture {
        config::Architecture::Seemore => seemore(c, vocab_size).into(),
        config::Architecture::Smol => smol(c, vocab_size).into(),
    }
}

fn smol(c: &ModelConfig, vocab_size: usize) -> SmolConfig {
    SmolConfig {
        img_size: c.img_size,
        patch_size: c.patch_size,
        image_embed_dim: c.image_embed_dim,
        image_n_head: c.image_heads(),
        image_inner: c.image_inner_width(),
        num_blks: c.num_blks,
        pixel_shuffle: c.pixel_shuffle,
        n_embd: c.n_embd,
        n_head: c.n_head,
        n_kv_head: c.kv_heads(),
        n_inner: c.inner_width(),
        n_layer: c.n_layer,
        vocab_size,
        max_positions: c.max_positions,
        rope_theta: c.rope_theta,
        tie_weights: c.tie_weights,
    }
}

fn seemore(c: &ModelConfig, vocab_size: usize) -> SeemoreConfig {
    SeemoreConfig {
        img_size: c.img_size,
        patch_size: c.patch_size,
        image_embed_dim: c.image_embed_dim,
        num_blks: c.num_blks,
        n_embd: c.n_embd,
        n_head: c.n_head,
        n_layer: c.n_layer,
        vocab_size,
        max_positions: c.max_positions,
        dropout: c.dropout,
        emb_dropout: c.emb_dropout,
        blk_dropout: c.blk_dropout,
        residual: match c.residual {
            config::Residual::Published => Residual::Published,
            config::Residual::PreNorm => Residual::PreNorm,
        },
    }
}

/// The optimiser of a run of `total` steps.
pub fn optimizer(c: &Config, total: u64) -> Optimizer {
    let t = &c.trainer;
    Optimizer {
        kind: match t.optimizer {
            config::Optimizer::Adam => OptimizerKind::Adam,
            config::Optimizer::AdamW => OptimizerKind::AdamW,
        },
        beta1: t.beta1,
        beta2: t.beta2,
        eps: t.eps,
        weight_decay: t.weight_decay,
        clip: t.clip_grad_norm,
        batches: t.grad_accum,
        groups: groups(c),
        scale_loss: half(c) == Some(DType::F16),
        schedule: Schedule {
            warmup: t.warmup_iters,
            total,
            decay: match t.lr_schedule {
                config::LrSchedule::Constant => Decay::Constant,
                config::LrSchedule::Cosine => Decay::Cosine,
                config::LrSchedule::Linear => Decay::Linear,
            },
        },
    }
}

/// Weights that are not trained, and those with rates of their own.
fn groups(c: &Config) -> Vec<Group> {
    let t = &c.trainer;
    // Both lists were checked with the configuration.
    let frozen = t.frozen().unwrap_or_default().into_iter().map(|pattern| Group { pattern, rate: None });
    let rates = t.rates().unwrap_or_default().into_iter();
    frozen.chain(rates.map(|(pattern, lr)| Group { pattern, rate: Some(lr / t.lr) })).collect()
}

/// The passes of a run, the CPU's: mixed precision only if its type was set.
pub fn passes(c: &Config) -> Options {
    let precision = half(c).map(|half| Precision {
        half,
        stream: match c.trainer.amp_residual {
            config::AmpResidual::F32 => DType::F32,
            config::AmpResidual::Amp => half,
            // A long bf16 stream loses what each block adds; fp16 overflows in one.
            config::AmpResidual::Auto if half == DType::Bf16 && blocks(&c.model) <= SHALLOW => half,
            config::AmpResidual::Auto => DType::F32,
        },
    });
    Options {
        precision,
        flash_attention: c.trainer.flash_attention,
        recompute: c.trainer.recompute,
        fuse: c.trainer.compile,
        ..Options::default()
    }
}

/// Blocks up to which `auto` keeps the residual stream in bf16.
const SHALLOW: usize = 12;

fn blocks(m: &ModelConfig) -> usize {
    m.num_blks.max(m.n_layer)
}

/// The 16-bit type of mixed precision, if it is on. What is left to the device is off until the device has settled it.
fn half(c: &Config) -> Option<DType> {
    match (c.trainer.use_amp, c.trainer.amp_dtype) {
        (config::Switch::Off | config::Switch::Auto, _) | (_, config::AmpDtype::Auto) => None,
        (config::Switch::On, config::AmpDtype::Bf16) => Some(DType::Bf16),
        (config::Switch::On, config::AmpDtype::Fp16) => Some(DType::F16),
    }
}

/// Which places of a caption are learnt.
pub fn loss_mode(c: &Config) -> LossMode {
    match c.data.loss {
        config::Loss::Masked => LossMode::Masked,
        config::Loss::Published => LossMode::Published,
    }
}

/// How captions of a batch get one length.
pub fn padding(c: &Config) -> Padding {
    match c.data.padding {
        config::Padding::Longest => Padding::Longest,
        config::Padding::MaxLength => Padding::MaxLength,
    }
}

/// How pictures are decoded.
pub fn decoding(c: &Config) -> DecodeOptions {
    let max_pixels = c.data.max_pixels;
    let of_pixels = match c.data.pixels {
        config::Pixels::Upright => DecodeOptions { max_pixels, ..DecodeOptions::default() },
        config::Pixels::Pillow => DecodeOptions::pillow(max_pixels),
    };
    DecodeOptions {
        alpha: match c.data.alpha {
            Some(config::Alpha::White) => AlphaMode::White,
            Some(config::Alpha::Drop) => AlphaMode::Drop,
            None => of_pixels.alpha,
        },
        exif: c.data.exif.unwrap_or(of_pixels.exif),
        ..of_pixels
    }
}

/// What becomes of unknown characters.
pub fn unknown(c: &Config) -> UnknownPolicy {
    match c.data.unknown {
        config::Unknown::Error => UnknownPolicy::Error,
        config::Unknown::Replace => UnknownPolicy::Replace,
    }
}

/// How a caption begins of itself: the published loss never teaches the first character, so it is given the
/// commonest one.
pub fn first_text(loss: LossMode, commonest: Option<char>) -> String {
    commonest.filter(|_| loss == LossMode::Published).map(String::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_follow_the_cores_unless_they_are_given() {
        assert_eq!([1, 2, 3, 16, 1000].map(workers_of), [1, 2, 2, 15, MOST_WORKERS]);
        let mut c = Config::default();
        assert!(workers(&c) >= 1);
        c.data.num_workers = config::Workers::Count(0);
        assert_eq!(workers(&c), 0);
    }
}
