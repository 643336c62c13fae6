//! Zeroed memory at a fixed, 64-byte-aligned address. Never moves; freed when dropped.

use bytemuck::Pod;
use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;

/// Start of every buffer and of every tensor in the arena: one cache line, one AVX-512 register.
pub const ALIGNMENT: usize = 64;

/// Size of a large page. Buffers of at least this size are made of such pages where the system has them: products
/// walk down columns of matrices, a page to an element, and would wait for address translation.
const LARGE: usize = 2 << 20;

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
        let start = NonNull::new(unsafe { alloc(layout) })?;
        if layout.align() == LARGE {
            large_pages(start, len);
        }
        // SAFETY: `len` bytes were just allocated. Zeros are written now, not when first touched, so that no run
        // waits for pages.
        unsafe { start.write_bytes(0, len) };
        Some(Self { start, len })
    }

    fn layout(len: usize) -> Option<Layout> {
        Layout::from_size_align(len.max(1), if len < LARGE { ALIGNMENT } else { LARGE }).ok()
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

/// Asks for large pages; without them everything works, slower.
#[cfg(target_os = "linux")]
fn large_pages(start: NonNull<u8>, len: usize) {
    // SAFETY: the range was just allocated, and the advice does not change its contents.
    unsafe { libc::madvise(start.as_ptr().cast(), len, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn large_pages(_: NonNull<u8>, _: usize) {}

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
