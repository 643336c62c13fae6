//! `mul`: element by element, with broadcasting.

use super::elementwise::formula;

formula!(Mul, |a, b| a * b);
