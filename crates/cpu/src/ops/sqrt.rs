//! `sqrt`: element by element.

use super::elementwise::formula;

formula!(Sqrt, |a| a.sqrt());
