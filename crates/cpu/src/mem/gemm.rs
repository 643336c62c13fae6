//! Matrix products by the `gemm` crate, on one thread: the caller cuts the output into fixed tiles, so the
//! result does not depend on the number of threads.

use super::Dst;

/// A matrix to read, in a slice that starts at its first element.
#[derive(Clone, Copy, Debug)]
pub struct Mat<'a> {
    /// From the first element to the last one touched.
    pub data: &'a [f32],
    /// Distance between neighbours in a column.
    pub row_stride: usize,
    /// Distance between neighbours in a row.
    pub col_stride: usize,
}

impl<'a> Mat<'a> {
    /// The matrix without its first `rows` rows and `cols` columns.
    pub fn skip(&self, rows: usize, cols: usize) -> Self {
        let at = rows * self.row_stride + cols * self.col_stride;
        Self { data: self.data.get(at..).unwrap_or(&[]), ..*self }
    }

    fn holds(&self, rows: usize, cols: usize) -> bool {
        rows == 0
            || cols == 0
            || (rows - 1) * self.row_stride + (cols - 1) * self.col_stride < self.data.len()
    }
}

/// `dst = a b`, or `dst += a b` if `add`; `dst` is `[m, n]`, `a` `[m, k]`, `b` `[k, n]`.
///
/// # Panics
/// If an operand is smaller than that.
pub fn gemm(dst: &mut Dst<'_, f32>, add: bool, a: Mat<'_>, b: Mat<'_>, k: usize) {
    let (&[m, n], &[rs, cs]) = (dst.layout().shape(), dst.layout().strides()) else {
        unreachable!("a matrix product writes a matrix");
    };
    assert!(a.holds(m, k) && b.holds(k, n), "a matrix product reads outside its operands");
    // SAFETY: the asserts keep all reads inside `a` and `b`; writes go to elements of `dst`, of which this borrow
    // has exclusive hold and which no slice overlaps. Strides fit isize because the memory exists.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            dst.start(),
            cs as isize,
            rs as isize,
            add,
            a.data.as_ptr(),
            a.col_stride as isize,
            a.row_stride as isize,
            b.data.as_ptr(),
            b.col_stride as isize,
            b.row_stride as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}
