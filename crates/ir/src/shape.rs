//! Shapes, types and strided views. Shapes are run-time values, checked once when a graph is built.

use crate::DType;
use std::fmt;
use std::ops::Deref;

/// The extents of a tensor, outermost first. A scalar has rank 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Shape(pub Vec<usize>);

impl Shape {
    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.0.iter().product()
    }

    /// Row-major strides in elements.
    pub fn strides(&self) -> Vec<usize> {
        let mut strides = vec![1; self.0.len()];
        for i in (1..self.0.len()).rev() {
            strides[i - 1] = strides[i] * self.0[i];
        }
        strides
    }

    /// The last extent (1 for a scalar) and the number of rows of that length.
    pub fn rows(&self) -> (usize, usize) {
        let cols = self.0.last().copied().unwrap_or(1);
        (self.numel().checked_div(cols).unwrap_or(0), cols)
    }

    /// NumPy's broadcast of two shapes, if they agree.
    pub fn broadcast(&self, other: &Shape) -> Option<Shape> {
        let rank = self.len().max(other.len());
        let at = |s: &Shape, i: usize| (i + s.len()).checked_sub(rank).map_or(1, |j| s[j]);
        (0..rank)
            .map(|i| match (at(self, i), at(other, i)) {
                (a, b) if a == b => Some(a),
                (1, b) => Some(b),
                (a, 1) => Some(a),
                _ => None,
            })
            .collect::<Option<Vec<_>>>()
            .map(Shape)
    }
}

impl Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(dims: [usize; N]) -> Self {
        Self(dims.to_vec())
    }
}

impl From<Vec<usize>> for Shape {
    fn from(dims: Vec<usize>) -> Self {
        Self(dims)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// Shape and element type of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Extents, outermost first.
    pub shape: Shape,
    /// Type of one element.
    pub dtype: DType,
}

impl TensorType {
    /// A type from its parts.
    pub fn new(dtype: DType, shape: impl Into<Shape>) -> Self {
        Self { shape: shape.into(), dtype }
    }

    /// An f32 tensor.
    pub fn f32(shape: impl Into<Shape>) -> Self {
        Self::new(DType::F32, shape)
    }

    /// A u32 tensor.
    pub fn u32(shape: impl Into<Shape>) -> Self {
        Self::new(DType::U32, shape)
    }

    /// Bytes when stored without gaps.
    pub fn bytes(&self) -> usize {
        self.shape.numel() * self.dtype.size()
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype, self.shape)
    }
}

/// Where the elements of a tensor lie inside a buffer: element `i` is at `offset + sum(i[d] * strides[d])`.
///
/// Reshapes, slices, permutations and broadcasts are views: they cost no launch and no memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// First element, counted in elements from the start of the buffer.
    pub offset: usize,
    /// Extents.
    pub shape: Shape,
    /// Distance between neighbours along each axis, in elements; 0 repeats (inputs only).
    pub strides: Vec<usize>,
}

impl View {
    /// A whole buffer, row-major.
    pub fn contiguous(shape: impl Into<Shape>) -> Self {
        let shape = shape.into();
        Self { offset: 0, strides: shape.strides(), shape }
    }

    /// True if the elements lie in row-major order without gaps. Strides of axes of extent 1 do not matter.
    pub fn is_contiguous(&self) -> bool {
        let plain = self.shape.strides();
        self.shape.iter().zip(&self.strides).zip(&plain).all(|((&n, s), p)| n == 1 || s == p)
    }

    /// One past the largest element index touched, or 0 for an empty view.
    pub fn end(&self) -> usize {
        if self.shape.numel() == 0 {
            return 0;
        }
        self.offset + 1 + self.shape.iter().zip(&self.strides).map(|(&n, &s)| (n - 1) * s).sum::<usize>()
    }

    /// The same elements under another shape, if no copy is needed.
    pub fn reshape(&self, to: &Shape) -> Option<View> {
        // Axes of extent 1 carry no information; merge neighbours that follow each other without a gap,
        // then cut the merged runs at the new extents.
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for (&n, &s) in self.shape.iter().zip(&self.strides).filter(|(n, _)| **n != 1) {
            match runs.last_mut() {
                Some((len, stride)) if *stride == n * s => (*len, *stride) = (*len * n, s),
                _ => runs.push((n, s)),
            }
        }
        let mut runs = runs.into_iter().rev();
        let (mut left, mut stride) = runs.next().unwrap_or((1, 1));
        let mut strides = vec![1; to.len()];
        for (i, &n) in to.iter().enumerate().rev() {
            if n == 1 {
                continue;
            }
            if left == 1 {
                (left, stride) = runs.next()?;
            }
            if left % n != 0 {
                return None;
            }
            strides[i] = stride;
            stride *= n;
            left /= n;
        }
        (left == 1).then(|| View { offset: self.offset, shape: to.clone(), strides })
    }

    /// Calls `f(element index in the buffer)` for each element in row-major order.
    pub fn for_each(&self, mut f: impl FnMut(usize)) {
        self.for_each_run(|at, len| (at..at + len).for_each(&mut f));
    }

    /// Calls `f(first index in the buffer, elements)` for runs of elements that lie side by side, in row-major order.
    pub fn for_each_run(&self, mut f: impl FnMut(usize, usize)) {
        if self.shape.numel() == 0 {
            return;
        }
        // The last axes that lie as if they were one.
        let (mut axes, mut len) = (self.shape.len(), 1);
        while axes > 0 && (self.strides[axes - 1] == len || self.shape[axes - 1] == 1) {
            axes -= 1;
            len *= self.shape[axes];
        }
        let mut index = vec![0usize; axes];
        let mut at = self.offset;
        loop {
            f(at, len);
            let mut axis = axes;
            loop {
                if axis == 0 {
                    return;
                }
                axis -= 1;
                index[axis] += 1;
                at += self.strides[axis];
                if index[axis] < self.shape[axis] {
                    break;
                }
                at -= self.strides[axis] * index[axis];
                index[axis] = 0;
            }
        }
    }

    /// The view broadcast to `to` by stride 0, if the shapes allow it.
    pub fn broadcast(&self, to: &Shape) -> Option<View> {
        let lead = to.len().checked_sub(self.shape.len())?;
        let mut strides = vec![0; to.len()];
        for (i, (&n, &s)) in self.shape.iter().zip(&self.strides).enumerate() {
            strides[lead + i] = match (n, to[lead + i]) {
                (a, b) if a == b => s,
                (1, _) => 0,
                _ => return None,
            };
        }
        Some(View { offset: self.offset, shape: to.clone(), strides })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(v: &View) -> Vec<usize> {
        let mut out = Vec::new();
        v.for_each(|i| out.push(i));
        out
    }

    #[test]
    fn reshape_keeps_the_order_or_declines() {
        let whole = View::contiguous([2, 3, 4]);
        let flat = whole.reshape(&[6, 4].into()).unwrap();
        assert!(flat.is_contiguous());
        // One third of a packed [2, 5, 3, 4]: the unit axis goes, the gap stays.
        let third = View { offset: 4, shape: [2, 5, 1, 4].into(), strides: vec![60, 12, 12, 1] };
        let squeezed = third.reshape(&[10, 4].into()).unwrap();
        assert_eq!(elements(&third), elements(&squeezed));
        assert!(third.reshape(&[2, 20].into()).is_none());
        let transposed = View { offset: 0, shape: [3, 2].into(), strides: vec![1, 3] };
        assert!(transposed.reshape(&[6].into()).is_none());
    }

    #[test]
    fn runs_are_as_long_as_they_can_be() {
        let runs = |shape: &[usize], strides: &[usize]| {
            let v = View { offset: 7, shape: Shape(shape.to_vec()), strides: strides.to_vec() };
            let mut out = Vec::new();
            v.for_each_run(|at, len| out.push((at, len)));
            let each: Vec<usize> = out.iter().flat_map(|&(at, len)| at..at + len).collect();
            assert_eq!(each, elements(&v));
            out
        };
        assert_eq!(runs(&[2, 3, 4], &[12, 4, 1]), [(7, 24)]);
        assert_eq!(runs(&[2, 1, 4], &[60, 12, 1]), [(7, 4), (67, 4)]);
        assert_eq!(runs(&[2, 2], &[1, 2]), [(7, 1), (9, 1), (8, 1), (10, 1)]);
        assert_eq!(runs(&[2, 2], &[1, 0]), [(7, 1), (7, 1), (8, 1), (8, 1)]);
        assert_eq!(runs(&[3, 1], &[1, 5]), [(7, 3)]);
        assert_eq!(runs(&[], &[]), [(7, 1)]);
        assert_eq!(runs(&[2, 0], &[0, 1]), []);
    }

    #[test]
    fn broadcast_repeats() {
        let row = View::contiguous([1, 3]);
        assert_eq!(elements(&row.broadcast(&[2, 3].into()).unwrap()), [0, 1, 2, 0, 1, 2]);
        assert_eq!(Shape::from([4, 1]).broadcast(&[3].into()), Some([4, 3].into()));
        assert_eq!(Shape::from([4, 2]).broadcast(&[3].into()), None);
    }
}
