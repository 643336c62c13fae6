//! A plan: what an executor runs. A flat list of launches over one arena with fixed offsets, plus state.
//!
//! Invariants, checked by the plan verifier in `passes`: every operand lies inside its buffer; every read is of
//! something written before (of state slots always, of scratch memory in plans of up to 4 MB of it); two operands share
//! memory only if every use of one happens before every use of the other in the event graph (rule 10), or the op works
//! in place.

use crate::{DType, Op, SlotId, StateSpec, TensorType, View};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Where a buffer lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Scratch memory, at this many bytes from the start of the arena. The contents do not outlive a run.
    Arena(usize),
    /// A state slot.
    State(SlotId),
    /// Program input number `i` of [`Plan::inputs`].
    Input(usize),
}

/// A tensor as a launch sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    /// The memory it lies in.
    pub place: Place,
    /// Identity of the contents: operands of one number hold one tensor (or views of it). Only the verifier
    /// looks at it, to see that nothing was overwritten before its last reader.
    pub contents: u32,
    /// Which elements, counted from the start of `place`.
    pub view: View,
    /// Type of an element.
    pub dtype: DType,
}

impl Operand {
    /// Shape and dtype.
    pub fn ty(&self) -> TensorType {
        TensorType::new(self.dtype, self.view.shape.clone())
    }

    /// Bytes from the start of the place to the end of the last element.
    pub fn end_bytes(&self) -> usize {
        self.view.end() * self.dtype.size()
    }
}

/// One kernel call.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// What it computes.
    pub op: Op,
    /// Module path, for traces and messages.
    pub scope: Arc<str>,
    /// Arguments.
    pub inputs: Vec<Operand>,
    /// Results; always without gaps unless the target said that it writes views of this op.
    pub outputs: Vec<Operand>,
    /// Launches of one branch run in list order; branches run side by side.
    pub branch: usize,
    /// Launches of other branches that must have ended before this one starts.
    pub after: Vec<usize>,
}

impl Launch {
    /// Floating-point operations and bytes moved.
    pub fn cost(&self) -> (u64, u64) {
        let ins: Vec<TensorType> = self.inputs.iter().map(Operand::ty).collect();
        let outs: Vec<TensorType> = self.outputs.iter().map(Operand::ty).collect();
        let (ins, outs): (Vec<_>, Vec<_>) = (ins.iter().collect(), outs.iter().collect());
        (self.op.flops(&ins, &outs), self.op.bytes(&ins, &outs))
    }
}

/// A compiled program.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Name of the program: `train[T=96]`.
    pub name: String,
    /// Kernel calls, in an order that respects `after`.
    pub launches: Vec<Launch>,
    /// Inputs that the host fills before each run.
    pub inputs: Vec<(String, TensorType)>,
    /// Results that the host may read after a run, until the next run of any program.
    pub outputs: Vec<(String, Operand)>,
    /// Bytes of scratch memory.
    pub arena_bytes: usize,
    /// The state it works on.
    pub state: Arc<StateSpec>,
}

impl Plan {
    /// Total floating-point operations and bytes moved.
    pub fn cost(&self) -> (u64, u64) {
        self.launches.iter().map(Launch::cost).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    }

    /// Bytes of scratch memory in use while each launch runs: what was made before and is read then or later, and what
    /// it makes. Exact: it is read off the memory plan.
    pub fn memory_timeline(&self) -> Vec<usize> {
        // First and last launch of each tensor, and its bytes.
        let mut lives: HashMap<u32, (usize, usize, usize)> = HashMap::new();
        let mut touch = |at: usize, o: &Operand| {
            if let Place::Arena(_) = o.place {
                let life = lives.entry(o.contents).or_insert((at, at, 0));
                *life = (life.0, at, life.2.max(o.end_bytes()));
            }
        };
        for (i, launch) in self.launches.iter().enumerate() {
            launch.inputs.iter().chain(&launch.outputs).for_each(|o| touch(i, o));
        }
        let last = self.launches.len().saturating_sub(1);
        self.outputs.iter().for_each(|(_, o)| touch(last, o));
        let mut live = vec![0; self.launches.len()];
        for (first, last, bytes) in lives.into_values() {
            live[first..=last].iter_mut().for_each(|sum| *sum += bytes);
        }
        live
    }

    /// A hash of everything that decides what runs: equal hashes, equal plans.
    pub fn hash(&self) -> u64 {
        crate::rng::hash_name(&format!("{:?} {:?} {:?}", self.launches, self.inputs, self.outputs))
    }

    /// Index of an input by name.
    pub fn input(&self, name: &str) -> Option<usize> {
        self.inputs.iter().position(|(n, _)| n == name)
    }

    /// Index of an output by name.
    pub fn output(&self, name: &str) -> Option<usize> {
        self.outputs.iter().position(|(n, _)| n == name)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (flops, bytes) = self.cost();
        writeln!(
            f,
            "plan {} {:016x}: {} launches, {:.3} GFLOP, {:.1} MB moved, arena {:.1} MB",
            self.name,
            self.hash(),
            self.launches.len(),
            flops as f64 / 1e9,
            bytes as f64 / 1e6,
            self.arena_bytes as f64 / 1e6
        )?;
        let operand = |o: &Operand| match o.place {
            Place::Arena(at) => format!("{}@{at}", o.ty()),
            Place::State(slot) => format!("{}={}", o.ty(), self.state.get(slot).name),
            Place::Input(i) => format!("{}<{}", o.ty(), self.inputs[i].0),
        };
        for (i, l) in self.launches.iter().enumerate() {
            let ins: Vec<String> = l.inputs.iter().map(operand).collect();
            let outs: Vec<String> = l.outputs.iter().map(operand).collect();
            writeln!(
                f,
                "{i:4} {:<18} {} -> {}   [{}]",
                l.op.to_string(),
                ins.join(" "),
                outs.join(" "),
                l.scope
            )?;
        }
        Ok(())
    }
}
