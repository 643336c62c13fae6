//! `ocelli bench`: one step timed, the way of the data, and the ladder of tricks.

mod batches;
mod data;
mod ladder;
mod launches;
mod step;

pub use data::data;
pub use ladder::ladder;
pub use step::step;
