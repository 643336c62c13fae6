//! The caches of decoded pictures of a run: what is amiss with them is told, and what a run leaves unread is read at its end.

use super::Run;
use crate::report::Event;
use ocelli_data::text::count;
use std::sync::atomic::Ordering;

impl Run<'_> {
    /// Tells what is amiss with a cache.
    pub(super) fn tell_of_caches(&mut self) {
        for cache in &self.caches {
            if let Some(found) = cache.trouble() {
                self.reporter.event(&Event::Warning(&found));
            }
        }
    }

    /// Makes the caches whole at the end of a run, if more than half of the pictures are there.
    pub(super) fn complete_caches(&mut self) {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        for cache in &self.caches {
            if cache.is_whole() || self.interrupted() {
                continue;
            }
            let (missing, total) = (cache.missing(), cache.pictures());
            if missing > total / 2 {
                let line = format!(
                    "no cache was made: this run read {} of {}; `ocelli data prepare` makes one of all of them",
                    total - missing,
                    count(total, "picture")
                );
                self.reporter.event(&Event::Note(&line));
                continue;
            }
            let interrupted = &self.request.interrupted;
            let mut step = |missing: usize| {
                self.reporter.event(&Event::Looked { done: total - missing, total });
                !interrupted.load(Ordering::Relaxed)
            };
            cache.complete(threads - 1, &mut step);
            self.reporter.event(&Event::Looked { done: total, total });
        }
        self.tell_of_caches();
    }
}
