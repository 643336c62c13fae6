//! Small matrix products inside one task, such as those of one attention head: `c += a b` with the accumulators
//! in registers, `b` read row by row, the elements of `a` broadcast.

use pulp::{Arch, Simd, WithSimd};

/// Columns of `b` and `c` come in multiples of this; callers pad with zeros.
pub const COLS: usize = 16;

/// Rows that share each load of `b`.
const ROWS: usize = 8;

/// A left factor `[m, k]`.
#[derive(Clone, Copy, Debug)]
pub enum Left<'a> {
    /// Element (i, k) at `i * stride + k`.
    Rows(&'a [f32], usize),
    /// Element (i, k) at `k * stride + i`: the transpose of a matrix stored by rows.
    Cols(&'a [f32], usize),
}

/// `c (+)= a b`.
#[derive(Debug)]
pub struct Product<'a> {
    /// Result, `[m, n]`, row `i` at `i * c_stride`.
    pub c: &'a mut [f32],
    /// Distance between rows of `c`.
    pub c_stride: usize,
    /// Adds to what `c` holds.
    pub add: bool,
    /// Left factor.
    pub a: Left<'a>,
    /// Right factor, row `k` at `k * b_stride`.
    pub b: &'a [f32],
    /// Distance between rows of `b`.
    pub b_stride: usize,
    /// Rows of the result.
    pub m: usize,
    /// Columns of the result, a multiple of [`COLS`].
    pub n: usize,
    /// Length of each dot product.
    pub k: usize,
}

impl Product<'_> {
    /// Computes the product.
    ///
    /// # Panics
    /// If `n` is not a multiple of [`COLS`] or an operand is too small.
    pub fn run(self, arch: Arch) {
        assert!(self.n.is_multiple_of(COLS), "{} columns", self.n);
        arch.dispatch(self);
    }
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        // A pair of registers a row; where one of AVX-512 holds all columns, one.
        let mut col = 0;
        while col + 2 * S::F32_LANES <= self.n {
            self.columns::<S, 2>(simd, col);
            col += 2 * S::F32_LANES;
        }
        while col < self.n {
            self.columns::<S, 1>(simd, col);
            col += S::F32_LANES;
        }
    }
}

impl Product<'_> {
    #[inline(always)]
    fn columns<S: Simd, const V: usize>(&mut self, simd: S, col: usize) {
        let mut row = 0;
        while row + ROWS <= self.m {
            self.tile::<S, ROWS, V>(simd, row, col);
            row += ROWS;
        }
        if self.m - row >= 4 {
            self.tile::<S, 4, V>(simd, row, col);
            row += 4;
        }
        if self.m - row >= 2 {
            self.tile::<S, 2, V>(simd, row, col);
            row += 2;
        }
        if self.m > row {
            self.tile::<S, 1, V>(simd, row, col);
        }
    }

    #[inline(always)]
    fn tile<S: Simd, const R: usize, const V: usize>(&mut self, simd: S, row: usize, col: usize) {
        let mut acc = [[simd.splat_f32s(0.0); V]; R];
        if self.add {
            for (i, acc) in acc.iter_mut().enumerate() {
                let c = S::as_simd_f32s(&self.c[(row + i) * self.c_stride + col..][..V * S::F32_LANES]).0;
                *acc = std::array::from_fn(|v| c[v]);
            }
        }
        match self.a {
            Left::Rows(a, stride) => {
                let mut rows = [a; R];
                for (i, a) in rows.iter_mut().enumerate() {
                    *a = &a[(row + i) * stride..][..self.k];
                }
                for k in 0..self.k {
                    let b = self.right::<S, V>(k, col);
                    for i in 0..R {
                        let a = simd.splat_f32s(rows[i][k]);
                        for v in 0..V {
                            acc[i][v] = simd.mul_add_f32s(a, b[v], acc[i][v]);
                        }
                    }
                }
            }
            Left::Cols(a, stride) => {
                for k in 0..self.k {
                    let (a, b) = (&a[k * stride + row..][..R], self.right::<S, V>(k, col));
                    for i in 0..R {
                        let a = simd.splat_f32s(a[i]);
                        for v in 0..V {
                            acc[i][v] = simd.mul_add_f32s(a, b[v], acc[i][v]);
                        }
                    }
                }
            }
        }
        for (i, acc) in acc.iter().enumerate() {
            let c = &mut self.c[(row + i) * self.c_stride + col..][..V * S::F32_LANES];
            S::as_mut_simd_f32s(c).0.copy_from_slice(acc);
        }
    }

    /// Columns `col ..` of row `k` of the right factor.
    #[inline(always)]
    fn right<S: Simd, const V: usize>(&self, k: usize, col: usize) -> [S::f32s; V] {
        let b = S::as_simd_f32s(&self.b[k * self.b_stride + col..][..V * S::F32_LANES]).0;
        std::array::from_fn(
            #[inline(always)]
            |v| b[v],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every instruction set that this machine has, and none.
    fn archs() -> Vec<Arch> {
        #[allow(unused_mut)]
        let mut all = vec![Arch::Scalar, Arch::new()];
        #[cfg(target_arch = "x86_64")]
        all.extend(pulp::x86::V3::try_new().map(Arch::V3));
        all
    }

    #[test]
    fn equals_the_plain_sums() {
        for (m, n, k) in [(1, 16, 1), (7, 32, 5), (8, 48, 16), (19, 16, 33), (15, 80, 3)] {
            let a: Vec<f32> = (0..m * k).map(|i| (i * 37 % 23) as f32 - 11.0).collect();
            let turned: Vec<f32> = (0..m * k).map(|i| a[i % m * k + i / m]).collect();
            let b: Vec<f32> = (0..k * n).map(|i| (i * 29 % 19) as f32 - 9.0).collect();
            let dot = |i: usize, j: usize| (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum::<f32>();
            for (arch, (left, add)) in archs().into_iter().flat_map(|arch| {
                [(Left::Rows(&a, k), false), (Left::Cols(&turned, m), true)].map(|case| (arch, case))
            }) {
                let mut c = vec![2.0; m * n];
                Product { c: &mut c, c_stride: n, add, a: left, b: &b, b_stride: n, m, n, k }.run(arch);
                for (i, &c) in c.iter().enumerate() {
                    assert_eq!(c, dot(i / n, i % n) + if add { 2.0 } else { 0.0 }, "{m} {n} {k}");
                }
            }
        }
    }
}
