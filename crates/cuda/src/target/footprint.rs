//! What a lowered plan takes of the device's memory. Loading allocates this, and no more; it is known without a GPU.

use crate::feed::PLACES;
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

/// Memory of a loaded plan beside its state. The places of batches on their way are one program's, the largest one's, and
/// counted here for each.
pub fn of(plan: &Plan, steps: &[Step], own: &Own) -> Footprint {
    let work = steps.iter().map(|s| s.lowered.work).max().unwrap_or(0);
    Footprint {
        arena: plan.arena_bytes,
        work: work.next_multiple_of(ALIGNMENT) * BRANCHES,
        own: own.bytes + tables(steps).1 + PLACES * own.input_bytes,
    }
}
