//! `swiglu`: element by element.

use super::elementwise::formula;
use crate::simd::math::sigmoid;

formula!(Swiglu, |gate, up| gate * sigmoid(gate) * up);
