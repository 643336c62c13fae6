//! `exp`: element by element.

use super::elementwise::formula;
use crate::simd::math::exp;

formula!(Exp, |a| exp(a));
