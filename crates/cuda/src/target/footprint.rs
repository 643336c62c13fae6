//! What a lowered plan takes of the device's memory. Loading allocates exactly this; it is known without a GPU.

use crate::lower::ALIGNMENT;
use crate::plan::{BRANCHES, Own, Step};
use ocelli_ir::memory::Footprint;
use ocelli_ir::plan::Plan;

/// Bytes of an entry of a list of addresses.
const ENTRY: usize = 16;

/// Where the list of addresses of each step starts, and bytes of all.
pub fn tables(steps: &[Step]) -> (Vec<usize>, usize) {
    let mut bytes = 0;
    let starts = steps.iter().map(|step| {
        let start = bytes;
        bytes += step.lowered.table.len() * ENTRY;
        start
    });
    (starts.collect(), bytes)
}

/// Memory of a loaded plan beside its state.
pub fn of(plan: &Plan, steps: &[Step], own: &Own) -> Footprint {
    let work = steps.iter().map(|s| s.lowered.work).max().unwrap_or(0);
    Footprint {
        arena: plan.arena_bytes,
        work: work.next_multiple_of(ALIGNMENT) * BRANCHES,
        own: own.bytes + tables(steps).1,
    }
}
