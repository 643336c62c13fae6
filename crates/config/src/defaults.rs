//! What a key holds when nobody sets it: the published sizes, with this project's own loss and residual.
//! The defaults alone are a valid configuration (a test says so).

use crate::choices::{
    AmpDtype, AmpResidual, Architecture, CaptionChoice, Dataset, Device, Loss, LrSchedule, Optimizer,
    Padding, Pixels, Quoting, Residual, Shuffle, Unknown,
};
use crate::types::{DataConfig, ModelConfig, Switch, TrainerConfig, Workers};

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            architecture: Architecture::Seemore,
            num_blks: 3,
            n_embd: 128,
            n_head: 8,
            n_layer: 8,
            img_size: 96,
            patch_size: 16,
            image_embed_dim: 512,
            image_n_head: None,
            image_inner: None,
            pixel_shuffle: 2,
            n_kv_head: None,
            n_inner: None,
            rope_theta: 10_000.0,
            tie_weights: true,
            max_positions: 1000,
            dropout: 0.1,
            emb_dropout: 0.1,
            blk_dropout: 0.1,
            residual: Residual::PreNorm,
            block_size: None,
            head_size: None,
            init_from: None,
        }
    }
}

impl Default for DataConfig {
    fn default() -> Self {
        Self {
            dataset: Dataset::Shapes,
            data_path: None,
            revision: None,
            image_col: None,
            caption_col: None,
            delimiter: None,
            quoting: Quoting::Minimal,
            encoding: "utf-8".into(),
            caption_choice: CaptionChoice::First,
            train_split: "train".into(),
            val_split: None,
            pad_token: "<pad>".into(),
            train_split_ratio: 0.9,
            vocab_path: None,
            padding: Padding::Longest,
            max_seq_length: None,
            loss: Loss::Masked,
            endless: false,
            bucket: false,
            shuffle: Shuffle::Auto,
            shuffle_window: 8192,
            num_workers: Workers::Auto,
            cache: "auto".into(),
            pinned_memory: true,
            train_samples: Some(20_000),
            val_samples: 512,
            pixels: Pixels::Upright,
            exif: None,
            alpha: None,
            unknown: Unknown::Error,
            max_skip_ratio: 0.05,
            max_pixels: 100_000_000,
        }
    }
}

impl Default for TrainerConfig {
    fn default() -> Self {
        Self {
            lr: 1e-3,
            lr_schedule: LrSchedule::Constant,
            warmup_iters: 0,
            optimizer: Optimizer::Adam,
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-8,
            weight_decay: 0.0,
            clip_grad_norm: None,
            train_batch_size: 32,
            eval_batch_size: 32,
            epochs: 1,
            max_iters: None,
            eval_interval: None,
            eval_iters: None,
            log_interval: 10,
            log_verbose: false,
            max_bad_steps: 10,
            seed: 1337,
            device: Device::Auto,
            threads: None,
            run_dir: "runs".into(),
            snapshot_dir: "snapshots".into(),
            snapshot_load_strategy: None,
            snapshot_interval: None,
            keep_last: None,
            sample_captions: 4,
            use_amp: Switch::Auto,
            amp_dtype: AmpDtype::Auto,
            amp_residual: AmpResidual::Auto,
            compile: true,
            cuda_graph: true,
            tf32: true,
            flash_attention: true,
            autotune: true,
            prefetch: true,
            recompute: false,
            freeze: None,
            lr_groups: None,
            grad_accum: 1,
            zero: 0,
            use_wandb: false,
            wandb_project: "ocelli".into(),
            profile_results_dir: "profile_results".into(),
            profiler_mode: None,
        }
    }
}
