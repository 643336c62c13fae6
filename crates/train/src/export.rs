//! Weights for other programs: one plain safetensors file, f32, named as the state dict of the model in PyTorch.
//!
//! A model's parameters have these names from the start, so nothing is renamed here, and no parameter stands for two.

use crate::error::TrainError;
use crate::snapshot::{self, DType, Tensor};
use crate::trained::Trained;
use ocelli_config::{Architecture, Residual};
use ocelli_ir::SlotKind;
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Tensors in the file.
    pub tensors: usize,
    /// Numbers in them.
    pub weights: usize,
    /// What a reader must know that no shape tells.
    pub note: Option<String>,
}

/// Writes the parameters of a model under their names in PyTorch's state dict. In the file's metadata stand `format`
/// (`pt`), `model_config` (the sizes by their keys, `vocab_size` with them, JSON) and `tokenizer` (the vocabulary, JSON).
///
/// # Errors
/// If the file cannot be written, or a weight is no number.
pub fn torch_names(model: &Trained, out: &Path) -> Result<Exported, TrainError> {
    let mut tensors = Vec::new();
    for (id, slot) in model.engine.spec().iter().filter(|(_, s)| s.kind == SlotKind::Parameter) {
        tensors.push(Tensor {
            name: slot.name.clone(),
            dtype: DType::F32,
            shape: slot.ty.shape.0.clone(),
            bytes: Cow::Owned(model.engine.read(id)?),
        });
    }
    snapshot::save_plain(out, &tensors, about(model))?;
    let weights = tensors.iter().map(|t| t.bytes.len() / DType::F32.size()).sum();
    let (architecture, residual) = (model.config.model.architecture, model.config.model.residual);
    let other = architecture == Architecture::Seemore && residual != Residual::Published;
    let note = other.then(|| {
        format!(
            "the blocks of this model are not the published ones (model_config.residual={residual}): the published code \
             loads the weights and computes something else with them"
        )
    });
    Ok(Exported { tensors: tensors.len(), weights, note })
}

/// What must be known beside the weights to use them.
fn about(model: &Trained) -> HashMap<String, String> {
    let mut sizes = serde_json::to_value(&model.config.model).unwrap_or_default();
    sizes["vocab_size"] = model.tokenizer.vocab_size().into();
    HashMap::from([
        ("format".into(), "pt".into()),
        ("model_config".into(), sizes.to_string()),
        ("tokenizer".into(), model.tokenizer.to_json()),
    ])
}
