//! Reductions of a slice over a fixed number of lanes, the lanes combined in one fixed order.

use super::math::exp;

/// Lanes of every reduction: one AVX-512 register, two of AVX2.
pub const LANES: usize = 16;

/// Defines a reduction from the start of a lane, its step and the join of two lanes.
macro_rules! reduction {
    ($(#[$doc:meta])* $name:ident($x:ident $(, $arg:ident: $ty:ty)?) -> $acc:ty:
     $start:expr, |$a:ident, $e:ident| $step:expr, $join:expr) => {
        $(#[$doc])*
        #[inline(always)]
        pub fn $name($x: &[f32] $(, $arg: $ty)?) -> $acc {
            let mut acc: [$acc; LANES] = [$start; LANES];
            let (blocks, rest) = $x.as_chunks::<LANES>();
            for block in blocks {
                for i in 0..LANES {
                    let ($a, $e) = (acc[i], block[i]);
                    acc[i] = $step;
                }
            }
            for (i, &$e) in rest.iter().enumerate() {
                let $a = acc[i];
                acc[i] = $step;
            }
            halve(acc, $join)
        }
    };
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

reduction! {
    /// The largest element, minus infinity for none. NaN elements are passed over.
    max(x) -> f32: f32::NEG_INFINITY, |a, e| if e > a { e } else { a }, #[inline(always)] |a, b| if b > a { b } else { a }
}

reduction! {
    /// The sum of all elements in f64.
    sum_wide(x) -> f64: 0.0, |a, e| a + f64::from(e), #[inline(always)] |a, b| a + b
}

reduction! {
    /// The sum of `(element - centre)^2` in f64.
    sum_squares_wide(x, centre: f64) -> f64:
    0.0, |a, e| (f64::from(e) - centre).mul_add(f64::from(e) - centre, a), #[inline(always)] |a, b| a + b
}

reduction! {
    /// The sum of `e^(element - shift)`, added up in f64.
    sum_exp_wide(x, shift: f32) -> f64: 0.0, |a, e| a + f64::from(exp(e - shift)), #[inline(always)] |a, b| a + b
}

/// The sum of `a b` in f64.
#[inline(always)]
pub fn dot_wide(a: &[f32], b: &[f32]) -> f64 {
    let mut acc = [0.0f64; LANES];
    let ((a_blocks, a_rest), (b_blocks, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        for ((s, &a), &b) in acc.iter_mut().zip(a).zip(b) {
            *s += f64::from(a) * f64::from(b);
        }
    }
    for ((s, &a), &b) in acc.iter_mut().zip(a_rest).zip(b_rest) {
        *s += f64::from(a) * f64::from(b);
    }
    acc.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_summed_whole() {
        for n in 0..70 {
            let x: Vec<f32> = (0..n).map(|i| i as f32 - 20.0).collect();
            let want: f32 = x.iter().sum();
            assert_eq!(sum_wide(&x) as f32, want);
            let squares = x.iter().map(|x| f64::from((x - 1.0) * (x - 1.0))).sum::<f64>();
            assert_eq!(sum_squares_wide(&x, 1.0), squares);
            let y: Vec<f32> = x.iter().map(|x| x + 3.0).collect();
            let dot = x.iter().zip(&y).map(|(x, y)| f64::from(x * y)).sum::<f64>();
            assert_eq!(dot_wide(&x, &y), dot);
            assert_eq!(max(&x), x.last().copied().unwrap_or(f32::NEG_INFINITY));
        }
    }
}
