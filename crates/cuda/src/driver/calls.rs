//! While one thread records a graph, no other calls the driver: freeing memory or loading code elsewhere can end a recording
//! (`CUDA_ERROR_STREAM_CAPTURE_INVALIDATED`), and a library that loads a kernel meanwhile can fail.

use std::cell::Cell;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static RECORDING: RwLock<()> = RwLock::new(());

thread_local! {
    /// Guards that this thread holds: calls made within a call, or while it records, lock nothing.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// A call of the driver under way, or several, one within the other.
#[must_use = "others may record as soon as it is dropped"]
#[derive(Debug)]
pub struct Call {
    _shared: Option<RwLockReadGuard<'static, ()>>,
}

impl Call {
    /// Waits while another thread records.
    pub fn begin() -> Self {
        let outermost = HELD.replace(HELD.get() + 1) == 0;
        Self { _shared: outermost.then(|| RECORDING.read().unwrap_or_else(PoisonError::into_inner)) }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
    }
}

/// This thread records, alone.
#[must_use = "others call the driver as soon as it is dropped"]
#[derive(Debug)]
pub struct Recording {
    _alone: RwLockWriteGuard<'static, ()>,
}

impl Recording {
    /// Waits until no call of another thread is under way. This one must not be within a call.
    pub fn begin() -> Self {
        assert_eq!(HELD.get(), 0, "a recording within a call of the driver");
        let alone = RECORDING.write().unwrap_or_else(PoisonError::into_inner);
        HELD.set(1);
        Self { _alone: alone }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    #[test]
    fn who_records_is_alone_and_may_call() {
        let (recording, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let _outer = Call::begin();
                        let _inner = Call::begin();
                        wrong.fetch_add(recording.load(Ordering::SeqCst), Ordering::SeqCst);
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..20 {
                    let alone = Recording::begin();
                    recording.store(1, Ordering::SeqCst);
                    drop(Call::begin());
                    std::thread::sleep(Duration::from_micros(200));
                    recording.store(0, Ordering::SeqCst);
                    drop(alone);
                }
            });
        });
        assert_eq!(wrong.into_inner(), 0);
        assert_eq!(HELD.get(), 0);
    }
}
