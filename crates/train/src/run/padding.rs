//! How much of the text is padding, and how much would be if rows were not brought together by length
//! (`data_config.bucket`).

use super::Run;
use crate::report::{Event, Padding};
use ocelli_data::loader::Loaded;

impl Padding {
    /// Counts the rows of a batch that were drawn.
    pub(super) fn add(&mut self, loaded: &Loaded, pad: u32) {
        let batch = &loaded.batch;
        let rows = (batch.real_rows + batch.skipped.len()) as u64;
        self.places += rows * batch.text_len as u64;
        self.unsorted += rows * loaded.unsorted_text as u64;
        self.captions += batch.tokens.iter().filter(|id| **id != pad).count() as u64;
    }

    /// What came since `before`.
    fn since(self, before: Self) -> Self {
        Self {
            places: self.places - before.places,
            unsorted: self.unsorted - before.unsorted,
            captions: self.captions - before.captions,
        }
    }
}

impl Run<'_> {
    /// Tells of the padding since it was last told of, if rows are brought together by length.
    pub(super) fn tell_padding(&mut self) {
        let new = self.padding.since(self.padding_told);
        self.padding_told = self.padding;
        if !self.config().data.bucket || new.places == 0 {
            return;
        }
        let share = |of: u64| 100.0 * (1.0 - new.captions as f64 / of.max(1) as f64);
        let line = format!(
            "padding: {} of {} text places ({:.1} %); without data_config.bucket {} of {} ({:.1} %)",
            new.places.saturating_sub(new.captions),
            new.places,
            share(new.places),
            new.unsorted.saturating_sub(new.captions),
            new.unsorted,
            share(new.unsorted),
        );
        self.reporter.event(&Event::Note(&line));
    }
}
