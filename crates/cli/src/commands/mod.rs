//! One file a subcommand.

mod caption;
mod config;
mod sweep;
mod train;

pub use caption::caption;
pub use config::config;
pub use train::train;
