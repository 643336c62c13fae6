//! One file a subcommand.

mod caption;
mod config;
mod data;
mod eval;
mod export;
mod sweep;
mod train;

pub use caption::caption;
pub use config::config;
pub use data::{check, show};
pub use eval::eval;
pub use export::export;
pub use train::train;

use std::path::Path;

/// True if both are there and are one file.
fn same_file(a: &Path, b: &Path) -> bool {
    a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b))
}
