//! The tensors of a safetensors file as f64, for values that another program computed.

use ocelli_ir::Shape;
use safetensors::{Dtype, SafeTensors};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Named tensors: f32, or int64 for ids.
#[derive(Clone, Debug)]
pub struct Tensors {
    /// File name without ending.
    pub name: String,
    /// The file's own notes.
    pub metadata: HashMap<String, String>,
    tensors: BTreeMap<String, (Shape, Vec<f64>)>,
}

impl Tensors {
    /// Reads a file.
    ///
    /// # Errors
    /// If it is no safetensors file or holds other types.
    pub fn load(path: &Path) -> Result<Self, String> {
        let fail = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        let bytes = std::fs::read(path).map_err(|e| fail(&e))?;
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(|e| fail(&e))?;
        let metadata = header.metadata().clone().unwrap_or_default();
        let file = SafeTensors::deserialize(&bytes).map_err(|e| fail(&e))?;
        let tensors = file.iter().map(|(name, t)| {
            let data = match t.dtype() {
                Dtype::F32 => words(t.data()).map(|w: [u8; 4]| f64::from(f32::from_le_bytes(w))).collect(),
                Dtype::I64 => words(t.data()).map(|w: [u8; 8]| i64::from_le_bytes(w) as f64).collect(),
                other => return Err(fail(&format!("'{name}' is {other:?}"))),
            };
            Ok((name.to_string(), (t.shape().to_vec().into(), data)))
        });
        let name = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
        Ok(Self { name, metadata, tensors: tensors.collect::<Result<_, _>>()? })
    }

    /// A tensor of the file.
    ///
    /// # Panics
    /// If it has none of that name.
    pub fn get(&self, name: &str) -> (&Shape, &[f64]) {
        self.find(name).unwrap_or_else(|| panic!("{}: no tensor '{name}'", self.name))
    }

    /// A tensor of the file, if it is there.
    pub fn find(&self, name: &str) -> Option<(&Shape, &[f64])> {
        self.tensors.get(name).map(|(s, d)| (s, &d[..]))
    }

    /// Multiplies a tensor, to show that a test can fail.
    pub fn scale(&mut self, name: &str, factor: f64) {
        if let Some((_, data)) = self.tensors.get_mut(name) {
            // Stored tensors are f32, and executors take them as such.
            data.iter_mut().for_each(|x| *x = f64::from((*x * factor) as f32));
        }
    }

    /// Puts a copy of tensor `from` in the place of tensor `to`.
    ///
    /// # Panics
    /// If there is no such tensor.
    pub fn copy(&mut self, from: &str, to: &str) {
        let (shape, data) = self.get(from);
        let copy = (shape.clone(), data.to_vec());
        self.tensors.insert(to.into(), copy);
    }

    /// What stands behind `prefix` in the names that begin with it, in order.
    pub fn behind(&self, prefix: &str) -> Vec<&str> {
        self.tensors.keys().filter_map(|name| name.strip_prefix(prefix)).collect()
    }
}

fn words<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes.chunks_exact(N).map(|c| std::array::from_fn(|i| c[i]))
}

/// A file of the folder `golden_ops`, written by `scripts/make_op_golden.py`.
///
/// # Panics
/// If it cannot be read: a golden test that checks nothing must not pass.
pub fn of_ops(name: &str) -> Tensors {
    let path = folder("golden_ops").join(name);
    Tensors::load(&path).unwrap_or_else(|e| panic!("{e}"))
}

/// A folder of this crate's files: beside its source, or in the folder that `OCELLI_TESTKIT` names, where tests run that were
/// built on another machine.
pub fn folder(name: &str) -> std::path::PathBuf {
    let root = std::env::var_os("OCELLI_TESTKIT").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&root).join(name)
}
