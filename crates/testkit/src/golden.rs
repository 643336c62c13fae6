//! Golden parity cases: inputs, weights and what PyTorch computed from them in f64. The format is that of
//! `scripts/make_golden.py`.

use crate::tensors::Tensors;
use ocelli_ir::Shape;
use serde::Deserialize;
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
    tensors: Tensors,
}

impl Golden {
    /// Reads a case.
    ///
    /// # Errors
    /// If the file is not a golden case.
    pub fn load(path: &Path) -> Result<Self, String> {
        let fail = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        let tensors = Tensors::load(path)?;
        let meta = &tensors.metadata;
        let json = |key: &str| meta.get(key).ok_or_else(|| fail(&format!("no '{key}' in the metadata")));
        let config = serde_json::from_str(json("config")?).map_err(|e| fail(&e))?;
        let optimizer = serde_json::from_str(json("optimizer")?).map_err(|e| fail(&e))?;
        Ok(Self { name: tensors.name.clone(), config, optimizer, tensors })
    }

    /// A tensor of the case.
    ///
    /// # Panics
    /// If the case has none of that name.
    pub fn get(&self, name: &str) -> (&Shape, &[f64]) {
        self.tensors.get(name)
    }

    /// A tensor of the case, if it is there.
    pub fn find(&self, name: &str) -> Option<(&Shape, &[f64])> {
        self.tensors.find(name)
    }

    /// Multiplies a tensor, to show that a test can fail.
    pub fn scale(&mut self, name: &str, factor: f64) {
        self.tensors.scale(name, factor);
    }

    /// Puts a copy of tensor `from` in the place of tensor `to`.
    ///
    /// # Panics
    /// If the case has no such tensor.
    pub fn copy(&mut self, from: &str, to: &str) {
        self.tensors.copy(from, to);
    }

    /// Names of the parameters.
    pub fn parameters(&self) -> Vec<&str> {
        self.tensors.behind("w.")
    }
}

/// All cases: those of the repository, and every `*.safetensors` in the folder that `OCELLI_GOLDEN_DIR` names.
///
/// # Panics
/// If the named folder or a case cannot be read: a golden test that checks nothing must not pass.
pub fn all() -> Vec<Golden> {
    let mut folders = vec![crate::tensors::folder("golden")];
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
