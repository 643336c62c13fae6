//! `gelu`: element by element.

use super::elementwise::formula;
use crate::simd::math::gelu;

formula!(Gelu, |a| gelu(a));
