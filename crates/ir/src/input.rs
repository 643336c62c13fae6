//! What a program is given: bytes of the host, and memory of the host that a device reads by itself while the host goes on.
//!
//! Invariant: [`HostBytes`] are written through their only handle alone. An executor that copies them later keeps a handle until
//! the copy is done, so whoever can write them knows that no one reads them any more.

use crate::executor::ExecError;
use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// An input of a run of a program.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// Bytes that are read before the run returns.
    Bytes(&'a [u8]),
    /// Memory that may be read later, without a copy by the host: the executor keeps a handle until it was.
    Shared(&'a HostBytes),
    /// Rows of a store, one behind the other: only their numbers go to the device. [`Input::ZEROS`] stands for a row of zeros.
    Rows {
        /// Of the executor that runs the program.
        store: &'a dyn Store,
        /// Numbers of rows.
        rows: &'a [u32],
    },
}

impl<'a> Input<'a> {
    /// The number of no row: zeros.
    pub const ZEROS: u32 = u32::MAX;

    /// Its bytes, if the host has them.
    pub fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Shared(memory) => Some(memory),
            Self::Rows { .. } => None,
        }
    }

    /// How many bytes the program reads.
    pub fn size(self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Shared(memory) => memory.len(),
            Self::Rows { store, rows } => rows.len().saturating_mul(store.row_bytes()),
        }
    }

    /// The first row that its store lacks.
    pub fn lacking(self) -> Option<u32> {
        match self {
            Self::Rows { store, rows } => {
                rows.iter().copied().find(|&row| row != Self::ZEROS && row as usize >= store.rows())
            }
            _ => None,
        }
    }
}

impl<'a, T: AsRef<[u8]> + ?Sized> From<&'a T> for Input<'a> {
    fn from(bytes: &'a T) -> Self {
        Self::Bytes(bytes.as_ref())
    }
}

/// Rows of bytes that stay on a device.
pub trait Store: Any + fmt::Debug + Send + Sync {
    /// How many.
    fn rows(&self) -> usize;

    /// Bytes of a row.
    fn row_bytes(&self) -> usize;

    /// Writes whole or part rows from row `first` on; what was not written is not set.
    ///
    /// # Errors
    /// If they do not fit, or the device fails.
    fn write(&mut self, first: usize, bytes: &[u8]) -> Result<(), ExecError>;
}

/// Memory of the host, as an executor has it: page-locked for a GPU.
pub trait HostMemory: Any + fmt::Debug + Send + Sync {
    /// Its contents.
    fn bytes(&self) -> &[u8];

    /// Its contents, to be written.
    fn bytes_mut(&mut self) -> &mut [u8];
}

impl HostMemory for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }
}

/// A handle of memory of the host. A clone is another handle of the same memory.
#[derive(Clone)]
pub struct HostBytes {
    memory: Arc<dyn HostMemory>,
    len: usize,
}

impl HostBytes {
    /// A handle of all of `memory`.
    pub fn new(memory: impl HostMemory + 'static) -> Self {
        let len = memory.bytes().len();
        Self { memory: Arc::new(memory), len }
    }

    /// So many zeros in plain memory; none if there is not so much.
    pub fn plain(bytes: usize) -> Option<Self> {
        let mut memory = Vec::new();
        memory.try_reserve_exact(bytes).ok()?;
        memory.resize(bytes, 0_u8);
        Some(Self::new(memory))
    }

    /// True if its memory is of type `T`: by that an executor knows its own.
    pub fn is<T: HostMemory>(&self) -> bool {
        let memory: &dyn Any = &*self.memory;
        memory.is::<T>()
    }

    /// Its contents, to be written; none while there is another handle.
    pub fn get_mut(&mut self) -> Option<&mut [u8]> {
        Some(&mut Arc::get_mut(&mut self.memory)?.bytes_mut()[..self.len])
    }

    /// True if there is no other handle, and there will be none unless this one is cloned.
    pub fn is_free(&mut self) -> bool {
        Arc::get_mut(&mut self.memory).is_some()
    }

    /// Becomes `len` bytes long, its contents those of its memory; false, and as it was, if that is smaller.
    pub fn set_len(&mut self, len: usize) -> bool {
        let fits = len <= self.memory.bytes().len();
        if fits {
            self.len = len;
        }
        fits
    }
}

impl Default for HostBytes {
    fn default() -> Self {
        Self::new(vec![])
    }
}

impl From<Vec<u8>> for HostBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(bytes)
    }
}

impl FromIterator<u8> for HostBytes {
    fn from_iter<I: IntoIterator<Item = u8>>(bytes: I) -> Self {
        Self::new(Vec::from_iter(bytes))
    }
}

impl Deref for HostBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory.bytes()[..self.len]
    }
}

impl AsRef<[u8]> for HostBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq for HostBytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for HostBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostBytes({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_written_through_its_only_handle() {
        let mut one = HostBytes::plain(6).unwrap();
        one.get_mut().unwrap().fill(7);
        let kept = one.clone();
        assert!(one.get_mut().is_none() && !one.is_free());
        assert_eq!((&*kept, Input::Shared(&one).bytes()), (&[7; 6][..], Some(&[7; 6][..])));
        assert!(one.is::<Vec<u8>>());
        drop(kept);
        assert!(one.is_free());
        one.get_mut().unwrap()[5] = 1;
        assert!(one.set_len(2) && !one.set_len(7));
        assert_eq!(*one, [7; 2]);
        assert!(one.set_len(6));
        assert_eq!(*one, [7, 7, 7, 7, 7, 1]);
        assert!(HostBytes::plain(usize::MAX).is_none());
    }
}
