//! The pictures of a batch as rows that threads write at the same time, without a copy and without a lock that two of them
//! want: a batch's memory is divided once, each row is lent to who reads it, and the whole comes back when all are done.

use std::sync::{Mutex, PoisonError};

use ocelli_ir::executor::HostBytes;
use self_cell::{MutBorrow, self_cell};

/// Each row is written by one thread, so its lock is never waited for.
type Lent<'a> = Vec<Mutex<&'a mut [u8]>>;

self_cell!(
    struct Divided {
        owner: MutBorrow<HostBytes>,
        #[not_covariant]
        dependent: Lent,
    }
);

/// A batch's pictures, divided.
pub(super) struct Rows(Divided);

impl Rows {
    /// Divides `memory` into rows of `bytes` bytes, at least 1; none if it has another handle.
    pub(super) fn divide(memory: HostBytes, bytes: usize) -> Option<Self> {
        let divided = Divided::try_new(MutBorrow::new(memory), |memory| {
            let rows = memory.borrow_mut().get_mut().ok_or(())?;
            Ok::<_, ()>(rows.chunks_exact_mut(bytes).map(Mutex::new).collect())
        });
        divided.ok().map(Self)
    }

    /// Lends row `row` to `f`.
    pub(super) fn with<T>(&self, row: usize, f: impl FnOnce(&mut [u8]) -> T) -> T {
        // What a panic left half written is undefined, as what an error leaves.
        self.0.with_dependent(|_, rows| f(&mut rows[row].lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// The memory as it was.
    pub(super) fn join(self) -> HostBytes {
        self.0.into_owner().into_inner()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_written_at_once_and_in_place() {
        let memory = HostBytes::from(vec![0; 12]);
        let at = memory.as_ptr();
        assert!(Rows::divide(memory.clone(), 3).is_none());
        let rows = Rows::divide(memory, 3).unwrap();
        std::thread::scope(|s| {
            let rows = &rows;
            for row in 0..4 {
                s.spawn(move || rows.with(row, |bytes| bytes.fill(row as u8)));
            }
        });
        // One row within another: each has a lock of its own.
        rows.with(1, |outer| rows.with(2, |inner| inner[0] = outer[0] + 8));
        let memory = rows.join();
        assert_eq!((memory.as_ptr(), &memory[..]), (at, &[0, 0, 0, 1, 1, 1, 9, 2, 2, 3, 3, 3][..]));
    }
}
