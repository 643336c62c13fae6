//! Reductions of a slice over a fixed number of lanes, the lanes combined in one fixed order.

/// Lanes of every reduction: one AVX-512 register, two of AVX2.
pub const LANES: usize = 16;

/// Folds `f(lane, element)` over lanes and combines them pairwise with `join`.
#[inline(always)]
fn lanes<A: Copy>(x: &[f32], start: A, f: impl Fn(A, f32) -> A, join: impl Fn(A, A) -> A) -> A {
    let mut acc = [start; LANES];
    let (blocks, rest) = x.as_chunks::<LANES>();
    for block in blocks {
        for (a, &x) in acc.iter_mut().zip(block) {
            *a = f(*a, x);
        }
    }
    for (a, &x) in acc.iter_mut().zip(rest) {
        *a = f(*a, x);
    }
    halve(acc, join)
}

#[inline(always)]
fn halve<A: Copy>(mut acc: [A; LANES], join: impl Fn(A, A) -> A) -> A {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            acc[i] = join(acc[i], acc[i + half]);
        }
        half /= 2;
    }
    acc[0]
}

/// The largest element, minus infinity for none. NaN elements are passed over.
#[inline(always)]
pub fn max(x: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    lanes(x, f32::NEG_INFINITY, larger, larger)
}

/// The sum of all elements, for slices of some thousands at most.
#[inline(always)]
pub fn sum(x: &[f32]) -> f32 {
    lanes(x, 0.0, |a, x| a + x, |a, b| a + b)
}

/// The sum of `f(element)` in f64.
#[inline(always)]
pub fn sum_wide(x: &[f32], f: impl Fn(f64) -> f64) -> f64 {
    lanes(x, 0.0f64, |a, x| a + f(f64::from(x)), |a, b| a + b)
}

/// The sum of `f(element)`, computed in f32 and added up in f64.
#[inline(always)]
pub fn sum_wide_of(x: &[f32], f: impl Fn(f32) -> f32) -> f64 {
    lanes(x, 0.0f64, |a, x| a + f64::from(f(x)), |a, b| a + b)
}

/// The dot product, for slices of some thousands at most.
#[inline(always)]
pub fn dot(x: &[f32], y: &[f32]) -> f32 {
    let n = x.len().min(y.len());
    let mut acc = [0.0f32; LANES];
    let ((xs, x_rest), (ys, y_rest)) = (x[..n].as_chunks::<LANES>(), y[..n].as_chunks::<LANES>());
    for (x, y) in xs.iter().zip(ys) {
        for ((a, &x), &y) in acc.iter_mut().zip(x).zip(y) {
            *a = x.mul_add(y, *a);
        }
    }
    for ((a, &x), &y) in acc.iter_mut().zip(x_rest).zip(y_rest) {
        *a = x.mul_add(y, *a);
    }
    halve(acc, |a, b| a + b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_summed_whole() {
        for n in 0..70 {
            let x: Vec<f32> = (0..n).map(|i| i as f32 - 20.0).collect();
            let want: f32 = x.iter().sum();
            assert_eq!((sum(&x), sum_wide(&x, |x| x) as f32), (want, want));
            assert_eq!(dot(&x, &x), x.iter().map(|x| x * x).sum::<f32>());
            assert_eq!(max(&x), x.last().copied().unwrap_or(f32::NEG_INFINITY));
        }
    }
}
