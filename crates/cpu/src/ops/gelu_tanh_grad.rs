//! `gelu_tanh_grad`: element by element.

use super::elementwise::formula;
use crate::simd::math::gelu_tanh_slope;

formula!(GeluTanhGrad, |x, dy| dy * gelu_tanh_slope(x));
