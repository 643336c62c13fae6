//! Memory whose size a file decides. Rust's collections end the process where there is none; asked for beforehand, it is
//! one bad sample.
//!
//! Memory is nearly always there: what a process may take is limited by `ulimit -v` and the like, or not at all. Where it is
//! limited, samples that take much are read one at a time ([`Reading`]), so that no two count on the same.

use std::cell::{Cell, RefCell};
use std::hint::black_box;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use thiserror::Error;

/// The reason of a bad sample for which there is no memory.
pub const NO_MEMORY: &str = "no_memory";

/// Less is not asked for: it is what all parts of a process take now and then.
const SMALL: u64 = 8 << 20;
/// Left for those, where memory is limited.
const SPARE: u64 = 64 << 20;

/// What cannot be had.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("{wanted} bytes of memory cannot be had (`ulimit -v` shows a limit, if there is one)")]
pub(crate) struct Lack {
    wanted: u64,
}

impl Lack {
    /// True if `found` is, or ends with, the text of one: where only text gets through other people's code.
    pub(crate) fn is_told(found: &str) -> bool {
        found.contains("bytes of memory cannot be had")
    }
}

thread_local! {
    /// How many [`Reading`]s there are, one within the other.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// Held by who reads a sample that takes much.
    static ALONE: RefCell<Option<MutexGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// Asks for `bytes`, without taking them: who is told that they are there takes them next.
pub(crate) fn room(bytes: u64) -> Result<(), Lack> {
    if bytes < SMALL {
        return Ok(());
    }
    if DEPTH.get() > 0 && limited() {
        ALONE.with_borrow_mut(|alone| {
            alone.get_or_insert_with(gate);
        });
    }
    let (lack, spare) = (Lack { wanted: bytes }, if limited() { SPARE } else { 0 });
    let all = usize::try_from(bytes.saturating_add(spare)).map_err(|_| lack)?;
    let mut probe = Vec::<u8>::new();
    probe.try_reserve_exact(all).map_err(|_| lack)?;
    // Unlooked at, it would not be asked for at all.
    black_box(probe.as_mut_ptr());
    Ok(())
}

/// A sample is being read on this thread: from the first time that it asks for much, it is the only one that does.
pub(crate) struct Reading;

impl Reading {
    pub(crate) fn begin() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        Self
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        if DEPTH.get() == 0 {
            ALONE.take();
        }
    }
}

fn gate() -> MutexGuard<'static, ()> {
    static GATE: Mutex<()> = Mutex::new(());
    GATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True if memory is limited, as far as the system says so in text.
fn limited() -> bool {
    static LIMITED: OnceLock<bool> = OnceLock::new();
    *LIMITED.get_or_init(|| {
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        has_limit(&text("/proc/self/limits")) || text("/proc/sys/vm/overcommit_memory").trim() == "2"
    })
}

/// True if a table of limits has one of memory.
fn has_limit(table: &str) -> bool {
    let rest = |line: &str| {
        let rest = line.strip_prefix("Max address space").or_else(|| line.strip_prefix("Max data size"))?;
        Some(!rest.trim_start().starts_with("unlimited"))
    };
    table.lines().filter_map(rest).any(|limited| limited)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_had_is_told() {
        assert_eq!(room(SMALL), Ok(()));
        let lack = room(1 << 60).unwrap_err();
        assert!(Lack::is_told(&format!("page 3: {lack}")) && !Lack::is_told("page 3: corrupt"));
        assert!(room(u64::MAX).is_err());
    }

    #[test]
    fn limits_are_read() {
        let table = |space: &str| {
            format!(
                "Limit   Soft Limit  Hard Limit\nMax data size   unlimited   unlimited\nMax address space   {space}\n"
            )
        };
        assert!(
            has_limit(&table("4294967296  unlimited  bytes")) && !has_limit(&table("unlimited  unlimited"))
        );
        assert!(!has_limit(""));
    }

    #[test]
    fn a_reading_ends_with_its_outermost() {
        let outer = Reading::begin();
        drop(Reading::begin());
        assert_eq!(DEPTH.get(), 1);
        drop(outer);
        assert!(DEPTH.get() == 0 && ALONE.with_borrow(Option::is_none));
    }
}
