//! Walks several layouts of one shape together, in row-major order, in runs along the innermost axis.
//!
//! Axes that follow each other without a gap in every layout are merged first, so that dense tensors are one
//! run, a bias row over a matrix is one run per row, and so on.

use crate::layout::{Layout, MAX_RANK};
use std::ops::Range;

/// `N` layouts of one shape.
#[derive(Clone, Copy, Debug)]
pub struct Walk<const N: usize> {
    rank: usize,
    shape: [usize; MAX_RANK],
    strides: [[usize; MAX_RANK]; N],
}

impl<const N: usize> Walk<N> {
    /// Merges the axes of layouts that all have the same shape.
    ///
    /// # Panics
    /// If the shapes differ.
    pub fn new(layouts: [&Layout; N]) -> Self {
        let shape = layouts[0].shape();
        assert!(layouts.iter().all(|l| l.shape() == shape), "layouts of different shapes: {layouts:?}");
        let mut out = Self { rank: 0, shape: [1; MAX_RANK], strides: [[1; MAX_RANK]; N] };
        for (axis, &n) in shape.iter().enumerate().filter(|(_, n)| **n != 1) {
            let joins = out.rank > 0
                && (0..N).all(|i| out.strides[i][out.rank - 1] == n * layouts[i].strides()[axis]);
            if joins {
                out.shape[out.rank - 1] *= n;
            } else {
                out.shape[out.rank] = n;
                out.rank += 1;
            }
            (0..N).for_each(|i| out.strides[i][out.rank - 1] = layouts[i].strides()[axis]);
        }
        out.rank = out.rank.max(1);
        out
    }

    /// Strides along the innermost axis.
    pub fn inner(&self) -> [usize; N] {
        std::array::from_fn(|i| self.strides[i][self.rank - 1])
    }

    /// Calls `f(first, length, offset in each layout)` for each run of the elements `range`, where `first`
    /// counts from the start of the range.
    #[inline(always)]
    pub fn runs(&self, range: Range<usize>, mut f: impl FnMut(usize, usize, [usize; N])) {
        let inner = self.shape[self.rank - 1];
        if range.is_empty() || inner == 0 {
            return;
        }
        let mut column = range.start % inner;
        let mut index = self.index(range.start / inner);
        let mut at = range.start;
        while at < range.end {
            let len = (inner - column).min(range.end - at);
            let offsets = std::array::from_fn(|i| {
                let s = &self.strides[i];
                (0..self.rank - 1).map(|a| index[a] * s[a]).sum::<usize>() + column * s[self.rank - 1]
            });
            f(at - range.start, len, offsets);
            at += len;
            column = 0;
            self.advance(&mut index);
        }
    }

    /// The outer axes' index of a run.
    fn index(&self, mut run: usize) -> [usize; MAX_RANK] {
        let mut index = [0; MAX_RANK];
        for a in (0..self.rank - 1).rev() {
            index[a] = run % self.shape[a];
            run /= self.shape[a];
        }
        index
    }

    fn advance(&self, index: &mut [usize; MAX_RANK]) {
        for a in (0..self.rank - 1).rev() {
            index[a] += 1;
            if index[a] < self.shape[a] {
                return;
            }
            index[a] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_what_is_adjacent_and_walks_in_order() {
        let dense = Layout::dense(&[2, 3, 4]);
        assert_eq!(Walk::new([&dense]).rank, 1);
        let row = Layout::dense(&[4]).broadcast(&[2, 3, 4]);
        let walk = Walk::new([&dense, &row]);
        assert_eq!((walk.rank, walk.inner()), (2, [1, 1]));
        let mut seen = vec![];
        walk.runs(2..11, |first, len, at| seen.push((first, len, at)));
        assert_eq!(seen, [(0, 2, [2, 2]), (2, 4, [4, 0]), (6, 3, [8, 0])]);
    }

    #[test]
    fn a_scalar_and_an_empty_tensor() {
        let mut count = 0;
        Walk::new([&Layout::dense(&[])]).runs(0..1, |_, len, _| count += len);
        Walk::new([&Layout::dense(&[3, 0])]).runs(0..0, |_, len, _| count += len);
        assert_eq!(count, 1);
    }
}
