//! The one table of all keys: type, range, status, help. Whatever reads, checks, prints or explains a key
//! walks this table. A test freezes it, and another compares it with the structs in `types.rs`.

use crate::choices::{
    Alpha, AmpDtype, AmpResidual, Architecture, CaptionChoice, Dataset, Device, Loss, LrSchedule, Optimizer,
    Padding, Pixels, ProfilerMode, Quoting, Residual, Shuffle, Unknown,
};

/// What a key may hold, besides `null` where [`Key::nullable`] says so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// `true`, `false` or `auto`.
    Switch,
    /// An integer from `min` to `max`, both included.
    Int {
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// An integer from 0 to `max`, or `auto`.
    AutoOrInt {
        /// Largest value.
        max: u64,
    },
    /// A finite number in an interval.
    Float(Interval),
    /// Text, not empty, without control characters.
    Text,
    /// Text, not empty, of any characters: a tab is one as good as others.
    AnyText,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// The word `latest` or an epoch number.
    LatestOrEpoch,
}

/// The intervals that floating-point keys live in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// `0 < x`.
    Positive,
    /// `0 <= x`.
    NotNegative,
    /// `0 <= x < 1`.
    ZeroToBelowOne,
    /// `0 < x <= 1`.
    AboveZeroToOne,
    /// `0 <= x <= 1`.
    ZeroToOne,
}

/// Whether a key acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It acts.
    Active,
    /// Accepted because published files hold it; has no effect, for this reason.
    NoEffect(&'static str),
    /// Acts on the GPU engine; accepted elsewhere, with a notice.
    Engine,
    /// Only these values act so far (as written in YAML); any other asks for what is not there yet.
    Only(&'static [&'static str]),
}

/// One key of the configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key {
    /// `group.name`.
    pub path: &'static str,
    /// What it may hold.
    pub kind: Kind,
    /// Whether `null` is a value of it.
    pub nullable: bool,
    /// Whether it acts.
    pub status: Status,
    /// One line for a person.
    pub help: &'static str,
}

impl Key {
    const fn new(path: &'static str, kind: Kind, help: &'static str) -> Self {
        Self { path, kind, nullable: false, status: Status::Active, help }
    }

    const fn or_null(mut self) -> Self {
        self.nullable = true;
        self
    }

    const fn engine(mut self) -> Self {
        self.status = Status::Engine;
        self
    }

    const fn no_effect(mut self, why: &'static str) -> Self {
        self.status = Status::NoEffect(why);
        self
    }

    const fn only(mut self, values: &'static [&'static str]) -> Self {
        self.status = Status::Only(values);
        self
    }

    /// The part before the dot: `model_config`, `data_config` or `trainer_config`.
    pub fn group(&self) -> &'static str {
        self.path.split_once('.').map_or("", |(group, _)| group)
    }

    /// The part after the dot.
    pub fn name(&self) -> &'static str {
        self.path.split_once('.').map_or(self.path, |(_, name)| name)
    }
}

const fn int(path: &'static str, min: u64, max: u64, help: &'static str) -> Key {
    Key::new(path, Kind::Int { min, max }, help)
}

const fn auto_or_int(path: &'static str, max: u64, help: &'static str) -> Key {
    Key::new(path, Kind::AutoOrInt { max }, help)
}

const fn float(path: &'static str, interval: Interval, help: &'static str) -> Key {
    Key::new(path, Kind::Float(interval), help)
}

const fn flag(path: &'static str, help: &'static str) -> Key {
    Key::new(path, Kind::Bool, help)
}

const fn switch(path: &'static str, help: &'static str) -> Key {
    Key::new(path, Kind::Switch, help)
}

const fn text(path: &'static str, help: &'static str) -> Key {
    Key::new(path, Kind::Text, help)
}

const fn word(path: &'static str, words: &'static [&'static str], help: &'static str) -> Key {
    Key::new(path, Kind::Choice(words), help)
}

/// The groups, in the order in which they are printed.
pub const GROUPS: [&str; 3] = ["model_config", "data_config", "trainer_config"];

/// Bound on widths and picture sides. Products of sizes are bounded in `limits.rs`.
const WIDTH: u64 = 65_536;
/// Bound on blocks and heads.
const DEPTH: u64 = 1_024;
/// Bound on rows of a batch.
const ROWS: u64 = 65_536;
/// Bound on counts of steps, epochs and samples: a million million.
const STEPS: u64 = 1_000_000_000_000;
/// Most steps of a run: the schedule works on the step counter as f32, which is exact up to here.
pub const EXACT_STEPS: u64 = 1 << 24;

use Interval::{AboveZeroToOne, NotNegative, Positive, ZeroToBelowOne, ZeroToOne};

/// Every key, group by group, in the order in which they are printed.
#[rustfmt::skip] // one key, one line
pub const KEYS: &[Key] = &[
    word("model_config.architecture", Architecture::NAMES, "Which model: seemore (the published one) or smol (SigLIP-style tower, Llama-style decoder, as in SmolVLM)."),
    int("model_config.num_blks", 1, DEPTH, "Blocks of the vision transformer."),
    int("model_config.n_embd", 1, WIDTH, "Width of the decoder; a multiple of n_head."),
    int("model_config.n_head", 1, DEPTH, "Attention heads, of the decoder and, unless image_n_head is set, of the vision transformer."),
    int("model_config.n_layer", 1, DEPTH, "Blocks of the decoder."),
    int("model_config.img_size", 1, WIDTH, "Side of the square picture in pixels; a multiple of patch_size."),
    int("model_config.patch_size", 1, WIDTH, "Side of a square patch in pixels."),
    int("model_config.image_embed_dim", 1, WIDTH, "Width of the vision transformer; a multiple of its heads."),
    int("model_config.max_positions", 2, 1 << 20, "Rows of the decoder's position table (smol: none, a limit all the same); the image takes one, so the longest text is one less."),
    int("model_config.image_n_head", 1, DEPTH, "Attention heads of the vision transformer (smol); null: n_head.").or_null(),
    int("model_config.image_inner", 1, 4 * WIDTH, "Width inside its feed-forward parts (smol); null: 4 x image_embed_dim.").or_null(),
    int("model_config.pixel_shuffle", 1, DEPTH, "Square groups of so many patches a side become one token (smol); divides img_size / patch_size."),
    int("model_config.n_kv_head", 1, DEPTH, "Heads of the decoder's keys and values (smol), divides n_head; null: n_head.").or_null(),
    int("model_config.n_inner", 1, 4 * WIDTH, "Width inside the decoder's feed-forward parts (smol); null: 8/3 x n_embd, rounded up to a multiple of 8.").or_null(),
    float("model_config.rope_theta", Positive, "Base of the wavelengths of rotary positions (smol), at least 1."),
    flag("model_config.tie_weights", "The token table is also the head (smol)."),
    float("model_config.dropout", ZeroToBelowOne, "Dropout in decoder blocks and on the projector's output."),
    float("model_config.emb_dropout", ZeroToBelowOne, "Dropout after the vision transformer's positions."),
    float("model_config.blk_dropout", ZeroToBelowOne, "Dropout on attention weights and projection of the vision blocks."),
    word("model_config.residual", Residual::NAMES, "Where a block's second residual starts: published (after LN2) or pre_norm (the standard)."),
    int("model_config.block_size", 1, STEPS, "Of the published recipe, unused there too.").or_null().no_effect("the longest text follows from max_positions"),
    int("model_config.head_size", 1, STEPS, "Of the published recipe, unused there too.").or_null().no_effect("a head's width is the model's width divided by n_head"),
    text("model_config.init_from", "Safetensors file to start the weights from (weights only), or a run or snapshot folder; null: drawn from the seed.").or_null(),

    word("data_config.dataset", Dataset::NAMES, "Kind of source; shapes is built in and needs no file; coco is fetched from the hub once, or read from a folder."),
    text("data_config.data_path", "File or folder of the source, relative to the working directory; for coco also owner/name of a data set of the hub.").or_null(),
    text("data_config.revision", "Branch, tag or commit of a data set of the hub (dataset coco); null: main, as it was when first fetched.").or_null(),
    text("data_config.image_col", "Column with the picture; null: the usual names, such as image.").or_null(),
    text("data_config.caption_col", "Column with the caption; null: the usual names, caption before text.").or_null(),
    Key::new("data_config.delimiter", Kind::AnyText, "What divides the fields of a text table: one character, or an escape such as \\t or \\x01; null: a tab for tsv, else a comma.").or_null(),
    word("data_config.quoting", Quoting::NAMES, "Quotation marks in a text table: minimal (as in CSV, a field may be put in them), or none (they stand for themselves, a line is a record)."),
    text("data_config.encoding", "Encoding of tables and caption files, by a name of the web or of Python: utf-8, utf-16le, windows-1252, latin-1, shift_jis, gbk and others."),
    word("data_config.caption_choice", CaptionChoice::NAMES, "Of several captions of a picture: the first, one at random in each epoch, or all (each is a sample)."),
    text("data_config.train_split", "Name of the split to train on, where a source has named splits."),
    text("data_config.val_split", "Name of the split to validate on; null: validation, val, valid or dev, else by train_split_ratio.").or_null(),
    text("data_config.pad_token", "Name of the padding token."),
    float("data_config.train_split_ratio", AboveZeroToOne, "Share of the rows for training; the rest validates."),
    text("data_config.vocab_path", "Vocabulary file; null or auto: learnt from the captions.").or_null(),
    word("data_config.padding", Padding::NAMES, "Pad a batch to its longest caption, or always to max_seq_length."),
    int("data_config.max_seq_length", 1, 1 << 20, "Longest caption in tokens, longer ones are cut and counted; null: what max_positions allows.").or_null(),
    word("data_config.loss", Loss::NAMES, "Positions that count: masked (no padding, with end of text) or published (padding counts, no end of text)."),
    flag("data_config.endless", "Draw the training split again, newly shuffled, until max_iters."),
    flag("data_config.bucket", "Within 32 batches, put captions of like length into one batch and shuffle the batches: less padding, another order."),
    word("data_config.shuffle", Shuffle::NAMES, "Shuffle rows over the whole split (full), or blocks of the files and rows within a window of them; auto: full up to 8 GiB of files."),
    int("data_config.shuffle_window", 1, STEPS, "Rows of a shuffle window, at least; more shuffle better, fewer keep less of the files in memory."),
    auto_or_int("data_config.num_workers", DEPTH, "Threads that decode ahead; 0: decode in the training thread; auto: one a core, but of more than two cores one is left to the training thread (on the CPU they sleep beside its threads while 4 batches are ready). No result depends on it."),
    text("data_config.cache", "Where decoded pictures are kept for later epochs and runs: off, a file, a folder, or auto: in ~/.cache/ocelli/data, from 16 MB on, 64 GB in all, where twice that is free."),
    flag("data_config.pinned_memory", "Batches go to a GPU by way of page-locked memory, which it copies by itself; off: by way of plain memory, which the driver copies first.").engine(),
    int("data_config.train_samples", 1, STEPS, "Samples of the drawn training split (dataset shapes); null: without end.").or_null(),
    int("data_config.val_samples", 1, STEPS, "Samples of the drawn validation split (dataset shapes)."),
    word("data_config.pixels", Pixels::NAMES, "How files become pixels: upright (EXIF orientation applied, alpha on white), or pillow (neither, as scripts with Pillow do)."),
    flag("data_config.exif", "Apply the EXIF orientation; null: as pixels says.").or_null(),
    word("data_config.alpha", Alpha::NAMES, "Transparent pixels: laid on white, or the alpha channel dropped; null: as pixels says.").or_null(),
    word("data_config.unknown", Unknown::NAMES, "Characters that the vocabulary lacks: stop before the first step, or replace them."),
    float("data_config.max_skip_ratio", ZeroToOne, "Share of bad samples above which the run stops."),
    int("data_config.max_pixels", 1, 10_000_000_000, "Pictures with more pixels are skipped, judged from the header."),

    float("trainer_config.lr", Positive, "Learning rate, the peak of the schedule."),
    word("trainer_config.lr_schedule", LrSchedule::NAMES, "How the learning rate moves after the warm-up."),
    int("trainer_config.warmup_iters", 0, EXACT_STEPS, "Steps over which the learning rate rises from zero to lr."),
    word("trainer_config.optimizer", Optimizer::NAMES, "Update rule; adamw decouples the weight decay."),
    float("trainer_config.beta1", ZeroToBelowOne, "Decay of Adam's first moment."),
    float("trainer_config.beta2", ZeroToBelowOne, "Decay of Adam's second moment."),
    float("trainer_config.eps", Positive, "Added to the root of Adam's second moment."),
    float("trainer_config.weight_decay", NotNegative, "Weight decay."),
    float("trainer_config.clip_grad_norm", Positive, "Bound on the global gradient norm; null: no clipping.").or_null(),
    int("trainer_config.train_batch_size", 1, ROWS, "Rows of a training batch, per rank."),
    int("trainer_config.eval_batch_size", 1, ROWS, "Rows of a validation batch."),
    int("trainer_config.epochs", 1, STEPS, "Passes over the training split."),
    int("trainer_config.max_iters", 1, EXACT_STEPS, "Optimiser steps of the whole run, resumed parts included; null: epochs decides.").or_null(),
    int("trainer_config.eval_interval", 1, STEPS, "Steps between validations; null: at the end of each epoch.").or_null(),
    int("trainer_config.eval_iters", 1, STEPS, "Batches of a validation; null: the whole split.").or_null(),
    int("trainer_config.log_interval", 1, STEPS, "Steps between lines of the log."),
    flag("trainer_config.log_verbose", "One line per step: [rank R] epoch E, step S, dt: X ms."),
    int("trainer_config.max_bad_steps", 1, STEPS, "Steps in a row whose loss or gradient is no finite number, which are skipped, after which the run stops."),
    int("trainer_config.seed", 0, u64::MAX, "Seed of weights, data order and dropout."),
    word("trainer_config.device", Device::NAMES, "Where to compute: cpu, cuda (the first NVIDIA GPU that CUDA_VISIBLE_DEVICES leaves), or auto: a GPU if there is one."),
    int("trainer_config.threads", 1, DEPTH, "Threads of the CPU executor; null: one per core.").or_null(),
    text("trainer_config.run_dir", "Folder of run folders."),
    text("trainer_config.snapshot_dir", "Folder of snapshots; a relative one lies in the run folder, in an absolute one each run has a folder of its own."),
    Key::new("trainer_config.snapshot_load_strategy", Kind::LatestOrEpoch, "Snapshot to go on from: the newest, or the newest at the end of an epoch, of this configuration that fits; null: start anew.").or_null(),
    int("trainer_config.snapshot_interval", 1, STEPS, "Steps between snapshots, the only ones then but for the run's last; null: at the end of each epoch.").or_null(),
    int("trainer_config.keep_last", 1, STEPS, "Snapshots kept, the newest; null: all.").or_null(),
    int("trainer_config.sample_captions", 0, DEPTH, "Captions shown at the end of a run."),
    switch("trainer_config.use_amp", "Mixed precision: products and what lies between them in 16 bits, weights and sums in 32; auto: on a GPU, not on the CPU."),
    word("trainer_config.amp_dtype", AmpDtype::NAMES, "16-bit type of mixed precision: bf16, fp16 with loss scaling, or auto: what a GPU is best at, none on the CPU."),
    word("trainer_config.amp_residual", AmpResidual::NAMES, "Residual stream in mixed precision: f32, amp (as amp_dtype), or auto: amp for bf16 in up to 12 blocks."),
    flag("trainer_config.compile", "Run ops that follow each other as one kernel where the device has one (pass fuse); on the CPU the same results to the bit."),
    flag("trainer_config.cuda_graph", "A GPU replays a step, recorded once, by one call; off: it is given each kernel.").engine(),
    flag("trainer_config.tf32", "A GPU rounds the operands of products in 32 bits to TF32.").engine(),
    flag("trainer_config.flash_attention", "Attention that never keeps a weight for each pair of positions; off: by its plain definition in training and validation, in more memory, to compare with."),
    flag("trainer_config.autotune", "A GPU makes products in the way measured fastest on it, once, kept in a file; off: in the way the library guesses.").engine(),
    flag("trainer_config.prefetch", "The next batch is copied to a GPU while it works on this one; off: between the steps.").engine(),
    flag("trainer_config.recompute", "Compute cheap activations (norms, activation functions, dropout) again in the backward pass instead of keeping them."),
    text("trainer_config.freeze", "Weights that stay as they are, by name: patterns divided by commas, * for any characters, such as vision_encoder.*; null: none.").or_null(),
    text("trainer_config.lr_groups", "Learning rates of weights by name: pattern=rate, divided by commas, the first that fits; they follow the schedule; null: lr for all.").or_null(),
    int("trainer_config.grad_accum", 1, ROWS, "Batches whose gradients one optimiser step sums; an epoch's last step may have fewer."),
    int("trainer_config.zero", 0, 3, "Stage of the sharded optimiser.").only(&["0"]),
    flag("trainer_config.use_wandb", "Report to Weights & Biases.").only(&["false"]),
    text("trainer_config.wandb_project", "Project name for Weights & Biases."),
    text("trainer_config.profile_results_dir", "Folder of profiles."),
    word("trainer_config.profiler_mode", ProfilerMode::NAMES, "What the profiler records; null: nothing.").or_null().only(&["null"]),
];

/// The place of `path` in [`KEYS`].
pub(crate) fn index(path: &str) -> Option<usize> {
    KEYS.iter().position(|key| key.path == path)
}
