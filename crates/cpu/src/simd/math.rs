//! Exponential and normal distribution in f32, without branches.

/// 1.5 * 2^23: adding it to a small float leaves the nearest integer in the low bits.
const ROUND: f32 = 12_582_912.0;
/// ln 2 as a short number, whose multiples are exact, and the rest.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;

/// `(e^r - 1 - r) / r^2` on |r| <= ln 2 / 2: minimax polynomial, error of e^r below 1e-8.
const EXP: [f32; 5] = [0.5, 0.166_665_76, 0.041_666_374, 0.008_363_295, 0.001_394_132_4];

/// `Phi(-z) e^(z^2 / 2)` for 0 <= z <= 13 as a polynomial without constant term in t = 1 / (1 + z / 4): minimax,
/// relative error below 1e-8.
const TAIL: [f32; 10] = [
    0.099_751_97,
    0.099_419_3,
    0.096_083_574,
    0.069_511_49,
    0.093_454_31,
    0.000_684_285_7,
    0.042_240_517,
    0.041_725_5,
    -0.058_727_27,
    0.015_856_324,
];

/// `1 / sqrt(2 pi)`.
const DENSITY: f32 = 0.398_942_3;

/// `e^x`, within about 1 ulp; 0 below -86.5, where the true value is less than 3e-38.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let t = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = t - ROUND;
    let r = n.mul_add(-LN2_LOW, n.mul_add(-LN2_HIGH, x));
    let mut q = EXP[4];
    for c in [EXP[3], EXP[2], EXP[1], EXP[0]] {
        q = q.mul_add(r, c);
    }
    let p = q.mul_add(r * r, r) + 1.0;
    // Adds n to the exponent; the bits of ROUND itself are shifted out.
    let y = f32::from_bits(p.to_bits().wrapping_add(t.to_bits() << 23));
    let y = if x < -86.5 { 0.0 } else { y };
    let y = if x > 88.722_83 { f32::INFINITY } else { y };
    if x.is_nan() { x } else { y }
}

/// `ln x` for positive normal numbers, within 2 ulp or 1e-7.
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    // x = m 2^n with m in [0.7, 1.5); then ln m = 2 artanh(s), s = (m - 1) / (m + 1), by its series in s^2 <= 0.04.
    let shifted = x.to_bits().wrapping_sub(0x3f33_3333);
    let n = (shifted as i32 >> 23) as f32;
    let m = f32::from_bits((shifted & 0x007f_ffff) + 0x3f33_3333);
    let s = (m - 1.0) / (m + 1.0);
    let t = s * s;
    let mut p = 2.0 / 11.0;
    for c in [2.0 / 9.0, 2.0 / 7.0, 2.0 / 5.0, 2.0 / 3.0] {
        p = t.mul_add(p, c);
    }
    let rest = n.mul_add(LN2_LOW, s * t * p);
    n.mul_add(LN2_HIGH, s.mul_add(2.0, rest))
}

/// The normal distribution function and density at `x`; each within 3e-7 of its largest value.
#[inline(always)]
pub fn normal(x: f32) -> (f32, f32) {
    let z = x.abs();
    let t = 1.0 / z.mul_add(0.25, 1.0);
    let mut q = TAIL[9];
    for i in (0..9).rev() {
        q = q.mul_add(t, TAIL[i]);
    }
    let bell = exp(-0.5 * z * z);
    let tail = q * t * bell;
    (if x < 0.0 { tail } else { 1.0 - tail }, bell * DENSITY)
}

/// The exact GELU, `x Phi(x)`.
#[inline(always)]
pub fn gelu(x: f32) -> f32 {
    x * normal(x).0
}

/// Slope of the GELU, `Phi(x) + x phi(x)`.
#[inline(always)]
pub fn gelu_slope(x: f32) -> f32 {
    let (below, density) = normal(x);
    x.mul_add(density, below)
}

/// `1 / (1 + e^-x)`, within 3e-7 of its value.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// The tanh form of the GELU: `x sigmoid(2 u)` with `u = sqrt(2 / pi) (x + 0.044715 x^3)`.
#[inline(always)]
pub fn gelu_tanh(x: f32) -> f32 {
    x * sigmoid(gelu_inner(x))
}

/// Its slope, `s + x s (1 - s) 2 u'` with s the sigmoid.
#[inline(always)]
pub fn gelu_tanh_slope(x: f32) -> f32 {
    let s = sigmoid(gelu_inner(x));
    let inner = GELU_INNER * (3.0 * 0.044_715 * x).mul_add(x, 1.0);
    (x * s * (1.0 - s)).mul_add(inner, s)
}

/// `2 sqrt(2 / pi)`.
const GELU_INNER: f32 = 1.595_769;

#[inline(always)]
fn gelu_inner(x: f32) -> f32 {
    GELU_INNER * x * (0.044_715 * x).mul_add(x, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(lo: f32, hi: f32) -> impl Iterator<Item = f32> {
        let n = 200_000;
        (0..=n).map(move |i| lo + (hi - lo) * i as f32 / n as f32)
    }

    #[test]
    fn exp_is_within_two_ulps() {
        for x in samples(-86.4, 88.72) {
            let want = libm::exp(f64::from(x));
            let error = (f64::from(exp(x)) - want).abs() / want;
            assert!(error < 1.6e-7, "exp({x}) = {}, want {want}", exp(x));
        }
    }

    #[test]
    fn exp_at_the_edges() {
        assert_eq!([exp(0.0), exp(-200.0), exp(f32::NEG_INFINITY)], [1.0, 0.0, 0.0]);
        assert_eq!([exp(89.0), exp(f32::INFINITY)], [f32::INFINITY; 2]);
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn ln_is_close_to_libm() {
        let wide = samples(-80.0, 80.0).map(|x| libm::exp(f64::from(x)) as f32);
        for x in wide.chain(samples(0.5, 2.0)).chain(samples(1.0, 300.0)) {
            let want = libm::log(f64::from(x));
            let error = (f64::from(ln(x)) - want).abs();
            assert!(error < 1e-7 + 1.2e-7 * want.abs(), "ln({x}) = {}, want {want}", ln(x));
        }
    }

    #[test]
    fn gelu_is_close_to_libm() {
        for x in samples(-12.0, 12.0) {
            let wide = f64::from(x);
            let cdf = 0.5 * libm::erfc(-wide * std::f64::consts::FRAC_1_SQRT_2);
            let slope = cdf + wide * libm::exp(-0.5 * wide * wide) / std::f64::consts::TAU.sqrt();
            let bound = 4e-7 * wide.abs().max(1.0);
            assert!((f64::from(gelu(x)) - wide * cdf).abs() < bound, "gelu({x})");
            assert!((f64::from(gelu_slope(x)) - slope).abs() < bound, "slope({x})");
        }
        assert!(gelu(f32::NAN).is_nan());
        assert_eq!(gelu(30.0), 30.0);
        assert_eq!(gelu(-30.0), 0.0);
    }

    #[test]
    fn sigmoid_and_the_tanh_gelu_are_close_to_libm() {
        for x in samples(-12.0, 12.0) {
            let wide = f64::from(x);
            let s = 1.0 / (1.0 + libm::exp(-wide));
            assert!((f64::from(sigmoid(x)) - s).abs() < 3e-7 * s, "sigmoid({x})");
            let root = (2.0 / std::f64::consts::PI).sqrt();
            let t = libm::tanh(root * (wide + 0.044_715 * wide.powi(3)));
            let inner = root * (1.0 + 3.0 * 0.044_715 * wide * wide);
            let (value, slope) = (0.5 * wide * (1.0 + t), 0.5 * (1.0 + t + wide * (1.0 - t * t) * inner));
            let bound = 4e-7 * wide.abs().max(1.0);
            assert!((f64::from(gelu_tanh(x)) - value).abs() < bound, "gelu_tanh({x})");
            assert!((f64::from(gelu_tanh_slope(x)) - slope).abs() < bound, "slope({x})");
        }
        assert_eq!([gelu_tanh(40.0), gelu_tanh(-40.0)], [40.0, 0.0]);
        assert_eq!([gelu_tanh_slope(40.0), gelu_tanh_slope(-40.0)], [1.0, 0.0]);
    }
}
