//! The end of a run: last validation and snapshot, sample captions, the summary.

use super::Run;
use crate::caption::{Caption, Captioner, Sampling};
use crate::error::TrainError;
use crate::report::{Attributes, Event, Summary};
use crate::settings;
use ocelli_config::Dataset as Kind;
use ocelli_data::source::shapes;

/// Validation pictures captioned to count right attributes of drawn pictures.
const SCORED: usize = 512;

impl Run<'_> {
    pub(super) fn end(mut self) -> Result<Summary, TrainError> {
        self.summary.interrupted = self.interrupted() && self.step < self.total;
        self.judge_skips(true)?;
        if self.whole.steps > 0 && self.saved.as_ref().is_none_or(|(_, step)| *step != self.step) {
            self.save()?;
        }
        if !self.summary.interrupted && self.validated_at != Some(self.step) {
            self.validate()?;
        }
        if !self.interrupted() {
            self.samples()?;
        }
        self.summary.steps = self.step;
        self.summary.samples = self.whole.samples;
        self.summary.training = self.whole.time;
        self.summary.skipped = self.skips.counts.iter().map(|(r, n)| (r.to_string(), *n)).collect();
        self.reporter.event(&Event::Finished(&self.summary));
        Ok(self.summary)
    }

    /// Captions some validation pictures; for drawn ones, counts the attributes named right.
    fn samples(&mut self) -> Result<(), TrainError> {
        let shown = self.config().trainer.sample_captions;
        let scored = self.config().data.dataset == Kind::Shapes;
        let wanted = if scored { shown.max(SCORED) } else { shown };
        let Some((dataset, rows)) = self.data.validation.clone().filter(|_| wanted > 0) else {
            return Ok(());
        };
        let read = |row| dataset.source().read(row, dataset.size()).ok();
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
            self.reporter.event(&Event::Attributes(attributes(&truths, &captions)));
        }
        Ok(())
    }
}

/// The share of attributes named right, beside both baselines.
fn attributes(truths: &[&str], captions: &[Caption]) -> Attributes {
    let scenes: Vec<shapes::Scene> = truths.iter().filter_map(|t| shapes::Scene::parse(t)).collect();
    let (mut right, mut total) = (0, 0);
    for (scene, caption) in scenes.iter().zip(captions) {
        let score = shapes::score(&caption.text, scene);
        (right, total) = (right + score.right, total + score.total);
    }
    Attributes {
        pictures: scenes.len(),
        right: right as f64 / total.max(1) as f64,
        chance: shapes::chance(&scenes).share(),
        commonest: shapes::commonest(&scenes).score.share(),
    }
}
