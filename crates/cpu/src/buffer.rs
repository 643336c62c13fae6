//! Zeroed memory at a fixed, 64-byte-aligned address. Never moves; freed when dropped.

use bytemuck::Pod;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

/// Start of every buffer and of every tensor in the arena: one cache line, one AVX-512 register.
pub const ALIGNMENT: usize = 64;

/// An owned block of bytes.
#[derive(Debug)]
pub struct Buffer {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a `Buffer` owns its memory alone, like a `Box<[u8]>`; bytes may be sent and shared between threads.
unsafe impl Send for Buffer {}
// SAFETY: as above; shared access gives out `&[u8]` or a raw pointer, whose users state their own reasons.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// `len` zero bytes; none if memory cannot be had.
    pub fn new(len: usize) -> Option<Self> {
        let layout = Self::layout(len)?;
        // SAFETY: the layout has at least one byte.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self { start, len })
    }

    fn layout(len: usize) -> Option<Layout> {
        Layout::from_size_align(len.max(1), ALIGNMENT).ok()
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// First byte. Writing through it needs what writing through any raw pointer needs; it is the pointer that
    /// the allocator gave, so it stays valid beside shared borrows of `self`.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `len` initialised bytes belong to `self`; the borrow of `self` keeps others from writing, but
        // for holders of `as_ptr`, who promise not to write while anyone reads.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// All bytes, to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// The first `n` elements of a type, to write.
    ///
    /// # Panics
    /// If they do not fit.
    pub fn slice<T: Pod>(&mut self, n: usize) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.bytes_mut()[..n * size_of::<T>()])
    }

    /// Makes room for `len` bytes, keeping the contents; false if memory cannot be had.
    pub fn grow(&mut self, len: usize) -> bool {
        if len <= self.len {
            return true;
        }
        let Some(mut larger) = Self::new(len) else { return false };
        larger.bytes_mut()[..self.len].copy_from_slice(self.bytes());
        *self = larger;
        true
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(layout) = Self::layout(self.len) {
            // SAFETY: allocated in `new` with this layout, freed once.
            unsafe { dealloc(self.start.as_ptr(), layout) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligned_zeroed_and_kept_on_growth() {
        let mut b = Buffer::new(12).unwrap();
        assert_eq!(b.as_ptr() as usize % ALIGNMENT, 0);
        b.slice::<u32>(3)[2] = 7;
        assert!(b.grow(4096));
        assert_eq!((b.len(), b.slice::<u32>(4)), (4096, &mut [0, 0, 7, 0][..]));
        assert!(Buffer::new(usize::MAX).is_none());
    }
}
