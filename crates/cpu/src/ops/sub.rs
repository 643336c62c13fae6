//! `sub`: element by element, with broadcasting.

use super::elementwise::formula;

formula!(Sub, |a, b| a - b);
