//! The `ocelli` command.
fn main() {}
