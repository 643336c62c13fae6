//! Between a running engine and a snapshot file: what is saved, and what must agree when a run goes on.

use crate::engine::{Engine, EngineError};
use crate::error::TrainError;
use crate::run_dir::{RunDir, latest_run_with_snapshot, runs};
use crate::snapshot::{self, DType, Meta, Snapshot, SnapshotError, Spec, Tensor};
use ocelli_config::{Config, LoadStrategy};
use ocelli_data::sampler::Position;
use ocelli_data::text::count;
use ocelli_data::tokenizer::{self, Tokenizer};
use ocelli_ir::{Slot, SlotId, SlotKind, StateSpec};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Names in [`Meta::sizes`].
pub const GLOBAL_BATCH: &str = "global_batch";
/// The longest text, in tokens.
pub const TEXT_LIMIT: &str = "text_limit";
/// The commonest first character of the captions, as its code point.
pub const FIRST_CHARACTER: &str = "first_character";

/// The state's tensors as a snapshot holds them.
///
/// # Errors
/// If the device fails.
pub fn capture(engine: &Engine, meta: Meta) -> Result<Snapshot<'static>, EngineError> {
    let mut tensors = Vec::new();
    for (id, slot) in saved(engine.spec()) {
        let Spec { name, dtype, shape } = spec(slot);
        tensors.push(Tensor { name, dtype, shape, bytes: Cow::Owned(engine.read(id)?) });
    }
    Ok(Snapshot { tensors, meta })
}

/// Puts a snapshot's tensors into the state. `kinds` says which: all of them to go on, parameters to caption.
///
/// # Errors
/// If the snapshot lacks a tensor, or has it in another shape.
pub fn restore(
    engine: &mut Engine,
    path: &Path,
    snapshot: &Snapshot<'_>,
    kinds: impl Fn(SlotKind) -> bool,
) -> Result<(), TrainError> {
    let slots: Vec<(SlotId, Spec)> =
        saved(engine.spec()).filter(|(_, s)| kinds(s.kind)).map(|(id, s)| (id, spec(s))).collect();
    let wanted: Vec<Spec> = slots.iter().map(|(_, s)| s.clone()).collect();
    let ours = |t: &&Tensor<'_>| wanted.iter().any(|w| w.name == t.name);
    let tensors: Vec<Tensor<'_>> = snapshot.tensors.iter().filter(ours).cloned().collect();
    let part = Snapshot { tensors, meta: Meta::default() };
    part.check_layout(&wanted)
        .map_err(|e| refused(path, format!("{e}\nIt was made with other model_config sizes")))?;
    for (id, spec) in slots {
        if let Some(tensor) = part.tensor(&spec.name) {
            engine.write(id, &tensor.bytes)?;
        }
    }
    Ok(())
}

/// Loads weights by name from any safetensors file; every parameter must be there. A snapshot's vocabulary must be
/// `tokenizer`'s: the same rows would otherwise stand for other characters.
///
/// # Errors
/// If the file cannot be used, or a parameter is missing or has another shape.
pub fn init_from(engine: &mut Engine, path: &Path, tokenizer: &dyn Tokenizer) -> Result<String, TrainError> {
    let saved = snapshot::peek(path).ok().and_then(|meta| tokenizer::from_json(&meta.tokenizer).ok());
    if let Some(saved) = saved.filter(|saved| !same_vocabulary(&**saved, tokenizer)) {
        let sizes = (saved.vocab_size(), tokenizer.vocab_size());
        let why = format!(
            "its vocabulary ({} ids) is not that of this run ({} ids); use the vocabulary it was trained with \
             (data_config.vocab_path, data_config.loss)",
            sizes.0, sizes.1
        );
        return Err(refused(path, why));
    }
    let weights = snapshot::load_weights_only(path)?;
    let total = weights.tensors.len();
    let snapshot = Snapshot { tensors: weights.tensors, meta: Meta::default() };
    restore(engine, path, &snapshot, |kind| kind == SlotKind::Parameter)?;
    let used = engine.spec().iter().filter(|(_, s)| s.kind == SlotKind::Parameter).count();
    let other = total - used;
    let other = if other > 0 {
        format!("; not used: {} of the file", count(other, "other tensor"))
    } else {
        String::new()
    };
    Ok(format!("weights: {} from {}{other}", count(used, "tensor"), path.display()))
}

/// True if every id stands for the same text in both.
fn same_vocabulary(a: &dyn Tokenizer, b: &dyn Tokenizer) -> bool {
    a.vocab_size() == b.vocab_size()
        && (0..a.vocab_size() as u32).all(|id| a.decode(&[id]) == b.decode(&[id]))
}

/// The snapshot that a run goes on from.
pub struct Origin {
    /// Its file.
    pub path: PathBuf,
    /// What it holds.
    pub snapshot: Snapshot<'static>,
    /// Newer snapshots that were refused, as warnings.
    pub refused: Vec<SnapshotError>,
}

/// Finds and reads the snapshot that the configuration asks for, if any. An explicit path comes first.
///
/// # Errors
/// If the snapshot asked for does not exist or cannot be used.
pub fn origin(c: &Config, name: &str, explicit: Option<&Path>) -> Result<Option<Origin>, TrainError> {
    let (root, dir) = (Path::new(&c.trainer.run_dir), Path::new(&c.trainer.snapshot_dir));
    let (path, refused) = match (explicit, c.trainer.snapshot_load_strategy) {
        (Some(path), _) => newest_at(path)?,
        (None, None) => return Ok(None),
        (None, Some(LoadStrategy::Latest)) => {
            let search = latest_run_with_snapshot(root, name, dir)?;
            match search.found {
                Some(found) => (found.path, search.refused),
                None if search.refused.is_empty() => return Ok(None),
                None => return Err(refused(dir, none_whole(&search.refused))),
            }
        }
        (None, Some(LoadStrategy::Epoch(epoch))) => (of_epoch(root, name, epoch)?, vec![]),
    };
    let snapshot = snapshot::load(&path)?;
    Ok(Some(Origin { path, snapshot, refused }))
}

/// A snapshot file as it is; the newest whole one of a snapshot folder or run folder, and the newer ones that
/// were refused.
///
/// # Errors
/// If there is none; the error tells why each one was refused.
pub fn newest_at(path: &Path) -> Result<(PathBuf, Vec<SnapshotError>), TrainError> {
    if !path.is_dir() {
        return Ok((path.to_path_buf(), vec![]));
    }
    let mut newer = Vec::new();
    let of_run = RunDir::open(path).map(|run| run.snapshot_dir());
    for dir in [Some(path.to_path_buf()), of_run].into_iter().flatten() {
        let search = snapshot::latest(&dir)?;
        match search.found {
            Some(found) => return Ok((found.path, search.refused)),
            None => newer.extend(search.refused),
        }
    }
    Err(refused(path, none_whole(&newer)))
}

fn none_whole(refused: &[SnapshotError]) -> String {
    let reasons: String = refused.iter().map(|e| format!("\n  {e}")).collect();
    format!("the folder holds no whole snapshot{reasons}")
}

/// The snapshot at the end of an epoch, in the newest run of the configuration that has one.
fn of_epoch(root: &Path, name: &str, epoch: u64) -> Result<PathBuf, TrainError> {
    let mut own: Vec<_> = runs(root)?.into_iter().filter(|run| run.info().config_name == name).collect();
    own.sort_by(|a, b| b.info().created.cmp(&a.info().created));
    let mut last = None;
    for dir in own.iter().map(RunDir::snapshot_dir) {
        match snapshot::by_epoch(&dir, epoch) {
            Ok(path) => return Ok(path),
            Err(e) => last = Some(e),
        }
    }
    Err(last.map_or_else(
        || refused(root, format!("no run of '{name}' is there to take the snapshot of epoch {epoch} from")),
        Into::into,
    ))
}

/// Where a run goes on: the position in the data stream, in batches of `global_batch`.
///
/// # Errors
/// If the snapshot's position cannot be read.
pub fn position(
    path: &Path,
    meta: &Meta,
    global_batch: u64,
) -> Result<(Position, Option<String>), TrainError> {
    let at: Position = serde_json::from_str(&meta.position)
        .map_err(|e| refused(path, format!("its position in the data cannot be read: {e}")))?;
    let before = meta.sizes.get(GLOBAL_BATCH).copied().unwrap_or(global_batch);
    if before == global_batch {
        return Ok((at, None));
    }
    // The stream is the same; only the windows on it change. Rounded down: no row is left out.
    let rows = at.batch * before;
    let note = format!(
        "the batch size changed from {before} to {global_batch}: going on at row {} of the epoch instead of {rows}",
        rows / global_batch * global_batch
    );
    Ok((Position { epoch: at.epoch, batch: rows / global_batch }, Some(note)))
}

fn saved(state: &StateSpec) -> impl Iterator<Item = (SlotId, &Slot)> {
    state.iter().filter(|(_, s)| s.kind.in_snapshot())
}

fn spec(slot: &Slot) -> Spec {
    let dtype = match slot.ty.dtype {
        ocelli_ir::DType::F32 => DType::F32,
        ocelli_ir::DType::Bf16 => DType::BF16,
        ocelli_ir::DType::F16 => DType::F16,
        ocelli_ir::DType::U8 => DType::U8,
        ocelli_ir::DType::U32 => DType::U32,
    };
    Spec { name: slot.name.clone(), dtype, shape: slot.ty.shape.0.clone() }
}

/// An error of this file's kind.
pub(crate) fn refused(path: &Path, why: String) -> TrainError {
    TrainError::Resume { path: path.to_path_buf(), why }
}
