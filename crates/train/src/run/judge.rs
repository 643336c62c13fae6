//! Bad samples end a run if there are too many of them; what was learnt before is saved first. So do captions of which no
//! place counts for the loss: a run without end would go on for ever without a step.
//!
//! Judged over the rows of the training split, each once: from the moment on at which all of them, or 1,000, were drawn.
//! So a run over a small split without end is judged after its first pass, and a larger one does not go on for hours.

use super::Run;
use crate::error::TrainError;
use crate::report::{Ended, Event};
use ocelli_data::batch::{LossMode, UNKNOWN_CHARACTER};
use ocelli_data::image::{NO_MEMORY, TOO_MANY_PIXELS};
use ocelli_data::source::FILE_NAME;
use ocelli_data::text::count;

impl Run<'_> {
    /// Ends the run if too many samples were bad, or none gave a step.
    pub(super) fn judge(&mut self) -> Result<(), TrainError> {
        let (rows, limit) = (self.data.train_rows.len(), self.config().data.max_skip_ratio);
        let share = self.tally.share(rows);
        if !self.tally.enough(rows) {
            return Ok(());
        }
        // Without a single usable sample there is nothing to train on, whatever the limit.
        if self.tally.usable() && !share.above(limit) {
            return if self.weighted { Ok(()) } else { Err(self.no_weight()?) };
        }
        self.flush()?;
        if self.unsaved() {
            self.save()?;
        }
        self.written()?;
        let summary = self.summary(Ended::BadSamples);
        self.conclude(&summary)?;
        let (seen, reasons, examples) = (share.seen, self.reasons(), self.examples());
        if !self.tally.usable() {
            return Err(TrainError::NothingUsable { seen, reasons, examples, advice: self.repair() });
        }
        let advice = self.go_on();
        Err(TrainError::TooManySkipped { skipped: share.skipped, seen, reasons, limit, examples, advice })
    }

    /// Ends the run for want of weight, and says why.
    pub(super) fn no_weight(&mut self) -> Result<TrainError, TrainError> {
        let summary = self.summary(Ended::NoWeight);
        self.conclude(&summary)?;
        let seen = self.tally.share(self.data.train_rows.len()).seen;
        let limit = count(self.data.train.lengths().limit(), "character");
        let why = match self.data.train.loss_mode() {
            LossMode::Published => {
                "The published loss does not learn the first character (data_config.loss=masked does). "
            }
            LossMode::Masked => "",
        };
        let advice = format!(
            "{why}No caption is longer than {limit} here: raise data_config.max_seq_length or \
             model_config.max_positions, or give longer captions"
        );
        Ok(TrainError::NoWeight { seen, advice })
    }

    /// Says at the end of a run that a smaller part of the rows than is judged by had too many bad ones.
    pub(super) fn doubt(&mut self) {
        let (rows, limit) = (self.data.train_rows.len(), self.config().data.max_skip_ratio);
        let share = self.tally.share(rows);
        if !self.tally.enough(rows) && share.above(limit) {
            let line = format!(
                "{} of {} could not be used: a run that draws more of the data may be ended for it \
                 (data_config.max_skip_ratio={limit})",
                share.skipped,
                count(share.seen, "sample")
            );
            self.reporter.event(&Event::Warning(&line));
        }
    }

    /// `3 truncated, 1 not_an_image`.
    fn reasons(&self) -> String {
        let skipped = &self.tally.counts().skipped;
        skipped.iter().map(|(r, n)| format!("{n} {r}")).collect::<Vec<_>>().join(", ")
    }

    fn examples(&self) -> String {
        let lines: String = self.tally.first().iter().map(|bad| format!("\n  {bad}")).collect();
        let all = self.files.as_ref().map_or_else(String::new, |files| {
            format!("\nAll are listed in {}", files.skipped.path().display())
        });
        format!("The first:{lines}{all}")
    }

    fn repair(&self) -> String {
        if self.tally.first().iter().any(|bad| bad.reason == FILE_NAME) {
            let column = self.config().data.image_col.as_ref();
            let column = column.map_or_else(|| "picture column".into(), |name| format!("column `{name}`"));
            return format!(
                "The {column} holds names of files where the pictures themselves are wanted, in base64. For \
                 pictures in a folder, put a metadata.csv with a `file_name` column beside them, and set \
                 data_config.dataset=folder and data_config.data_path to the folder"
            );
        }
        let (mut advice, mut data) = (Vec::new(), self.tally.counts().skipped.clone());
        if data.remove(TOO_MANY_PIXELS).is_some() {
            advice.push("Raise data_config.max_pixels");
        }
        if data.remove(NO_MEMORY).is_some() {
            advice.push("Give the process more memory (`ulimit -v`), or lower data_config.max_pixels");
        }
        if data.remove(UNKNOWN_CHARACTER).is_some() {
            advice.push(
                "Take a vocabulary that has the characters of the captions (data_config.vocab_path=auto)",
            );
        }
        if !data.is_empty() {
            advice.push("Repair the data");
        }
        advice.join(". ")
    }

    fn go_on(&self) -> String {
        let repair = self.repair();
        let Some((path, step)) = &self.saved else {
            return format!("{repair}, or raise data_config.max_skip_ratio");
        };
        format!(
            "{repair}; or raise data_config.max_skip_ratio and go on from what is saved, with --resume {} ({})",
            path.display(),
            count(*step, "step")
        )
    }
}
