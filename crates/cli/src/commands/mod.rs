//! One file a subcommand.

mod bench;
mod caption;
mod config;
mod data;
mod device;
mod doctor;
mod eval;
mod explain;
mod export;
mod step_of;
mod sweep;
mod train;

pub use bench::{data as bench_data, ladder as bench_ladder, step as bench_step};
pub use caption::caption;
pub use config::config;
pub use data::{check, prepare, show};
pub use doctor::doctor;
pub use eval::eval;
pub use explain::explain;
pub use export::export;
pub use train::train;

use std::path::Path;

/// True if both are there and are one file.
fn same_file(a: &Path, b: &Path) -> bool {
    a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b))
}
