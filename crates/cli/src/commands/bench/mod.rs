//! `ocelli bench`: one step timed, and the ladder of tricks.

mod batches;
mod ladder;
mod step;

pub use ladder::ladder;
pub use step::step;
