//! What a snapshot holds beside tensors: counters, positions, texts, and who wrote it.
//!
//! Invariant: `format`, `ocelli_version` and `saved_unix_ms` are stamped by [`super::save`]; what a caller puts there
//! is not kept, but for a time later than the clock's. Fields may be added with a default; a change that an old reader would misread raises [`FORMAT`].
use std::{
    collections::BTreeMap,
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

/// The newest layout of a snapshot that this program reads, and the one that it writes.
pub const FORMAT: u32 = 1;

/// Everything about a moment of a run that is not a tensor. Texts are opaque here: their owners parse them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// Layout of the file; stamped.
    pub format: u32,
    /// Version of the program that wrote the file; stamped.
    pub ocelli_version: String,
    /// When the file was written, in milliseconds since 1970 (UTC); stamped, but no earlier than what stands here. Orders
    /// snapshots of different runs.
    pub saved_unix_ms: u64,
    /// The run that wrote it.
    pub run_id: String,
    /// The preset's name, as given to `--config-name`.
    pub config_name: String,
    /// The resolved config, as text.
    pub config: String,
    /// The tokeniser with its vocabulary, as JSON.
    pub tokenizer: String,
    /// The epoch in progress, or the one that just ended.
    pub epoch: u64,
    /// Optimiser steps taken; a step skipped on overflow does not count.
    pub optim_step: u64,
    /// Batches drawn from the data; skipped steps count.
    pub data_step: u64,
    /// Where the data stream stands, as JSON.
    pub position: String,
    /// The run's seed.
    pub seed: u64,
    /// Identifies the data source, so that a resume on other data can be noticed.
    pub source_fingerprint: String,
    /// Sizes of the model by name.
    pub sizes: BTreeMap<String, u64>,
    /// Hash of the tuning results in use, empty without tuning.
    pub tuning_hash: String,
    /// Figures at that moment by name, such as `val_loss`. Those that are not finite are left out of the file.
    pub metrics: BTreeMap<String, f64>,
}

impl Meta {
    /// This meta as it goes into a file.
    pub(super) fn stamped(&self) -> Meta {
        let mut meta = self.clone();
        meta.format = FORMAT;
        meta.ocelli_version = env!("CARGO_PKG_VERSION").to_string();
        // The clock may have gone back since the snapshot that this one follows was saved.
        meta.saved_unix_ms = self.saved_unix_ms.max(unix_ms(SystemTime::now()));
        // JSON has no NaN; a figure that is not a number says nothing.
        meta.metrics.retain(|_, value| value.is_finite());
        meta
    }
}

/// Only what must be read first, since the rest of a newer file may look different.
#[derive(Deserialize)]
pub(super) struct Version {
    pub format: u32,
    #[serde(default)]
    pub ocelli_version: String,
}

/// Milliseconds since 1970, 0 for a clock set before.
pub(crate) fn unix_ms(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}
