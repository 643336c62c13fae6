//! `ocelli export`: a model's weights in a file that other programs read.

use super::same_file;
use crate::args::{Export as Args, Names};
use crate::output::{arrived, say, warn};
use anyhow::bail;
use ocelli_cpu::CpuExecutor;
use ocelli_data::text::count;
use ocelli_train::engine::Captions;
use ocelli_train::export;
use ocelli_train::memory::Task;
use ocelli_train::trained::Saved;
use std::sync::Arc;

/// Writes the weights of a snapshot.
pub fn export(args: &Args) -> anyhow::Result<()> {
    let saved = Saved::open(&args.snapshot, &[])?;
    saved.refused.iter().for_each(|e| warn(&format!("warning: {e}")));
    if same_file(&saved.path, &args.out) {
        bail!("--out {} is the snapshot itself: choose another name", args.out.display());
    }
    // Nothing is computed: the least room that a model can have.
    let captions = Captions { side_by_side: 1, positions: 2 };
    let task = Task { captions, prompt: 1, measured: None };
    let model = saved.onto(Arc::new(CpuExecutor::new(Some(1))?), task)?;
    let done = match args.to {
        Names::TorchNames => export::torch_names(&model, &args.out)?,
    };
    done.note.iter().for_each(|note| warn(&format!("warning: {note}")));
    let (out, tensors, weights) =
        (args.out.display(), count(done.tensors, "tensor"), count(done.weights, "weight"));
    say(&format!("{out}: {tensors}, {weights}"));
    arrived()
}
