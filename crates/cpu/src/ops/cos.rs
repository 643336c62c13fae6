//! `cos`: element by element. Serves schedules, on scalars: no vector version.

use super::elementwise::formula;

formula!(Cos, |a| a.cos());
