//! `add`: element by element, with broadcasting.

use super::elementwise::formula;

formula!(Add, |a, b| a + b);
