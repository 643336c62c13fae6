//! One file a subcommand.

mod caption;
mod config;
mod data;
mod export;
mod sweep;
mod train;

pub use caption::caption;
pub use config::config;
pub use data::{check, show};
pub use export::export;
pub use train::train;
