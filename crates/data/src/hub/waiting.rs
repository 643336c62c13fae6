//! What the client waits for, told to a person when that takes long.
//!
//! Invariant: at most one line is told in [`EVERY`], whatever is waited for in turn.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Waits shorter than this are not told, and a longer one once in this time.
pub(super) const EVERY: Duration = Duration::from_secs(5);

/// What is waited for at present.
#[derive(Debug, Default)]
pub(super) struct Waiting(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// What for, and since when; `None`: nothing.
    of: Option<(String, Instant)>,
    /// The end of the wait, if it is known: then it is told at once.
    until: Option<Instant>,
    /// When the last line was told.
    told: Option<Instant>,
}

impl Waiting {
    /// From now on `what` is waited for: `no answer yet from https://...`.
    pub(super) fn begin(&self, what: String) {
        self.with(|state| (state.of, state.until) = (Some((what, Instant::now())), None));
    }

    /// From now on nothing is done for so long, because of `what`.
    pub(super) fn pause(&self, what: String, time: Duration) {
        let now = Instant::now();
        self.with(|state| (state.of, state.until) = (Some((what, now)), now.checked_add(time)));
    }

    /// Something came, and more is waited for.
    pub(super) fn moved(&self) {
        self.with(|state| state.of.iter_mut().for_each(|(_, since)| *since = Instant::now()));
    }

    /// Nothing is waited for.
    pub(super) fn end(&self) {
        self.with(|state| (state.of, state.until) = (None, None));
    }

    /// The line that is due, no sooner than `every` after the one before.
    pub(super) fn due(&self, every: Duration) -> Option<String> {
        self.with(|state| {
            let (what, since) = state.of.as_ref()?;
            let waited = since.elapsed();
            let left = state.until.map(|until| until.saturating_duration_since(Instant::now()));
            let early = left.map_or(waited < every, |left| waited + left < every);
            if early || state.told.is_some_and(|told| told.elapsed() < every) {
                return None;
            }
            state.told = Some(Instant::now());
            Some(match left {
                Some(left) => format!("hub: {what}: asked again in {} s", left.as_secs_f64().ceil()),
                None => format!("hub: {what} for {} s", waited.as_secs()),
            })
        })
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_waits_are_told_and_not_often() {
        let (every, waiting) = (Duration::from_millis(40), Waiting::default());
        let due = || waiting.due(every);
        assert_eq!(due(), None);
        waiting.begin("no answer yet from x".into());
        assert_eq!(due(), None);
        std::thread::sleep(every);
        assert_eq!(due().as_deref(), Some("hub: no answer yet from x for 0 s"));
        assert_eq!(due(), None);
        std::thread::sleep(every);
        waiting.moved();
        assert_eq!(due(), None);
        waiting.pause("status 429".into(), Duration::from_millis(1_500));
        assert_eq!(due().as_deref(), Some("hub: status 429: asked again in 2 s"));
        waiting.pause("status 429".into(), Duration::from_millis(1_500));
        assert_eq!(due(), None);
        std::thread::sleep(every);
        assert!(due().is_some());
        waiting.end();
        std::thread::sleep(every);
        assert_eq!(due(), None);
    }
}
