//! Between a running engine and a snapshot file: what is saved, and what must agree when a run goes on.

mod init;
mod newest;
mod origin;
mod sizes;

pub use init::{Initial, init_from};
pub use newest::newest_at;
pub use origin::{Origin, origin};

use crate::engine::{Engine, EngineError};
use crate::error::TrainError;
use crate::snapshot::{DType, Meta, Snapshot, Spec, Tensor};
use ocelli_data::sampler::{BUCKET_WINDOW, Position};
use ocelli_data::tokenizer::Tokenizer;
use ocelli_ir::{Slot, SlotId, SlotKind, StateSpec};
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

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
/// If the snapshot was made with other sizes, which the error names, or lacks a tensor.
pub fn restore(
    engine: &mut Engine,
    path: &Path,
    snapshot: &Snapshot<'_>,
    kinds: impl Fn(SlotKind) -> bool,
) -> Result<(), TrainError> {
    // A snapshot of a run that did not scale its loss lets the scale start anew.
    let there = |s: &Slot| s.kind != SlotKind::LossScale || snapshot.tensor(&s.name).is_some();
    let slots: Vec<(SlotId, Spec)> = saved(engine.spec())
        .filter(|(_, s)| kinds(s.kind) && there(s))
        .map(|(id, s)| (id, spec(s)))
        .collect();
    let wanted: Vec<Spec> = slots.iter().map(|(_, s)| s.clone()).collect();
    if let Some(why) = sizes::differences(engine.model(), &wanted, &snapshot.tensors) {
        return Err(unfit(path, why));
    }
    let ours = |t: &&Tensor<'_>| wanted.iter().any(|w| w.name == t.name);
    let tensors: Vec<Tensor<'_>> = snapshot.tensors.iter().filter(ours).cloned().collect();
    let part = Snapshot { tensors, meta: Meta::default() };
    part.check_layout(&wanted).map_err(|e| unfit(path, e.to_string()))?;
    for (id, spec) in slots {
        if let Some(tensor) = part.tensor(&spec.name) {
            engine.write(id, &tensor.bytes)?;
        }
    }
    Ok(())
}

/// Where a run goes on: the position in the data stream, in batches of `global_batch`. If rows are brought together by
/// length (`bucket`), batches of another size are other rows of a window: then it goes on where windows begin.
///
/// # Errors
/// If the snapshot's position cannot be read.
pub fn position(
    path: &Path,
    meta: &Meta,
    global_batch: u64,
    bucket: bool,
) -> Result<(Position, Option<String>), TrainError> {
    let at: Position = serde_json::from_str(&meta.position)
        .map_err(|e| refused(path, format!("its position in the data cannot be read: {e}")))?;
    let before = meta.sizes.get(GLOBAL_BATCH).copied().unwrap_or(global_batch);
    if before == global_batch {
        return Ok((at, None));
    }
    // The stream is the same; only the windows on it change. Rounded down: no row is left out.
    let Some(rows) = at.batch.checked_mul(before) else {
        let why = format!("its position in the data cannot be right: batch {} of {before} rows", at.batch);
        return Err(refused(path, why));
    };
    let window = if bucket { BUCKET_WINDOW } else { 1 };
    // Those of the window that the snapshot stands in may have been drawn or not.
    let whole = window.saturating_mul(before).max(1);
    let done = rows / whole * whole;
    let batch = done / (window * global_batch) * window;
    let at_row = batch * global_batch;
    let position = Position { epoch: at.epoch, batch };
    if at_row == rows {
        return Ok((position, None));
    }
    let note = format!(
        "the batch size changed from {before} to {global_batch}: going on at row {at_row} of the epoch instead of {rows}"
    );
    Ok((position, Some(note)))
}

/// The vocabulary of a snapshot.
///
/// # Errors
/// If this version cannot read it; the error names the file.
pub fn tokenizer(origin: &Origin) -> Result<Arc<dyn Tokenizer>, TrainError> {
    ocelli_data::tokenizer::from_json(&origin.snapshot.meta.tokenizer)
        .map_err(|e| unfit(&origin.path, e.to_string()))
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

/// The error of a snapshot that cannot be used.
pub(crate) fn unfit(path: &Path, why: String) -> TrainError {
    TrainError::Unfit { path: path.to_path_buf(), why }
}

/// The error of a run that cannot go on from a snapshot, or finds none.
pub(crate) fn refused(path: &Path, why: String) -> TrainError {
    TrainError::Resume { path: path.to_path_buf(), why }
}
