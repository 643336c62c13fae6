//! New training from old weights (`model_config.init_from`).

use super::{newest_at, restore, unfit};
use crate::engine::Engine;
use crate::error::TrainError;
use crate::snapshot::{self, Meta, Snapshot, SnapshotError};
use ocelli_config::{Config, ModelConfig};
use ocelli_data::text::count;
use ocelli_data::tokenizer::{self, Tokenizer};
use ocelli_ir::SlotKind;
use serde_json::Value;
use std::path::Path;

/// Where the weights came from.
#[derive(Debug)]
pub struct Initial {
    /// What was loaded, a line each.
    pub notes: Vec<String>,
    /// Newer snapshots of the folder that were refused, as warnings.
    pub refused: Vec<SnapshotError>,
}

/// Loads weights by name from any safetensors file, or from the newest whole snapshot of a run or snapshot folder;
/// every parameter must be there. A snapshot's vocabulary must be `tokenizer`'s: the same rows would otherwise stand
/// for other characters.
///
/// # Errors
/// If the file cannot be used, or a parameter is missing or has another shape; other sizes are named by their keys.
pub fn init_from(
    engine: &mut Engine,
    path: &Path,
    model: &ModelConfig,
    tokenizer: &dyn Tokenizer,
) -> Result<Initial, TrainError> {
    let (path, newer) = newest_at(path)?;
    let meta = snapshot::peek(&path).ok();
    if let Some(meta) = &meta {
        same_vocabulary(&path, meta, tokenizer)?;
    }
    let weights = snapshot::load_weights_only(&path)?;
    let total = weights.tensors.len();
    let snapshot = Snapshot { tensors: weights.tensors, meta: Meta::default() };
    let untold = meta.and_then(|meta| unlike(&meta, model));
    restore(engine, &path, &snapshot, |kind| kind == SlotKind::Parameter).map_err(|e| {
        match (e, &untold) {
            (TrainError::Unfit { path, why }, Some(line)) => {
                TrainError::Unfit { path, why: format!("{why}; {line}") }
            }
            (e, _) => e,
        }
    })?;
    let used = engine.spec().iter().filter(|(_, s)| s.kind == SlotKind::Parameter).count();
    let other = match total - used {
        0 => String::new(),
        other => format!("; not used: {} of the file", count(other, "other tensor")),
    };
    let mut notes = vec![format!("weights: {} from {}{other}", count(used, "tensor"), path.display())];
    notes.extend(untold);
    Ok(Initial { notes, refused: newer })
}

/// Refuses a snapshot with another vocabulary.
fn same_vocabulary(path: &Path, meta: &Meta, tokenizer: &dyn Tokenizer) -> Result<(), TrainError> {
    let Ok(saved) = tokenizer::from_json(&meta.tokenizer) else { return Ok(()) };
    let (there, here) = (saved.vocab_size(), tokenizer.vocab_size());
    if there == here && (0..here as u32).all(|id| saved.decode(&[id]) == tokenizer.decode(&[id])) {
        return Ok(());
    }
    let why = format!(
        "its vocabulary ({there} ids) is not that of this run ({here} ids); use the vocabulary it was trained with \
         (data_config.vocab_path, data_config.loss)"
    );
    Err(unfit(path, why))
}

/// Settings that no shape tells: with others the same weights are another model.
const UNTOLD: [&str; 5] = ["n_head", "residual", "n_kv_head", "image_n_head", "rope_theta"];

fn unlike(meta: &Meta, now: &ModelConfig) -> Option<String> {
    let before: Config = ocelli_config::load_stored("its configuration", &meta.config, &[]).ok()?.config;
    let [before, now] = [serde_json::to_value(&before.model), serde_json::to_value(now)];
    let (before, now) = (before.ok()?, now.ok()?);
    let differ = UNTOLD.iter().filter(|key| before[**key] != now[**key]);
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let line =
        |key: &&str| format!("model_config.{key} was {}, is {}", text(&before[*key]), text(&now[*key]));
    let lines: Vec<String> = differ.map(line).collect();
    (!lines.is_empty()).then(|| format!("the weights were trained in another model: {}", lines.join("; ")))
}
