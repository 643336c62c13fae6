//! Where the elements of a tensor lie, in a fixed number of words, so that kernels never allocate for a shape.
//!
//! Invariant: entries behind `rank` are never read. A layout does not hold an offset; the slice or pointer it
//! belongs to starts at the first element.

use ocelli_ir::View;

/// Highest rank that kernels take.
pub const MAX_RANK: usize = 8;

/// Extents and strides (in elements), outermost first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layout {
    rank: usize,
    shape: [usize; MAX_RANK],
    strides: [usize; MAX_RANK],
}

impl Layout {
    /// From extents and strides.
    ///
    /// # Panics
    /// If their lengths differ or exceed [`MAX_RANK`].
    pub fn new(shape: &[usize], strides: &[usize]) -> Self {
        assert!(shape.len() == strides.len() && shape.len() <= MAX_RANK, "a layout of rank {}", shape.len());
        let mut out = Self { rank: shape.len(), ..Self::default() };
        out.shape[..shape.len()].copy_from_slice(shape);
        out.strides[..shape.len()].copy_from_slice(strides);
        out
    }

    /// Row-major without gaps.
    pub fn dense(shape: &[usize]) -> Self {
        let mut strides = [1; MAX_RANK];
        for i in (1..shape.len()).rev() {
            strides[i - 1] = strides[i] * shape[i];
        }
        Self::new(shape, &strides[..shape.len()])
    }

    /// From a view, without its offset.
    pub fn of(view: &View) -> Self {
        Self::new(&view.shape, &view.strides)
    }

    /// Extents.
    pub fn shape(&self) -> &[usize] {
        &self.shape[..self.rank]
    }

    /// Strides in elements.
    pub fn strides(&self) -> &[usize] {
        &self.strides[..self.rank]
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.shape().iter().product()
    }

    /// One past the largest element touched, 0 if empty.
    pub fn end(&self) -> usize {
        if self.numel() == 0 {
            return 0;
        }
        1 + self.shape().iter().zip(self.strides()).map(|(&n, &s)| (n - 1) * s).sum::<usize>()
    }

    /// True if the elements lie in row-major order without gaps.
    pub fn is_dense(&self) -> bool {
        let mut want = 1;
        (0..self.rank).rev().all(|i| {
            let fits = self.shape[i] == 1 || self.strides[i] == want;
            want *= self.shape[i];
            fits
        })
    }

    /// Stride of the last axis as a kernel walks it: 1 where there is at most one element.
    pub fn last_stride(&self) -> usize {
        match self.rank.checked_sub(1) {
            Some(i) if self.shape[i] > 1 => self.strides[i],
            _ => 1,
        }
    }

    /// The layout repeated to `shape` as NumPy does.
    ///
    /// # Panics
    /// If the shapes do not broadcast; the shape rules of the ops have seen to that.
    pub fn broadcast(&self, shape: &[usize]) -> Self {
        let lead = shape.len() - self.rank;
        let mut out = Self::new(shape, &[0; MAX_RANK][..shape.len()]);
        for i in 0..self.rank {
            assert!(self.shape[i] == shape[lead + i] || self.shape[i] == 1, "{self:?} to {shape:?}");
            out.strides[lead + i] = if self.shape[i] == shape[lead + i] { self.strides[i] } else { 0 };
        }
        out
    }

    /// Rows `start..start + len` of an axis, and how many elements further they begin.
    ///
    /// # Panics
    /// If the axis or the rows do not exist.
    pub fn narrow(&self, axis: usize, start: usize, len: usize) -> (usize, Self) {
        assert!(axis < self.rank && start <= self.shape[axis] && len <= self.shape[axis] - start);
        let mut out = *self;
        out.shape[axis] = len;
        (start * self.strides[axis], out)
    }

    /// An axis of extent `outer * inner` as two axes.
    ///
    /// # Panics
    /// If the extent does not divide, or the rank grows too high.
    pub fn split_axis(&self, axis: usize, inner: usize) -> Self {
        assert!(
            axis < self.rank && self.rank < MAX_RANK && inner > 0 && self.shape[axis].is_multiple_of(inner)
        );
        let mut out = *self;
        out.rank += 1;
        for i in (axis + 1..self.rank).rev() {
            (out.shape[i + 1], out.strides[i + 1]) = (self.shape[i], self.strides[i]);
        }
        (out.shape[axis], out.strides[axis]) = (self.shape[axis] / inner, self.strides[axis] * inner);
        (out.shape[axis + 1], out.strides[axis + 1]) = (inner, self.strides[axis]);
        out
    }

    /// Axes in another order.
    ///
    /// # Panics
    /// If `axes` is not a permutation.
    pub fn permute(&self, axes: &[usize]) -> Self {
        let seen = axes.iter().fold(0u32, |seen, &a| seen | 1 << a);
        assert!(axes.len() == self.rank && seen == (1 << self.rank) - 1, "{axes:?} of rank {}", self.rank);
        let mut out = *self;
        for (i, &a) in axes.iter().enumerate() {
            (out.shape[i], out.strides[i]) = (self.shape[a], self.strides[a]);
        }
        out
    }
}
