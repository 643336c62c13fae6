//! From places to addresses, when a program is bound to memory.

use crate::lower::Arg;
use crate::plan::{Home, Spot, Step};
use crate::state::CudaState;

/// Addresses of all memory of a run.
pub struct Addresses<'a> {
    /// The arena.
    pub arena: u64,
    /// The workspaces, one for each branch, and the bytes of each.
    pub work: (u64, usize),
    /// The program's own memory.
    pub own: u64,
    /// The lists of addresses, and where each step's starts.
    pub tables: (u64, &'a [usize]),
    /// The state.
    pub state: &'a CudaState,
}

impl Addresses<'_> {
    /// The address of an argument of step number `index`.
    pub fn of(&self, index: usize, step: &Step, arg: Arg) -> u64 {
        match (arg, step.spot(arg)) {
            (_, Some(Spot { home, at })) => {
                let base = match home {
                    Home::Arena => self.arena,
                    Home::State(slot) => {
                        self.state.memory.address() + self.state.starts[slot.0 as usize] as u64
                    }
                    Home::Own => self.own,
                };
                base + at as u64
            }
            (Arg::Work(at), _) => self.work.0 + (step.branch * self.work.1 + at) as u64,
            _ => self.tables.0 + self.tables.1[index] as u64,
        }
    }
}
