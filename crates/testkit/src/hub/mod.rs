//! A stand-in for the Hugging Face hub: a small HTTP server on this machine that serves one data set, well or badly.

mod repository;
mod server;

pub use repository::{COMMIT, Repository};
pub use server::{Asked, Reply, Server};
