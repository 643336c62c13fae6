//! Whether two views of one buffer share an element, decided by offsets and strides alone.

use crate::View;

impl View {
    /// True if this and another view of one buffer can be seen to share no element: both consist of blocks of adjacent
    /// elements that repeat at multiples of one stride, and the blocks lie apart within it. So do the parts of a packed
    /// tensor. Where it is false they may still lie apart.
    pub fn is_apart_from(&self, other: &View) -> bool {
        let (Some((len, stride)), Some((other_len, other_stride))) = (blocks(self), blocks(other)) else {
            return false;
        };
        let (x, y) = (self.offset % stride, other.offset % stride);
        let (first, first_len, last, last_len) =
            if x < y { (x, len, y, other_len) } else { (y, other_len, x, len) };
        stride == other_stride && first + first_len <= last && last + last_len <= stride
    }
}

/// Length of the blocks of adjacent elements that a view consists of, and the stride at multiples of which they
/// repeat; none if it is not of that form or is one block.
fn blocks(v: &View) -> Option<(usize, usize)> {
    let mut axes: Vec<(usize, usize)> =
        v.shape.iter().copied().zip(v.strides.iter().copied()).filter(|(n, _)| *n != 1).collect();
    axes.sort_by_key(|&(_, stride)| stride);
    let mut len = 1;
    let mut rest = axes.iter().skip_while(|&&(n, stride)| {
        let adjacent = stride == len;
        len *= if adjacent { n } else { 1 };
        adjacent
    });
    let &(_, stride) = rest.next()?;
    (stride > 0 && rest.all(|(_, s)| s % stride == 0)).then_some((len, stride))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn view(offset: usize, shape: &[usize], strides: &[usize]) -> View {
        View { offset, shape: shape.to_vec().into(), strides: strides.to_vec() }
    }

    #[test]
    fn parts_of_a_packed_tensor_lie_apart() {
        // [B, T, 3, H, D] as [B, H, T, D] of each third.
        let third = |i: usize| view(i * 24, &[2, 4, 5, 6], &[360, 6, 72, 1]);
        for (i, j) in [(0, 1), (1, 2), (2, 0)] {
            assert!(third(i).is_apart_from(&third(j)));
            assert!(!third(i).is_apart_from(&third(i)));
        }
        assert!(!third(0).is_apart_from(&view(23, &[2, 4, 5, 6], &[360, 6, 72, 1])));
        assert!(!View::contiguous([4]).is_apart_from(&View::contiguous([4])));
    }

    #[test]
    fn what_is_called_apart_shares_nothing() {
        let mut views = vec![];
        for offset in 0..7 {
            for shape in [[1, 3], [2, 2], [3, 1], [2, 4]] {
                for strides in [[0, 1], [1, 2], [4, 1], [1, 4], [6, 2], [6, 1], [3, 6]] {
                    views.push(view(offset, &shape, &strides));
                }
            }
        }
        let mut apart = 0;
        for a in &views {
            let mut seen = HashSet::new();
            a.for_each(|i| _ = seen.insert(i));
            for b in views.iter().filter(|b| a.is_apart_from(b)) {
                b.for_each(|i| assert!(!seen.contains(&i), "{a:?} {b:?}"));
                apart += 1;
            }
        }
        assert!(apart > 100, "{apart}");
    }
}
