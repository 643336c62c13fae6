//! A trained model, from its snapshot: to caption, to be measured, to be exported. It has no optimiser.

use crate::changes;
use crate::checkpoint::{self, FIRST_CHARACTER, TEXT_LIMIT};
use crate::engine::Engine;
use crate::error::TrainError;
use crate::memory::{self, Task};
use crate::settings;
use crate::snapshot::{self, Meta, Snapshot, SnapshotError};
use ocelli_config::{Config, Dataset};
use ocelli_data::tokenizer::{self, Tokenizer};
use ocelli_ir::SlotKind;
use ocelli_ir::executor::Executor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A snapshot that was read, before there is memory for its model.
pub struct Saved {
    /// The file.
    pub path: PathBuf,
    /// Newer snapshots of the folder that were refused, as warnings.
    pub refused: Vec<SnapshotError>,
    /// The configuration that it was trained with, overridden.
    pub config: Config,
    /// The kind of source that it was trained on.
    pub trained_on: Dataset,
    /// Its vocabulary.
    pub tokenizer: Arc<dyn Tokenizer>,
    snapshot: Snapshot<'static>,
}

/// A model at its trained weights.
pub struct Trained {
    /// The model.
    pub engine: Engine,
    /// Its vocabulary.
    pub tokenizer: Arc<dyn Tokenizer>,
    /// The configuration that it was trained with, overridden.
    pub config: Config,
    /// What its snapshot holds beside tensors.
    pub meta: Meta,
}

impl Saved {
    /// Reads a snapshot file, or the newest whole snapshot of a run or snapshot folder. `overrides` change the
    /// configuration in it, but for the model, which is what was trained.
    ///
    /// # Errors
    /// If there is none that can be used, or the model would be another one; the error says why.
    pub fn open(path: &Path, overrides: &[String]) -> Result<Self, TrainError> {
        let (path, refused) = checkpoint::newest_at(path)?;
        let snapshot = snapshot::load(&path)?;
        let place = format!("{} (its configuration)", path.display());
        let config = ocelli_config::load_stored(&place, &snapshot.meta.config, overrides)?.config;
        let trained = ocelli_config::load_stored(&place, &snapshot.meta.config, &[])?.config;
        let other = changes::of_the_model(&trained, &config);
        if !other.is_empty() {
            let why = format!(
                "its weights were trained in another model:\n  {}\nLeave these keys out",
                other.join("\n  ")
            );
            return Err(checkpoint::unfit(&path, why));
        }
        let tokenizer = tokenizer::from_json_with(&snapshot.meta.tokenizer, settings::unknown(&config))
            .map_err(|e| checkpoint::unfit(&path, e.to_string()))?;
        Ok(Self { path, refused, config, trained_on: trained.data.dataset, tokenizer, snapshot })
    }

    /// What the snapshot holds beside tensors.
    pub fn meta(&self) -> &Meta {
        &self.snapshot.meta
    }

    /// The longest text that the model was trained on, in tokens; none if the snapshot does not say.
    pub fn text_limit(&self) -> Option<usize> {
        self.meta().sizes.get(TEXT_LIMIT).and_then(|&n| usize::try_from(n).ok())
    }

    /// The model on a device, ready for a task.
    ///
    /// # Errors
    /// If the model of the configuration is not the snapshot's, or there is no memory for it: what is needed and what to do.
    pub fn onto(self, executor: Arc<dyn Executor>, task: Task) -> Result<Trained, TrainError> {
        let Self { path, config, tokenizer, snapshot, .. } = self;
        let vocab = tokenizer.vocab_size();
        let planned = memory::foresee_task(&config, vocab, task, &*executor)?;
        let mut engine = Engine::new(executor, memory::setup_of(&config, vocab, task.captions)?, 0)?;
        engine.adopt(planned);
        checkpoint::restore(&mut engine, &path, &snapshot, |kind| kind == SlotKind::Parameter)?;
        Ok(Trained { engine, tokenizer, config, meta: snapshot.meta })
    }
}

impl Trained {
    /// How the model's captions begin of themselves.
    pub fn first_text(&self) -> String {
        let commonest =
            self.meta.sizes.get(FIRST_CHARACTER).and_then(|&c| char::from_u32(u32::try_from(c).ok()?));
        settings::first_text(settings::loss_mode(&self.config), commonest)
    }
}
