//! Weights alone, from any safetensors file: the start of a fine-tuning or of a comparison with PyTorch.
use std::{borrow::Cow, path::Path};

use safetensors::Dtype;

use super::{DType, SnapshotError, Tensor, read::Opened};

/// The float32 tensors of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weights {
    /// Every float32 tensor, by the names in the file.
    pub tensors: Vec<Tensor<'static>>,
    /// Names of the integer and boolean tensors, which are buffers rather than weights and are not loaded.
    pub skipped: Vec<String>,
}

/// Loads the float32 tensors of any safetensors file, Ocelli's own or another's, whatever its metadata says.
///
/// # Errors
/// [`SnapshotError`] with the reason, for a file that is not safetensors, is damaged, or holds numbers that are not
/// finite or weights of another float type.
pub fn load_weights_only(path: &Path) -> Result<Weights, SnapshotError> {
    let mut opened = Opened::open(path)?;
    let other_float =
        opened.header.tensors.iter().find(|(_, info)| is_float(info.dtype) && info.dtype != Dtype::F32);
    if let Some((tensor, info)) = other_float {
        let (tensor, dtype) = (tensor.clone(), info.dtype.to_string());
        return Err(SnapshotError::WeightType { path: path.to_path_buf(), tensor, dtype });
    }
    let mut weights = Weights::default();
    opened.read_tensors(path, |name, info, bytes| match info.dtype {
        Dtype::F32 => weights.tensors.push(Tensor {
            name: name.to_string(),
            dtype: DType::F32,
            shape: info.shape.clone(),
            bytes: Cow::Owned(bytes),
        }),
        _ => weights.skipped.push(name.to_string()),
    })?;
    Ok(weights)
}

/// Whether weights might be stored in this type.
fn is_float(dtype: Dtype) -> bool {
    use Dtype::{BOOL, I8, I16, I32, I64, U8, U16, U32, U64};
    !matches!(dtype, BOOL | I8 | I16 | I32 | I64 | U8 | U16 | U32 | U64)
}
