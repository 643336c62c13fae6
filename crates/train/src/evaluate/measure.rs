//! An evaluation under way.

use super::rows::{judge, pictures};
use super::{Captioned, Evaluated, Judged, Summed, attributes};
use crate::caption::{Captioner, Sampling};
use crate::engine::Captions;
use crate::error::TrainError;
use crate::memory::{Measured, Task};
use crate::report::{Attributes, Counts};
use crate::run::tally::{Part, Tally};
use crate::settings::SIDE_BY_SIDE;
use crate::trained::{Saved, Trained};
use ocelli_config::Dataset as Kind;
use ocelli_data::batch::Dataset;
use ocelli_data::loader::Loaded;
use ocelli_data::source::BadSample;
use ocelli_data::split::Rows;
use ocelli_data::text::count;
use ocelli_ir::executor::Executor;
use ocelli_metrics::{Pair, Scores};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

/// Bad rows named if there are no others.
const SHOWN: usize = 3;

/// A model, the rows that it is measured on, and what was found so far.
pub(super) struct Measure {
    path: PathBuf,
    model: Trained,
    /// How each caption begins of itself.
    prompt: Vec<u32>,
    dataset: Arc<Dataset>,
    rows: Rows,
    done: usize,
    loss: Summed,
    tally: Tally,
    judged: Vec<Judged>,
    /// Numbers of the pictures that have their caption.
    captioned: HashSet<usize>,
}

impl Measure {
    pub fn new(
        saved: Saved,
        executor: Arc<dyn Executor>,
        dataset: Arc<Dataset>,
        rows: Rows,
    ) -> Result<Self, TrainError> {
        let longest = saved.text_limit().unwrap_or(dataset.lengths().limit());
        let captions = Captions {
            side_by_side: saved.config.trainer.eval_batch_size.min(SIDE_BY_SIDE),
            positions: longest.saturating_add(1),
        };
        let measured = Measured {
            rows: saved.config.trainer.eval_batch_size,
            text: dataset.lengths().limit(),
            lengths: dataset.lengths().buckets().len(),
        };
        let path = saved.path.clone();
        // A caption begins with one character at most of itself.
        let task = Task { captions, prompt: 1, measured: Some(measured) };
        let model = saved.onto(executor, task)?;
        let prompt = model.tokenizer.encode(&model.first_text()).map(|e| e.ids).unwrap_or_default();
        let (loss, tally, judged, captioned) = Default::default();
        Ok(Self { path, model, prompt, dataset, rows, done: 0, loss, tally, judged, captioned })
    }

    /// Adds a batch; returns how many rows are done.
    pub fn take(&mut self, loaded: &Loaded) -> Result<usize, TrainError> {
        let batch = &loaded.batch;
        let engine = &mut self.model.engine;
        self.loss.add(engine.evaluate(batch)?);
        self.tally.add(Part::Validation, batch);
        let seen = pictures(&self.dataset, &self.rows, loaded, &mut self.captioned);
        let pixels: Vec<&[u8]> = seen.iter().map(|p| p.pixels).collect();
        let limit = engine.caption_limit();
        let mut captioner = Captioner { engine, tokenizer: &*self.model.tokenizer, limit };
        let captions = captioner.caption(&pixels, &self.prompt, &Sampling::GREEDY)?;
        self.judged.extend(judge(&self.dataset, seen, captions, loaded));
        self.done += batch.real_rows + batch.skipped.len();
        Ok(self.done)
    }

    /// The figures.
    pub fn conclude(self) -> Result<Evaluated, TrainError> {
        let counts = self.tally.counts().clone();
        let loss = self.loss.mean().ok_or_else(|| nothing(self.done, &counts, &self.judged))?;
        if !loss.is_finite() {
            let what = format!("the loss is {loss}: the model of {} has diverged", self.path.display());
            return Err(TrainError::Setting(what));
        }
        let found: Vec<&Captioned> = self.judged.iter().filter_map(|j| j.outcome.as_ref().ok()).collect();
        let pairs: Vec<Pair> = found.iter().map(|x| Pair::new(&x.caption.text, &x.references)).collect();
        let drawn = self.model.config.data.dataset == Kind::Shapes;
        Ok(Evaluated {
            step: self.model.meta.optim_step,
            source: self.dataset.source().describe(),
            rows: self.done,
            loss,
            tokens: self.loss.weight,
            scores: Scores::of(&pairs),
            attributes: drawn.then(|| of_drawn(&found)),
            skip_limit: self.model.config.data.max_skip_ratio,
            snapshot: self.path,
            counts,
            judged: self.judged,
        })
    }
}

fn of_drawn(found: &[&Captioned]) -> Attributes {
    let truths: Vec<&str> = found.iter().map(|x| x.references.first().map_or("", |r| r)).collect();
    let said: Vec<&str> = found.iter().map(|x| &x.caption.text[..]).collect();
    attributes(&truths, &said)
}

/// Why there is no loss.
fn nothing(rows: usize, counts: &Counts, judged: &[Judged]) -> TrainError {
    let bad: Vec<&BadSample> = judged.iter().filter_map(|j| j.outcome.as_ref().err()).collect();
    if bad.len() < rows {
        return TrainError::Setting(format!(
            "no place of any caption counts for the loss ({}): the published loss does not learn the first character",
            count(rows, "row")
        ));
    }
    let reasons: Vec<String> = counts.skipped.iter().map(|(r, n)| format!("{n} {r}")).collect();
    let first: String = bad.iter().take(SHOWN).map(|bad| format!("\n  {bad}")).collect();
    TrainError::NothingUsable {
        seen: rows as u64,
        reasons: reasons.join(", "),
        examples: format!("The first:{first}"),
        advice: "Repair the data".into(),
    }
}
