//! Part of a tensor's rows, said without an axis: what a reshape does not change.

use crate::Shape;
use crate::ops::Slice;

/// The elements of a row-major tensor read as `[outer, len, inner]`, of which `start..start + kept` along the middle
/// are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cut {
    /// How often the range repeats.
    pub outer: usize,
    /// Extent of the axis that is cut.
    pub len: usize,
    /// Elements at each index of it.
    pub inner: usize,
    /// First index meant.
    pub start: usize,
    /// How many are meant.
    pub kept: usize,
}

impl Cut {
    /// What a slice of a tensor of this shape keeps.
    pub fn of(slice: &Slice, shape: &Shape) -> Self {
        let (outer, inner) = (shape[..slice.axis].iter().product(), shape[slice.axis + 1..].iter().product());
        Self { outer, len: shape[slice.axis], inner, start: slice.start, kept: slice.len }
    }

    /// The axis of a tensor of this shape that is cut, if it is one axis and the whole of it.
    pub fn axis(&self, shape: &Shape) -> Option<usize> {
        (0..shape.len()).find(|&a| {
            shape[a] == self.len
                && shape[..a].iter().product::<usize>() == self.outer
                && shape[a + 1..].iter().product::<usize>() == self.inner
        })
    }

    /// The shape of what is left of a tensor of this shape: the axis that the cut lies in gets shorter.
    pub fn narrowed(&self, shape: &Shape) -> Option<Shape> {
        let mut before = 1;
        for (a, &n) in shape.iter().enumerate() {
            let behind = before * n;
            let fits = self.outer.is_multiple_of(before) && behind.is_multiple_of(self.outer * self.len);
            if fits && n.is_multiple_of(self.len) {
                let mut out = shape.clone();
                out.0[a] = n / self.len * self.kept;
                return Some(out);
            }
            before = behind;
        }
        None
    }

    /// The same rows of a tensor whose rows have `to` elements where this one's have `from`; none if a row is cut.
    pub fn rows(&self, from: usize, to: usize) -> Option<Self> {
        (from > 0 && self.inner.is_multiple_of(from)).then(|| Self { inner: self.inner / from * to, ..*self })
    }

    /// The part of an operand of shape `from` that an element-wise op with a result of shape `to` needs: `Some(None)`
    /// if all of it.
    pub fn broadcast(&self, from: &Shape, to: &Shape) -> Option<Option<Self>> {
        if from == to {
            return Some(Some(*self));
        }
        let axis = self.axis(to)?;
        let Some(own) = (axis + from.len()).checked_sub(to.len()) else { return Some(None) };
        if from[own] == 1 && self.len > 1 {
            return Some(None);
        }
        let slice = Slice { axis: own, start: self.start, len: self.kept };
        Some(Some(Self::of(&slice, from)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_passes_through_reshapes_and_rows() {
        let cut = Cut::of(&Slice { axis: 1, start: 0, len: 1 }, &[4, 37, 8].into());
        assert_eq!((cut.outer, cut.len, cut.inner), (4, 37, 8));
        assert_eq!(cut.axis(&[4, 37, 8].into()), Some(1));
        assert_eq!(cut.axis(&[4 * 37, 8].into()), None);
        assert_eq!(cut.narrowed(&[4, 37, 8].into()), Some([4, 1, 8].into()));
        assert_eq!(cut.narrowed(&[4 * 37, 8].into()), Some([4, 8].into()));
        assert_eq!(cut.narrowed(&[4, 37, 2, 4].into()), Some([4, 1, 2, 4].into()));
        assert_eq!(cut.narrowed(&[4, 37 * 8].into()), Some([4, 8].into()));
        assert_eq!(cut.rows(8, 32).map(|c| c.inner), Some(32));
        assert_eq!(cut.rows(16, 32), None);
        let whole: Shape = [4, 37, 8].into();
        assert_eq!(cut.broadcast(&[8].into(), &whole), Some(None));
        assert_eq!(cut.broadcast(&[1, 1, 8].into(), &whole), Some(None));
        let positions = Cut { outer: 1, ..cut };
        assert_eq!(cut.broadcast(&[1, 37, 8].into(), &whole), Some(Some(positions)));
        assert_eq!(cut.broadcast(&whole, &whole), Some(Some(cut)));
    }
}
