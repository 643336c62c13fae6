//! One table of tolerances. All are relative to the largest magnitude of the tensor compared with.

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Logits, features, losses.
    Value,
    /// Gradients.
    Gradient,
    /// Weights after some Adam steps: Adam divides by the root of the second moment and so amplifies the
    /// rounding of gradients near zero.
    Trained,
}

/// The bound for f32 execution against f64.
pub const fn f32_bound(kind: Kind) -> f64 {
    match kind {
        Kind::Value => 3e-6,
        Kind::Gradient => 1e-5,
        Kind::Trained => 4e-4,
    }
}

/// The bound for f32 execution on a GPU against f64: it adds in other groups, and its functions round more.
pub const fn gpu_f32_bound(kind: Kind) -> f64 {
    match kind {
        Kind::Value => 1e-5,
        Kind::Gradient => 5e-5,
        Kind::Trained => 1e-3,
    }
}

/// The bound for products that round their operands to TF32 (11 bits), all else in f32, against f64.
pub const fn tf32_bound(kind: Kind) -> f64 {
    match kind {
        Kind::Value => 2e-3,
        Kind::Gradient => 4e-3,
        Kind::Trained => 4e-2,
    }
}

/// The bound for mixed precision in bf16 (8 bits) with a residual stream in bf16, against f64.
pub const fn bf16_bound(kind: Kind) -> f64 {
    match kind {
        Kind::Value => 3e-2,
        Kind::Gradient => 6e-2,
        Kind::Trained => 1e-1,
    }
}

/// The bound for f64 execution against goldens that were stored in f32: half a unit in the last place, with
/// room for the order of sums.
pub const F64_BOUND: f64 = 1e-6;

/// The largest difference over the largest magnitude of `want`. NaN counts as infinitely far.
pub fn relative_difference(have: &[f64], want: &[f64]) -> f64 {
    assert_eq!(have.len(), want.len(), "numbers compared");
    let scale = want.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    let worst = have.iter().zip(want).fold(0.0_f64, |m, (a, b)| {
        let d = (a - b).abs();
        if d.is_nan() { f64::INFINITY } else { m.max(d) }
    });
    if worst == 0.0 { 0.0 } else { worst / scale.max(f64::MIN_POSITIVE) }
}

/// How far results of an op in f32 may be from its reference evaluation in f64, as a share of the largest magnitude in the tensor.
pub fn op_bound(name: &str) -> f64 {
    match name {
        "attention_grad" => 8e-6,
        "layer_norm_grad" | "rms_norm_grad" => 4e-6,
        "matmul" | "layer_norm" | "reduce_sum" | "attention" | "adam" | "fused" => 2e-6,
        "cross_entropy" | "cross_entropy_grad" => 2e-6,
        "linear_cross_entropy" | "linear_cross_entropy_grad" => 2e-6,
        _ => 1e-6,
    }
}

/// True if results can be the small difference of large terms: then the inputs' magnitude counts as well. Only
/// here, where a tensor may have one element; the large shapes do without.
pub fn cancels(name: &str) -> bool {
    let sums = [
        "matmul",
        "reduce_sum",
        "layer_norm",
        "layer_norm_grad",
        "fused",
        "rms_norm_grad",
        "linear_cross_entropy",
        "linear_cross_entropy_grad",
        "rope",
        "attention",
        "attention_grad",
        "scatter_rows",
    ];
    let terms = [
        "gelu_grad",
        "gelu_tanh_grad",
        "swiglu",
        "swiglu_grad",
        "adam",
        "cos",
        "cross_entropy",
        "normalize_pixels",
    ];
    sums.contains(&name) || terms.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_relative_and_nan_never_passes() {
        assert_eq!(relative_difference(&[1.0, 10.5], &[1.0, 10.0]), 0.05);
        assert_eq!(relative_difference(&[0.0], &[0.0]), 0.0);
        assert!(relative_difference(&[1e-9], &[0.0]) > 1.0);
        assert_eq!(relative_difference(&[f64::NAN, 1.0], &[1.0, 1.0]), f64::INFINITY);
        assert_eq!(relative_difference(&[1.0, f64::NAN], &[1.0, 1.0]), f64::INFINITY);
    }
}
