//! Pass `memory` (exact): a graph becomes a plan. Views cost nothing, state is updated in place where no one
//! still needs the old contents, and scratch buffers that are never alive together share memory.
//!
//! Three steps, one file each: `lower` turns nodes into launches on numbered buffers; `place` lets producers
//! write straight into a `concat`'s buffer and updates straight into state slots; `arena` gives every scratch
//! buffer its offset.

mod arena;
mod lower;
mod place;

use crate::schedule::{self, Scheduled, Work};
use ocelli_ir::executor::Target;
use ocelli_ir::plan::{Launch, Operand, Place, Plan};
use ocelli_ir::{DType, Graph, Op, Phase, SlotId, StateSpec, TensorType, View};
use std::sync::Arc;

/// Where a numbered buffer lives, before scratch buffers have offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    Scratch,
    State(SlotId),
    Input(usize),
}

/// A numbered buffer: one tensor's contents.
#[derive(Clone, Debug)]
struct Buffer {
    home: Home,
    ty: TensorType,
}

/// A view of a numbered buffer.
#[derive(Clone, Debug)]
struct Loc {
    buffer: usize,
    view: View,
}

/// A launch on numbered buffers.
#[derive(Clone, Debug)]
struct Draft {
    op: Op,
    scope: Arc<str>,
    phase: Phase,
    inputs: Vec<Loc>,
    outputs: Vec<Loc>,
}

/// A program between graph and plan.
#[derive(Clone, Debug, Default)]
struct Drafts {
    buffers: Vec<Buffer>,
    launches: Vec<Draft>,
    inputs: Vec<(String, TensorType)>,
    outputs: Vec<(String, Loc)>,
    /// Writes still to be carried out at the end: slot, new contents.
    writes: Vec<(SlotId, Loc, Arc<str>)>,
}

impl Drafts {
    fn scratch(&mut self, ty: TensorType) -> Loc {
        let view = View::contiguous(ty.shape.clone());
        self.buffers.push(Buffer { home: Home::Scratch, ty });
        Loc { buffer: self.buffers.len() - 1, view }
    }

    fn dtype(&self, loc: &Loc) -> DType {
        self.buffers[loc.buffer].ty.dtype
    }

    fn loc_ty(&self, loc: &Loc) -> TensorType {
        TensorType::new(self.dtype(loc), loc.view.shape.clone())
    }

    /// True if a location is its whole buffer, row-major.
    fn is_whole(&self, loc: &Loc) -> bool {
        loc.view.offset == 0
            && loc.view.is_contiguous()
            && loc.view.shape.numel() == self.buffers[loc.buffer].ty.shape.numel()
    }
}

/// Plans the memory of a graph for a target. The launches keep the graph's order, on as many branches as the target runs.
pub fn plan(name: &str, graph: &Graph, state: &Arc<StateSpec>, target: &dyn Target) -> Plan {
    let mut drafts = lower::lower(graph, target);
    place::into_concats(&mut drafts, target);
    place::writes(&mut drafts, state);
    let schedule = branches(&drafts, target.branches());
    let (offsets, arena_bytes) = arena::assign(&drafts, &schedule, target.alignment());
    let operand = |loc: &Loc| Operand {
        place: match drafts.buffers[loc.buffer].home {
            Home::Scratch => Place::Arena(offsets[loc.buffer]),
            Home::State(slot) => Place::State(slot),
            Home::Input(i) => Place::Input(i),
        },
        contents: loc.buffer as u32,
        view: loc.view.clone(),
        dtype: drafts.dtype(loc),
    };
    let launch = |(d, s): (&Draft, Scheduled)| Launch {
        op: d.op.clone(),
        scope: d.scope.clone(),
        inputs: d.inputs.iter().map(operand).collect(),
        outputs: d.outputs.iter().map(operand).collect(),
        branch: s.branch,
        after: s.after,
    };
    Plan {
        name: name.to_string(),
        launches: drafts.launches.iter().zip(schedule).map(launch).collect(),
        inputs: drafts.inputs.clone(),
        outputs: drafts.outputs.iter().map(|(n, loc)| (n.clone(), operand(loc))).collect(),
        arena_bytes,
        state: state.clone(),
    }
}

/// The branch of each launch, by the memory that it touches.
fn branches(drafts: &Drafts, branches: usize) -> Vec<Scheduled> {
    let keys = |locs: &[Loc]| {
        let key = |loc: &Loc| match drafts.buffers[loc.buffer].home {
            Home::Scratch => Some(loc.buffer),
            Home::State(slot) => Some(drafts.buffers.len() + slot.0 as usize),
            Home::Input(_) => None,
        };
        locs.iter().filter_map(key).collect()
    };
    let work = |d: &Draft| Work { phase: d.phase, reads: keys(&d.inputs), writes: keys(&d.outputs) };
    schedule::schedule(&drafts.launches.iter().map(work).collect::<Vec<_>>(), branches)
}
