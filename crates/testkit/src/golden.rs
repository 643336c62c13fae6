//! Golden parity cases: inputs, weights and what PyTorch computed from them in f64. The format is that of
//! `scripts/make_golden.py`.

use ocelli_ir::Shape;
use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The model of a case.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct GoldenConfig {
    pub img_size: usize,
    pub patch_size: usize,
    pub image_embed_dim: usize,
    pub num_blks: usize,
    pub n_embd: usize,
    pub n_head: usize,
    pub n_layer: usize,
    pub vocab_size: usize,
    pub dropout: f64,
    pub max_positions: usize,
}

/// The optimiser of a case.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct GoldenOptimizer {
    pub lr: f64,
    pub betas: [f64; 2],
    pub eps: f64,
    pub steps: usize,
}

/// One case.
#[derive(Clone, Debug)]
pub struct Golden {
    /// File name without ending.
    pub name: String,
    /// Its model.
    pub config: GoldenConfig,
    /// Its optimiser.
    pub optimizer: GoldenOptimizer,
    tensors: BTreeMap<String, (Shape, Vec<f64>)>,
}

impl Golden {
    /// Reads a case.
    ///
    /// # Errors
    /// If the file is not a golden case.
    pub fn load(path: &Path) -> Result<Self, String> {
        let fail = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        let bytes = std::fs::read(path).map_err(|e| fail(&e))?;
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(|e| fail(&e))?;
        let meta = header.metadata().as_ref().ok_or_else(|| fail(&"no metadata"))?;
        let json = |key: &str| meta.get(key).ok_or_else(|| fail(&format!("no '{key}' in the metadata")));
        let config = serde_json::from_str(json("config")?).map_err(|e| fail(&e))?;
        let optimizer = serde_json::from_str(json("optimizer")?).map_err(|e| fail(&e))?;
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
        Ok(Self { name, config, optimizer, tensors: tensors.collect::<Result<_, _>>()? })
    }

    /// A tensor of the case.
    ///
    /// # Panics
    /// If the case has none of that name.
    pub fn get(&self, name: &str) -> (&Shape, &[f64]) {
        let (shape, data) = self.find(name).unwrap_or_else(|| panic!("{}: no tensor '{name}'", self.name));
        (shape, data)
    }

    /// A tensor of the case, if it is there.
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

    /// Names of the parameters.
    pub fn parameters(&self) -> Vec<&str> {
        self.tensors.keys().filter_map(|n| n.strip_prefix("w.")).collect()
    }
}

fn words<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes.chunks_exact(N).map(|c| std::array::from_fn(|i| c[i]))
}

/// All cases: those of the repository, and every `*.safetensors` in the folder that `OCELLI_GOLDEN_DIR` names.
///
/// # Panics
/// If the named folder or a case cannot be read: a golden test that checks nothing must not pass.
pub fn all() -> Vec<Golden> {
    let mut folders = vec![PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/golden"))];
    folders.extend(std::env::var_os("OCELLI_GOLDEN_DIR").map(PathBuf::from));
    let mut paths = Vec::new();
    for folder in &folders {
        let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        let before = paths.len();
        paths.extend(
            entries
                .filter_map(|e| Some(e.ok()?.path()))
                .filter(|p| p.extension().is_some_and(|x| x == "safetensors")),
        );
        assert!(paths.len() > before, "no golden case in {}", folder.display());
    }
    paths.sort();
    paths.iter().map(|p| Golden::load(p).unwrap_or_else(|e| panic!("{e}"))).collect()
}
