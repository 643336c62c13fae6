//! `ocelli bench`: one step timed, and the ladder of tricks.

mod batches;
mod ladder;
mod launches;
mod step;

pub use ladder::ladder;
pub use step::step;
