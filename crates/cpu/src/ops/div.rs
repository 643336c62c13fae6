//! `div`: element by element, with broadcasting.

use super::elementwise::formula;

formula!(Div, |a, b| a / b);
