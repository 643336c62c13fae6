//! Memory that a thread uses again from picture to picture, so that reading in a steady state asks for no large memory.
//!
//! Invariants: a thread keeps at most [`KEPT`] buffers of each kind, none above [`LARGEST`] bytes: what a rare huge picture
//! took goes back to the system. What a buffer holds when it is taken is anything, unless zeros were asked for.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::thread::LocalKey;

/// Buffers of a kind that a thread keeps: more than reading a picture has at a time.
const KEPT: usize = 12;
/// Larger ones are not kept.
const LARGEST: usize = 64 << 20;

type Spare<T> = RefCell<Vec<Vec<T>>>;

/// What buffers are made of.
pub(crate) trait Kind: Copy + 'static {
    /// Zero.
    const ZERO: Self;

    /// This thread's buffers.
    fn spare() -> &'static LocalKey<Spare<Self>>;
}

macro_rules! kinds {
    ($($kind:ty: $zero:expr),*) => {$(
        impl Kind for $kind {
            const ZERO: Self = $zero;

            fn spare() -> &'static LocalKey<Spare<Self>> {
                thread_local! {
                    static SPARE: Spare<$kind> = const { RefCell::new(Vec::new()) };
                }
                &SPARE
            }
        }
    )*};
}
kinds!(u8: 0, u16: 0, u64: 0, [i16; 64]: [0; 64], [u32; 1024]: [0; 1024]);

/// A buffer of `len` items with anything in them. It is the smallest spare one that is large enough, else the largest.
pub(crate) fn take<T: Kind>(len: usize) -> Vec<T> {
    if len > LARGEST / size_of::<T>() {
        return vec![T::ZERO; len];
    }
    let spare = T::spare().try_with(|spare| {
        let mut spare = spare.borrow_mut();
        let fit = |v: &Vec<T>| (v.capacity() < len, v.capacity().abs_diff(len));
        let best = (0..spare.len()).min_by_key(|i| fit(&spare[*i]))?;
        Some(spare.swap_remove(best))
    });
    let mut buffer = spare.ok().flatten().unwrap_or_default();
    if buffer.capacity() < len {
        // What it holds is not worth a copy.
        buffer = Vec::with_capacity(len);
    }
    buffer.resize(len, T::ZERO);
    buffer
}

/// Keeps a buffer for later.
pub(crate) fn give<T: Kind>(buffer: Vec<T>) {
    if buffer.capacity() == 0 || buffer.capacity() * size_of::<T>() > LARGEST {
        return;
    }
    // A thread that ends keeps nothing.
    let _ = T::spare().try_with(|spare| {
        let mut spare = spare.borrow_mut();
        if spare.len() < KEPT {
            spare.push(buffer);
        }
    });
}

/// A buffer that is given back when it goes.
pub(crate) struct Buffer<T: Kind>(Vec<T>);

impl<T: Kind> Buffer<T> {
    /// None.
    pub(crate) fn none() -> Self {
        Self(Vec::new())
    }

    /// `len` items with anything in them.
    pub(crate) fn any(len: usize) -> Self {
        Self(take(len))
    }

    /// `len` zeros.
    pub(crate) fn zeros(len: usize) -> Self {
        let mut items = take(len);
        items.fill(T::ZERO);
        Self(items)
    }
}

impl<T: Kind> Drop for Buffer<T> {
    fn drop(&mut self) {
        give(std::mem::take(&mut self.0));
    }
}

impl<T: Kind> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Kind> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_and_huge_ones_do_not() {
        let at = |b: &Buffer<u64>| b.as_ptr();
        let (small, large) = (Buffer::<u64>::zeros(10), Buffer::<u64>::zeros(1_000));
        let (small_at, large_at) = (at(&small), at(&large));
        drop((small, large));
        let (b, a) = (Buffer::<u64>::any(500), Buffer::<u64>::any(8));
        assert_eq!((at(&a), at(&b), a.len(), b.len()), (small_at, large_at, 8, 500));
        drop((a, b));
        drop(Buffer::<u64>::any(LARGEST / 8 + 1));
        let kept = u64::spare().with_borrow(|spare| spare.iter().map(Vec::capacity).max());
        assert_eq!(kept, Some(1_000));
        for buffer in (0..2 * KEPT).map(|_| Buffer::<u64>::any(3)).collect::<Vec<_>>() {
            drop(buffer);
        }
        assert_eq!(u64::spare().with_borrow(Vec::len), KEPT);
    }

    #[test]
    fn zeros_are_zeros() {
        Buffer::<u16>::any(20).fill(7);
        assert!(Buffer::<u16>::zeros(20).iter().all(|x| *x == 0));
    }
}
