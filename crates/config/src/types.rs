//! The typed configuration. Field names are key names; `keys.rs` holds ranges and help, and a test keeps the
//! two in step. A `Config` that came out of this crate's loaders has passed every check in `typed.rs` and
//! `limits.rs`; one built by hand has not: call [`Config::validate`].

use std::path::Path;

use ocelli_data::source::Delimiter;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::choices::{
    Alpha, AmpDtype, AmpResidual, Architecture, CaptionChoice, Dataset, Device, Loss, LrSchedule, Optimizer,
    Padding, Pixels, ProfilerMode, Quoting, Residual, Shuffle, Unknown,
};

/// Everything one run depends on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Sizes of the model.
    #[serde(rename = "model_config")]
    pub model: ModelConfig,
    /// Where samples come from and how they become batches.
    #[serde(rename = "data_config")]
    pub data: DataConfig,
    /// Optimiser, length of the run, reports and snapshots.
    #[serde(rename = "trainer_config")]
    pub trainer: TrainerConfig,
}

/// Group `model_config`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// Which model these sizes are of.
    pub architecture: Architecture,
    /// Blocks of the vision transformer.
    pub num_blks: usize,
    /// Width of the decoder; a multiple of `n_head`.
    pub n_embd: usize,
    /// Attention heads, of the decoder and, unless `image_n_head` is set, of the vision transformer.
    pub n_head: usize,
    /// Blocks of the decoder.
    pub n_layer: usize,
    /// Side of the square picture, in pixels; a multiple of `patch_size`.
    pub img_size: usize,
    /// Side of a square patch, in pixels.
    pub patch_size: usize,
    /// Width of the vision transformer; a multiple of its heads.
    pub image_embed_dim: usize,
    /// Attention heads of the vision transformer (smol); see [`ModelConfig::image_heads`].
    pub image_n_head: Option<usize>,
    /// Width inside the vision transformer's feed-forward parts (smol); see [`ModelConfig::image_inner_width`].
    pub image_inner: Option<usize>,
    /// Patches along a side of a group that becomes one token (smol).
    pub pixel_shuffle: usize,
    /// Heads of the decoder's keys and values (smol); see [`ModelConfig::kv_heads`].
    pub n_kv_head: Option<usize>,
    /// Width inside the decoder's feed-forward parts (smol); see [`ModelConfig::inner_width`].
    pub n_inner: Option<usize>,
    /// Base of the wavelengths of the rotary positions (smol).
    pub rope_theta: f64,
    /// The token table is also the head (smol).
    pub tie_weights: bool,
    /// The longest text and one more for the image; rows of the decoder's position table, where it has one.
    pub max_positions: usize,
    /// Dropout in decoder blocks and on the projector's output, in [0, 1).
    pub dropout: f64,
    /// Dropout after the vision transformer's positions, in [0, 1).
    pub emb_dropout: f64,
    /// Dropout on attention weights and projection of the vision blocks, in [0, 1).
    pub blk_dropout: f64,
    /// Where a block's second residual starts.
    pub residual: Residual,
    /// Accepted from published files; has no effect.
    pub block_size: Option<usize>,
    /// Accepted from published files; has no effect.
    pub head_size: Option<usize>,
    /// A safetensors file to start the weights from; `None`: drawn from the seed.
    pub init_from: Option<String>,
}

/// Group `data_config`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    /// Kind of source.
    pub dataset: Dataset,
    /// File, folder or name of the source, relative to the working directory; `shapes` needs none.
    pub data_path: Option<String>,
    /// Branch, tag or commit of a data set of the hub; `None`: its main branch.
    pub revision: Option<String>,
    /// Column with the picture; `None`: the usual names.
    pub image_col: Option<String>,
    /// Column with the caption; `None`: the usual names.
    pub caption_col: Option<String>,
    /// What divides the fields of a text table; see [`DataConfig::divider`].
    pub delimiter: Option<String>,
    /// What quotation marks in a text table mean.
    pub quoting: Quoting,
    /// Encoding of tables and caption files.
    pub encoding: String,
    /// Which of several captions of a picture is learnt.
    pub caption_choice: CaptionChoice,
    /// The split to train on, where a source has named splits.
    pub train_split: String,
    /// The split to validate on; `None`: by its usual names, else `train_split_ratio`.
    pub val_split: Option<String>,
    /// Name of the padding token in the vocabulary.
    pub pad_token: String,
    /// Share of the rows for training, in (0, 1]; the rest validates.
    pub train_split_ratio: f64,
    /// A vocabulary file, or `auto`, or `None`; see [`DataConfig::vocab_file`].
    pub vocab_path: Option<String>,
    /// How captions of a batch get one length.
    pub padding: Padding,
    /// Longest caption in tokens; longer ones are cut and counted. `None`: the position table's length.
    pub max_seq_length: Option<usize>,
    /// Which positions count in the loss.
    pub loss: Loss,
    /// The training split is drawn again by new permutations until `max_iters`.
    pub endless: bool,
    /// Rows with captions of like length make up a batch.
    pub bucket: bool,
    /// Over what rows are shuffled.
    pub shuffle: Shuffle,
    /// Rows of a shuffle window, at least.
    pub shuffle_window: usize,
    /// Threads that decode ahead.
    pub num_workers: Workers,
    /// Where decoded pictures are kept: `auto`, `off`, or a file or folder.
    pub cache: String,
    /// Batches go to a GPU by way of page-locked memory.
    pub pinned_memory: bool,
    /// Samples of the drawn training split of `shapes`; `None`: without end.
    pub train_samples: Option<usize>,
    /// Samples of the drawn validation split of `shapes`.
    pub val_samples: usize,
    /// How files become pixels.
    pub pixels: Pixels,
    /// Whether the EXIF orientation is applied; `None`: as `pixels` says.
    pub exif: Option<bool>,
    /// What becomes of transparent pixels; `None`: as `pixels` says.
    pub alpha: Option<Alpha>,
    /// What to do with a character that the vocabulary lacks.
    pub unknown: Unknown,
    /// Share of bad samples above which the run stops, in [0, 1].
    pub max_skip_ratio: f64,
    /// Pictures with more pixels are skipped, judged from the header.
    pub max_pixels: u64,
}

/// Group `trainer_config`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainerConfig {
    /// Peak learning rate.
    pub lr: f64,
    /// How the learning rate moves after the warm-up.
    pub lr_schedule: LrSchedule,
    /// Steps over which the learning rate rises from zero to `lr`.
    pub warmup_iters: u64,
    /// The update rule.
    pub optimizer: Optimizer,
    /// Decay of the first moment, in [0, 1).
    pub beta1: f64,
    /// Decay of the second moment, in [0, 1).
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub eps: f64,
    /// Weight decay.
    pub weight_decay: f64,
    /// Bound on the global gradient norm; `None`: no clipping.
    pub clip_grad_norm: Option<f64>,
    /// Rows of a training batch, per rank.
    pub train_batch_size: usize,
    /// Rows of a validation batch.
    pub eval_batch_size: usize,
    /// Passes over the training split.
    pub epochs: u64,
    /// Optimiser steps of the whole run, resumed parts included; `None`: `epochs` decides.
    pub max_iters: Option<u64>,
    /// Steps between validations; `None`: at the end of each epoch.
    pub eval_interval: Option<u64>,
    /// Batches of a validation; `None`: the whole split.
    pub eval_iters: Option<u64>,
    /// Steps between lines of the log.
    pub log_interval: u64,
    /// One line per step, as the published recipe prints it.
    pub log_verbose: bool,
    /// Steps in a row whose loss or gradient is no finite number, after which the run stops.
    pub max_bad_steps: u64,
    /// Seed of weights, data order and dropout.
    pub seed: u64,
    /// Where programs run.
    pub device: Device,
    /// Threads of the CPU executor; `None`: one per core.
    pub threads: Option<usize>,
    /// Folder of run folders.
    pub run_dir: String,
    /// Folder of snapshots; a relative one lies in the run folder, in an absolute one each run has a folder of its own.
    pub snapshot_dir: String,
    /// Which snapshot to go on from; `None`: start anew.
    pub snapshot_load_strategy: Option<LoadStrategy>,
    /// Steps between snapshots, the only ones then but for the run's last; `None`: at the end of each epoch.
    pub snapshot_interval: Option<u64>,
    /// Snapshots kept, the newest; `None`: all.
    pub keep_last: Option<usize>,
    /// Captions shown at the end of a run.
    pub sample_captions: usize,
    /// Mixed precision.
    pub use_amp: Switch,
    /// The 16-bit type of mixed precision.
    pub amp_dtype: AmpDtype,
    /// How mixed precision stores the residual stream.
    pub amp_residual: AmpResidual,
    /// Ops that follow each other run as one kernel where the device has one.
    pub compile: bool,
    /// The whole step as one graph (GPU engine).
    pub cuda_graph: bool,
    /// TF32 matrix products (GPU engine).
    pub tf32: bool,
    /// Attention without the T x T matrix.
    pub flash_attention: bool,
    /// Measured choice among kernels (GPU engine).
    pub autotune: bool,
    /// The next batch is copied to a GPU while it works.
    pub prefetch: bool,
    /// Compute activations again in the backward pass.
    pub recompute: bool,
    /// Patterns of weights that are not trained; see [`TrainerConfig::frozen`].
    pub freeze: Option<String>,
    /// Patterns of weights with learning rates of their own; see [`TrainerConfig::rates`].
    pub lr_groups: Option<String>,
    /// Batches per optimiser step.
    pub grad_accum: usize,
    /// Stage of the sharded optimiser, 0 to 3.
    pub zero: usize,
    /// Report to Weights & Biases.
    pub use_wandb: bool,
    /// Project name for Weights & Biases.
    pub wandb_project: String,
    /// Folder of profiles.
    pub profile_results_dir: String,
    /// What the profiler records; `None`: nothing.
    pub profiler_mode: Option<ProfilerMode>,
}

/// A switch that the device may decide on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum Switch {
    /// On where it helps.
    Auto,
    /// On.
    On,
    /// Off.
    Off,
}

impl From<bool> for Switch {
    fn from(on: bool) -> Self {
        if on { Self::On } else { Self::Off }
    }
}

impl From<Switch> for Value {
    fn from(switch: Switch) -> Self {
        match switch {
            Switch::Auto => "auto".into(),
            Switch::On => true.into(),
            Switch::Off => false.into(),
        }
    }
}

impl TryFrom<Value> for Switch {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        match (value.as_str(), value.as_bool()) {
            (Some("auto"), _) => Ok(Self::Auto),
            (_, Some(on)) => Ok(on.into()),
            _ => Err("expected true, false or auto"),
        }
    }
}

/// How many threads decode ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum Workers {
    /// As many as the machine has use for.
    Auto,
    /// So many; 0: the training thread decodes.
    Count(usize),
}

impl From<Workers> for Value {
    fn from(workers: Workers) -> Self {
        match workers {
            Workers::Auto => "auto".into(),
            Workers::Count(count) => count.into(),
        }
    }
}

impl TryFrom<Value> for Workers {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        match (value.as_str(), value.as_u64().map(usize::try_from)) {
            (Some("auto"), _) => Ok(Self::Auto),
            (_, Some(Ok(count))) => Ok(Self::Count(count)),
            _ => Err("expected a number of threads or auto"),
        }
    }
}

/// Which snapshot a run goes on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum LoadStrategy {
    /// The newest whole snapshot of the same configuration name.
    Latest,
    /// The snapshot at the end of this epoch.
    Epoch(u64),
}

impl From<LoadStrategy> for Value {
    fn from(strategy: LoadStrategy) -> Self {
        match strategy {
            LoadStrategy::Latest => "latest".into(),
            LoadStrategy::Epoch(epoch) => epoch.into(),
        }
    }
}

impl TryFrom<Value> for LoadStrategy {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        match (value.as_str(), value.as_u64()) {
            (Some("latest"), _) => Ok(Self::Latest),
            (_, Some(epoch)) => Ok(Self::Epoch(epoch)),
            _ => Err("expected latest or an epoch number"),
        }
    }
}

impl DataConfig {
    /// The vocabulary file to read, or `None` if the vocabulary is learnt from the captions.
    pub fn vocab_file(&self) -> Option<&Path> {
        self.vocab_path.as_deref().filter(|p| *p != "auto").map(Path::new)
    }

    /// What divides fields: `delimiter`, or what the kind of source says.
    ///
    /// # Errors
    /// If `delimiter` cannot divide fields (a checked configuration has none such).
    pub fn divider(&self) -> Result<Delimiter, String> {
        match self.delimiter.as_deref() {
            None if self.dataset == Dataset::Tsv => Ok(Delimiter::TAB),
            None => Ok(Delimiter::COMMA),
            Some(text) => Delimiter::named(text),
        }
    }
}
