//! The end of a run: last validation and snapshot, sample captions, the summary.

use super::Run;
use super::metrics::summary_line;
use crate::caption::{Captioner, Sampling};
use crate::error::TrainError;
use crate::evaluate::attributes;
use crate::report::{Ended, Event, Summary};
use crate::settings;
use ocelli_config::Dataset as Kind;
use ocelli_data::text::count;

/// Validation pictures captioned to count right attributes of drawn pictures.
const SCORED: usize = 512;

impl Run<'_> {
    pub(super) fn end(mut self) -> Result<Summary, TrainError> {
        let ended =
            if self.interrupted() && self.step < self.total { Ended::Interrupted } else { Ended::Done };
        if ended == Ended::Done && self.step == 0 && self.whole.steps > 0 && !self.weighted {
            return Err(self.no_weight()?);
        }
        if ended == Ended::Done
            && self.step == self.started
            && let Some(bad) = self.bad.last
        {
            return Err(self.too_many_bad(self.step, &bad));
        }
        // A folder whose batches had no weight has a snapshot too, or nothing could go on from it.
        let passed =
            ended == Ended::Done && self.whole.steps > 0 && self.saved.is_none() && self.saving.is_none();
        if self.unsaved() || passed {
            self.save()?;
        }
        if ended == Ended::Done && self.validated.is_none_or(|(step, _)| step != self.step) {
            self.validate()?;
        }
        self.tell_padding();
        if !self.interrupted() {
            self.samples()?;
        }
        self.complete_caches();
        self.written()?;
        self.doubt();
        let summary = self.summary(ended);
        self.conclude(&summary)?;
        self.reporter.event(&Event::Finished(&summary));
        Ok(summary)
    }

    /// What the run did so far.
    pub(super) fn summary(&self, ended: Ended) -> Summary {
        Summary {
            ended,
            steps: self.step,
            new_steps: self.step - self.started,
            samples: self.whole.samples,
            training: self.whole.time,
            validation_loss: self.validated.map(|(_, loss)| loss),
            bad_steps: self.bad.count,
            padding: self.padding,
            counts: self.tally.counts().clone(),
        }
    }

    /// Writes the last line of `metrics.jsonl`.
    pub(super) fn conclude(&mut self, summary: &Summary) -> Result<(), TrainError> {
        self.log(&[summary_line(summary)])
    }

    /// What to say if the snapshot has all the steps that are asked for.
    pub(super) fn nothing_left(&self) -> String {
        let t = &self.config().trainer;
        let by_steps = t.max_iters.is_some_and(|n| n <= self.step);
        let by_epochs = !self.sampler.options().endless && self.position.epoch >= t.epochs;
        let keys = match (by_steps, by_epochs) {
            (true, true) => "trainer_config.max_iters and trainer_config.epochs",
            (true, false) => "trainer_config.max_iters",
            (false, _) => "trainer_config.epochs",
        };
        let have = if self.step == self.total { "all of them" } else { "more" };
        let steps = count(self.total, "step");
        let from = self.origin.as_ref().map_or_else(String::new, |path| format!("{} ", path.display()));
        format!(
            "nothing to train: of the {steps} asked for, the snapshot {from}has {have} ({}). To go on, raise {keys}",
            self.step
        )
    }

    /// Captions some validation pictures; for drawn ones, counts the attributes named right.
    fn samples(&mut self) -> Result<(), TrainError> {
        let shown = self.config().trainer.sample_captions;
        let scored = self.config().data.dataset == Kind::Shapes;
        let wanted = if scored { shown.max(SCORED) } else { shown };
        let Some((dataset, rows)) = self.data.validation.clone().filter(|_| wanted > 0) else {
            return Ok(());
        };
        let read = |row| dataset.source().pictured(dataset.source_row(row, 0), dataset.size()).ok();
        let samples: Vec<_> = rows.iter().filter_map(read).take(wanted).collect();
        let pictures: Vec<&[u8]> = samples.iter().map(|s| &s.pixels[..]).collect();
        let prompt = settings::first_text(dataset.loss_mode(), self.data.first_character);
        let tokenizer = self.data.tokenizer.clone();
        let prompt = tokenizer.encode(&prompt).map(|e| e.ids).unwrap_or_default();
        let limit = dataset.lengths().limit();
        let mut captioner = Captioner { engine: &mut self.engine, tokenizer: &*tokenizer, limit };
        let captions = captioner.caption(&pictures, &prompt, &Sampling::GREEDY)?;
        for (sample, caption) in samples.iter().zip(&captions).take(shown) {
            self.reporter.event(&Event::Sample { truth: &sample.caption, predicted: &caption.text });
        }
        if scored {
            let truths: Vec<&str> = samples.iter().map(|s| &s.caption[..]).collect();
            let said: Vec<&str> = captions.iter().map(|c| &c.text[..]).collect();
            self.reporter.event(&Event::Attributes(attributes(&truths, &said)));
        }
        Ok(())
    }
}
