//! `gelu_tanh`: element by element.

use super::elementwise::formula;
use crate::simd::math::gelu_tanh;

formula!(GeluTanh, |a| gelu_tanh(a));
