//! `gelu_grad`: element by element.

use super::elementwise::formula;
use crate::simd::math::gelu_slope;

formula!(GeluGrad, |x, dy| dy * gelu_slope(x));
