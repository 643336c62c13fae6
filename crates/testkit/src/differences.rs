//! Finite differences in f64: what a vector-Jacobian product must agree with.

/// Central differences of a scalar function of a vector, one coordinate at a time.
pub fn gradient(x: &[f64], f: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let mut x = x.to_vec();
    (0..x.len())
        .map(|i| {
            let at = x[i];
            // The cube root of the machine epsilon balances truncation and rounding.
            let h = 6e-6 * at.abs().max(1.0);
            x[i] = at + h;
            let up = f(&x);
            x[i] = at - h;
            let down = f(&x);
            x[i] = at;
            (up - down) / (2.0 * h)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn agrees_with_a_known_gradient() {
        let g = super::gradient(&[2.0, 3.0], |x| x[0] * x[0] * x[1]);
        assert!((g[0] - 12.0).abs() < 1e-8 && (g[1] - 4.0).abs() < 1e-8, "{g:?}");
    }
}
