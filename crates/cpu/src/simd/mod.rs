//! Arithmetic that the compiler turns into vector instructions.
//!
//! Everything here is `#[inline(always)]`: called inside [`pulp::Arch::dispatch`], it is compiled once for each
//! instruction set. Sums run over a fixed number of lanes, so they do not depend on the machine's vector width.

#![allow(clippy::needless_range_loop)] // arrays of lanes are walked in step, by index

pub mod math;
pub mod mm;
pub mod philox;
pub mod sums;
pub mod transpose;
