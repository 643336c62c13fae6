//! What can end a run before its time.

use crate::engine::EngineError;
use crate::memory::TooLarge;
use crate::run::AppendError;
use crate::run_dir::RunDirError;
use crate::snapshot::{SnapshotError, WriteError};
use ocelli_data::batch::{DatasetError, LengthsError};
use ocelli_data::cache::CacheError;
use ocelli_data::hub::HubError;
use ocelli_data::loader::LoaderError;
use ocelli_data::sampler::SamplerError;
use ocelli_data::source::{BadSample, SourceError};
use ocelli_data::split::SplitError;
use ocelli_data::text::count;
use ocelli_data::tokenizer::TokenizerError;
use ocelli_models::SizeError;
use std::path::PathBuf;
use thiserror::Error;

/// Why a run could not start, go on or end well. Each message says what, where and what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the transparent variants are what they hold
pub enum TrainError {
    #[error(transparent)]
    Config(#[from] ocelli_config::ConfigErrors),
    #[error(transparent)]
    Sizes(#[from] SizeError),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Cache(#[from] CacheError),
    #[error(transparent)]
    Hub(#[from] HubError),
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    #[error(transparent)]
    Split(#[from] SplitError),
    #[error(transparent)]
    Lengths(#[from] LengthsError),
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    #[error(transparent)]
    Loader(#[from] LoaderError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The device has too little memory.
    #[error("{0}")]
    TooLarge(Box<TooLarge>),
    /// A log of the run folder could not be appended to.
    #[error("{source}. {kept}")]
    Append {
        /// The file, and the system's reason.
        source: AppendError,
        /// Which snapshot the run can go on from.
        kept: String,
    },
    /// The one sample that was asked for cannot be used.
    #[error(transparent)]
    Sample(BadSample),
    /// An evaluation was interrupted.
    #[error("interrupted after {done} of {}: there are no figures", count(*total, "row"))]
    Stopped {
        /// Rows evaluated.
        done: usize,
        /// All of them.
        total: usize,
    },
    /// A setting that only the data can refuse.
    #[error("{0}")]
    Setting(String),
    /// Characters that the vocabulary lacks, found before the first step.
    #[error("{0}")]
    UnknownCharacters(String),
    /// Too many steps in a row were none.
    #[error(
        "the loss became {loss} at step {step} (gradient norm {norm}), {} in a row \
         (trainer_config.max_bad_steps): these steps were skipped. {advice}",
        count(*times, "time")
    )]
    BadSteps {
        /// How many.
        times: u64,
        /// Optimiser step that was not taken, counted from 1.
        step: u64,
        /// What the loss is.
        loss: f32,
        /// Norm of the gradient.
        norm: f32,
        /// What to do.
        advice: String,
    },
    /// The validation loss is no number.
    #[error("the validation loss became {loss} at step {step}. {advice}")]
    Diverged {
        /// Optimiser steps taken.
        step: u64,
        /// What the loss is.
        loss: f64,
        /// What to do.
        advice: String,
    },
    /// Too many bad samples.
    #[error(
        "{skipped} of {} could not be used ({reasons}), more than data_config.max_skip_ratio={limit}. \
         {examples}\n{advice}",
        count(*seen, "sample")
    )]
    TooManySkipped {
        /// Bad samples, each row once.
        skipped: u64,
        /// Samples drawn, each row once.
        seen: u64,
        /// Counts by reason.
        reasons: String,
        /// The limit.
        limit: f64,
        /// The first of them, a line each, and where all are listed.
        examples: String,
        /// What was saved, and what to do.
        advice: String,
    },
    /// Not one sample is good.
    #[error("none of {} drawn could be used ({reasons}). {examples}\n{advice}", count(*seen, "sample"))]
    NothingUsable {
        /// Samples drawn, each row once.
        seen: u64,
        /// Counts by reason.
        reasons: String,
        /// The first of them, a line each, and where all are listed.
        examples: String,
        /// What to do.
        advice: String,
    },
    /// Not one place of any caption is learnt from.
    #[error(
        "no step could be taken: in {} drawn, no place of any caption counts for the loss. {advice}",
        count(*seen, "sample")
    )]
    NoWeight {
        /// Samples drawn, each row once.
        seen: u64,
        /// Why, and what to do.
        advice: String,
    },
    /// A folder that holds no snapshot.
    #[error("{}: {why}", path.display())]
    NoSnapshot {
        /// The folder.
        path: PathBuf,
        /// What it is instead, and what to do.
        why: String,
    },
    /// A snapshot, or other weights, that do not go with the model.
    #[error("{} cannot be used: {why}", path.display())]
    Unfit {
        /// The snapshot.
        path: PathBuf,
        /// What does not fit, and what to do.
        why: String,
    },
    /// A snapshot that does not go with the configuration or the data.
    #[error("cannot go on from {}: {why}", path.display())]
    Resume {
        /// The snapshot.
        path: PathBuf,
        /// What does not fit, and what to do.
        why: String,
    },
}
