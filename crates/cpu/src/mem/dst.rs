//! Views that kernels read ([`Src`]) and write ([`Dst`]).

use super::Elem;
use crate::layout::Layout;
use crate::walk::Walk;
use std::marker::PhantomData;

/// A tensor to read: a slice from its first to its last element, and where the elements lie in it.
#[derive(Clone, Copy, Debug)]
pub struct Src<'a, T> {
    /// From the first element to the last one touched.
    pub data: &'a [T],
    /// Where the elements lie.
    pub layout: Layout,
}

impl<'a, T: Elem> Src<'a, T> {
    /// A tensor in a slice that starts at its first element.
    pub fn new(data: &'a [T], layout: Layout) -> Self {
        Self { data, layout }
    }

    /// All elements of a tensor without gaps.
    ///
    /// # Panics
    /// If it has gaps; `check` admits views only where the kernel said it reads them.
    pub fn dense(&self) -> &'a [T] {
        assert!(self.layout.is_dense(), "a kernel got a view it does not read: {:?}", self.layout);
        &self.data[..self.layout.numel()]
    }

    /// The first element, or 0 of an empty tensor.
    pub fn first(&self) -> T {
        self.data.first().copied().unwrap_or_default()
    }

    /// Rows `start..start + len` of an axis.
    pub fn narrow(&self, axis: usize, start: usize, len: usize) -> Self {
        let (skip, layout) = self.layout.narrow(axis, start, len);
        Self::new(self.data.get(skip..).unwrap_or(&[]), layout)
    }

    /// The same elements under another shape, if they have no gaps.
    pub fn reshape(&self, shape: &[usize]) -> Self {
        Self::new(self.dense(), Layout::dense(shape))
    }
}

/// A tensor to write.
///
/// Invariant: for 'a, this value alone reads and writes the elements of its layout, no two of which are the same.
#[derive(Debug)]
pub struct Dst<'a, T> {
    start: *mut T,
    layout: Layout,
    exclusive: PhantomData<&'a mut [T]>,
}

// SAFETY: a `Dst` is an exclusive borrow of its elements, like `&mut [T]`, and elements are plain numbers.
unsafe impl<T: Elem> Send for Dst<'_, T> {}
// SAFETY: a shared `Dst` gives no access to its elements.
unsafe impl<T: Elem> Sync for Dst<'_, T> {}

impl<'a, T: Elem> Dst<'a, T> {
    /// # Safety
    /// The invariant of the type must hold for `start` and `layout`, and the memory must be initialised.
    pub(super) unsafe fn new(start: *mut T, layout: Layout) -> Self {
        Self { start, layout, exclusive: PhantomData }
    }

    /// A slice as a tensor without gaps.
    ///
    /// # Panics
    /// If it has another number of elements.
    pub fn from_slice(slice: &'a mut [T], shape: &[usize]) -> Self {
        let layout = Layout::dense(shape);
        assert_eq!(layout.numel(), slice.len(), "elements of {shape:?}");
        // SAFETY: the slice is borrowed exclusively for 'a, and a dense layout touches each element once.
        unsafe { Self::new(slice.as_mut_ptr(), layout) }
    }

    /// Where the elements lie.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// First element, for the matrix products.
    pub(super) fn start(&self) -> *mut T {
        self.start
    }

    /// The same tensor for a shorter time.
    pub fn reborrow(&mut self) -> Dst<'_, T> {
        // SAFETY: `self` is borrowed exclusively while the result lives.
        unsafe { Dst::new(self.start, self.layout) }
    }

    /// All elements of a tensor without gaps.
    ///
    /// # Panics
    /// If it has gaps; `check` admits views only where the kernel said it writes them.
    pub fn dense(self) -> &'a mut [T] {
        assert!(self.layout.is_dense(), "a kernel got a view it does not write: {:?}", self.layout);
        // SAFETY: without gaps, the elements are these and no others (invariant).
        unsafe { std::slice::from_raw_parts_mut(self.start, self.layout.numel()) }
    }

    /// Rows `start..start + len` of an axis.
    pub fn narrow(self, axis: usize, start: usize, len: usize) -> Self {
        let (skip, layout) = self.layout.narrow(axis, start, len);
        // SAFETY: some of the same elements; `self` is consumed.
        unsafe { Self::new(self.start.wrapping_add(skip), layout) }
    }

    /// Row `i` of the first axis, which goes away.
    pub fn index(self, i: usize) -> Self {
        let one = self.narrow(0, i, 1);
        let rest = Layout::new(&one.layout.shape()[1..], &one.layout.strides()[1..]);
        // SAFETY: the same elements under a shorter index; `one` is consumed.
        unsafe { Self::new(one.start, rest) }
    }

    /// An axis as two, the inner one of extent `inner`.
    pub fn split_axis(self, axis: usize, inner: usize) -> Self {
        // SAFETY: the same elements under another index; `self` is consumed.
        unsafe { Self::new(self.start, self.layout.split_axis(axis, inner)) }
    }

    /// Axes in another order.
    pub fn permute(self, axes: &[usize]) -> Self {
        // SAFETY: the same elements under another index; `self` is consumed.
        unsafe { Self::new(self.start, self.layout.permute(axes)) }
    }

    /// The same elements under another shape, if they have no gaps.
    ///
    /// # Panics
    /// If there are gaps or the numbers of elements differ.
    pub fn reshape(self, shape: &[usize]) -> Self {
        let layout = Layout::dense(shape);
        assert!(self.layout.is_dense() && layout.numel() == self.layout.numel(), "reshape to {shape:?}");
        // SAFETY: the same elements under another index; `self` is consumed.
        unsafe { Self::new(self.start, layout) }
    }

    /// All elements of the last axis at an index of the others.
    ///
    /// # Panics
    /// If the index is outside, or the last axis has gaps.
    pub fn line(&mut self, index: &[usize]) -> &mut [T] {
        let (shape, strides) = (self.layout.shape(), self.layout.strides());
        assert!(
            index.len() + 1 == shape.len() && self.layout.last_stride() == 1,
            "a line of {:?}",
            self.layout
        );
        assert!(index.iter().zip(shape).all(|(i, n)| i < n), "line {index:?} of {shape:?}");
        let skip: usize = index.iter().zip(strides).map(|(i, s)| i * s).sum();
        // SAFETY: neighbours along the last axis are adjacent, so the elements are all of this tensor; `self` is
        // borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(skip), shape[shape.len() - 1]) }
    }

    /// Copies a tensor of the same shape.
    pub fn copy_from(&mut self, src: &Src<'_, T>) {
        let walk = Walk::new([&self.layout, &src.layout]);
        let [to, from] = walk.inner();
        walk.runs(0..self.layout.numel(), |_, len, [at, s]| {
            if to == 1 && from == 1 {
                // SAFETY: the walk stays inside the layout, and a run of stride 1 is adjacent elements of it.
                let out = unsafe { std::slice::from_raw_parts_mut(self.start.add(at), len) };
                out.copy_from_slice(&src.data[s..s + len]);
            } else {
                for i in 0..len {
                    // SAFETY: the walk stays inside the layout.
                    unsafe { self.start.add(at + i * to).write(src.data[s + i * from]) }
                }
            }
        });
    }

    /// Sets runs of adjacent elements from runs of a tensor of the same shape.
    pub fn map_from<S: Elem>(&mut self, src: &Src<'_, S>, f: impl Fn(&[S], &mut [T])) {
        let walk = Walk::new([&self.layout, &src.layout]);
        let [to, from] = walk.inner();
        walk.runs(0..self.layout.numel(), |_, len, [at, s]| {
            let (runs, len) = if to == 1 && from == 1 { (1, len) } else { (len, 1) };
            for i in 0..runs {
                // SAFETY: the walk stays inside the layout; a run of stride 1 is adjacent elements of it, and one
                // element is adjacent to itself.
                let out = unsafe { std::slice::from_raw_parts_mut(self.start.add(at + i * to), len) };
                f(&src.data[s + i * from..][..len], out);
            }
        });
    }

    /// Sets every element.
    pub fn fill(&mut self, value: T) {
        let walk = Walk::new([&self.layout]);
        let [stride] = walk.inner();
        walk.runs(0..self.layout.numel(), |_, len, [at]| {
            for i in 0..len {
                // SAFETY: the walk stays inside the layout.
                unsafe { self.start.add(at + i * stride).write(value) }
            }
        });
    }
}
