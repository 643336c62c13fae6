//! The state: one aligned buffer for each slot, at one address for the state's whole life.

use crate::buffer::Buffer;
use crate::target::NAME;
use ocelli_ir::executor::{ExecError, Need, State};
use ocelli_ir::{SlotId, StateSpec};
use rayon::prelude::*;
use std::any::Any;
use std::sync::Arc;

/// Parameters, moments and counters in this process's memory.
#[derive(Debug)]
pub struct CpuState {
    spec: Arc<StateSpec>,
    pub(crate) slots: Vec<Buffer>,
}

impl CpuState {
    /// Every slot at its start under `seed`.
    ///
    /// # Errors
    /// If memory cannot be had.
    pub(crate) fn new(spec: &Arc<StateSpec>, seed: u64) -> Result<Self, ExecError> {
        let slots: Vec<_> = spec.iter().map(|(_, slot)| slot).collect();
        let filled = slots.par_iter().map(|slot| {
            let bytes = slot.ty.bytes();
            let mut buffer = Buffer::new(bytes).ok_or_else(|| {
                let what = format!("{} (all state takes {} bytes)", slot.name, spec.bytes(|_| true));
                out_of_memory(&what, bytes, Need::of(slot.kind))
            })?;
            spec.fill(slot, seed, buffer.bytes_mut());
            Ok(buffer)
        });
        Ok(Self { spec: spec.clone(), slots: filled.collect::<Result<_, ExecError>>()? })
    }

    /// Index of an id, if the slot exists.
    fn index(&self, slot: SlotId) -> Result<usize, ExecError> {
        let i = slot.0 as usize;
        let fail = || {
            ExecError::misuse("state", format!("there is no slot {i}; the state has {}", self.slots.len()))
        };
        (i < self.slots.len()).then_some(i).ok_or_else(fail)
    }
}

impl State for CpuState {
    fn spec(&self) -> &Arc<StateSpec> {
        &self.spec
    }

    fn read(&self, slot: SlotId) -> Result<Vec<u8>, ExecError> {
        Ok(self.slots[self.index(slot)?].bytes().to_vec())
    }

    fn write(&mut self, slot: SlotId, bytes: &[u8]) -> Result<(), ExecError> {
        let i = self.index(slot)?;
        let rounded = self.spec.writes(slot, bytes).map_err(|m| ExecError::misuse("state", m))?;
        self.slots[i].bytes_mut().copy_from_slice(bytes);
        for (slot, bytes) in rounded {
            self.slots[slot.0 as usize].bytes_mut().copy_from_slice(&bytes);
        }
        Ok(())
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

/// The error for memory that cannot be had.
pub(crate) fn out_of_memory(what: &str, bytes: usize, need: Need) -> ExecError {
    ExecError::OutOfMemory { device: NAME.into(), what: what.into(), bytes, need }
}
