//! `minimum`: element by element, with broadcasting. A NaN on the left stays, as in the contract.

use super::elementwise::formula;

formula!(Minimum, |a, b| if b < a { b } else { a });
