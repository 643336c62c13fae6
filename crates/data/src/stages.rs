//! How long the stages of a row take, measured only while someone asks for it.
//!
//! Times are those of all threads together, by the clock: what a thread waits for (a lock, a processor) is in them. While
//! nobody asks, a stage costs one look at a flag.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// To the bytes of a picture's file: from a disk, out of a table, out of base64.
    Read,
    /// To pixels.
    Decode,
    /// To the model's square, in its place in the batch.
    Resize,
    /// A caption to ids, and these into the batch.
    Collate,
}

impl Stage {
    /// All of them, in order.
    pub const ALL: [Self; 4] = [Self::Read, Self::Decode, Self::Resize, Self::Collate];

    /// As people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Decode => "decode",
            Self::Resize => "resize",
            Self::Collate => "collate",
        }
    }
}

static ASKED: AtomicBool = AtomicBool::new(false);
static NANOSECONDS: [AtomicU64; Stage::ALL.len()] = [const { AtomicU64::new(0) }; Stage::ALL.len()];

/// Measures from here on, until it is dropped. All of a process is measured: there should be one at a time.
#[derive(Debug)]
pub struct Watch(());

impl Watch {
    /// Begins.
    pub fn begin() -> Self {
        ASKED.store(true, Ordering::Relaxed);
        let watch = Self(());
        watch.lap();
        watch
    }

    /// What each of [`Stage::ALL`] took since the last lap, in all threads together.
    pub fn lap(&self) -> [Duration; Stage::ALL.len()] {
        std::array::from_fn(|i| Duration::from_nanos(NANOSECONDS[i].swap(0, Ordering::Relaxed)))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        ASKED.store(false, Ordering::Relaxed);
    }
}

/// Does `f`, which is (a part of) a stage.
#[inline]
pub(crate) fn timed<T>(stage: Stage, f: impl FnOnce() -> T) -> T {
    if !ASKED.load(Ordering::Relaxed) {
        return f();
    }
    let start = Instant::now();
    let done = f();
    let nanoseconds = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    NANOSECONDS[stage as usize].fetch_add(nanoseconds, Ordering::Relaxed);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Other tests of this process may run stages meanwhile: times are lower bounds.
    #[test]
    fn stages_count_while_asked_for() {
        let work = || timed(Stage::Resize, || std::thread::sleep(Duration::from_millis(3)));
        let watch = Watch::begin();
        std::thread::scope(|s| (0..2).for_each(|_| drop(s.spawn(work))));
        assert!(watch.lap()[Stage::Resize as usize] >= Duration::from_millis(6));
        drop(watch);
        let before = NANOSECONDS[Stage::Resize as usize].load(Ordering::Relaxed);
        work();
        assert!(NANOSECONDS[Stage::Resize as usize].load(Ordering::Relaxed) - before < 3_000_000);
    }
}
