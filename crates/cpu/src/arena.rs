//! The memory that the programs of one executor share.

use crate::buffer::Buffer;
use crate::state::out_of_memory;
use ocelli_ir::executor::{ExecError, Need};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Scratch memory of all programs of an executor, as large as the largest needs. Grows when a plan is loaded,
/// never while one runs.
#[derive(Debug)]
pub(crate) struct Arena {
    /// Values between launches, at the offsets that the plans give.
    pub(crate) memory: Buffer,
    /// Partial sums of the launch that runs.
    pub(crate) workspace: Buffer,
    /// 16-bit operands of the launch that runs, in 32 bits.
    pub(crate) wide: Buffer,
    /// Memory of each thread's own.
    pub(crate) scratch: Vec<Mutex<Buffer>>,
    /// Number of the program that ran last.
    pub(crate) ran: u64,
    /// Number of programs loaded so far.
    pub(crate) loaded: u64,
}

impl Arena {
    /// No memory yet, for so many threads; none if not even that can be had.
    pub(crate) fn new(threads: usize) -> Option<Self> {
        let scratch = (0..threads).map(|_| Buffer::new(0).map(Mutex::new)).collect::<Option<_>>()?;
        let [memory, workspace, wide] = [Buffer::new(0)?, Buffer::new(0)?, Buffer::new(0)?];
        Some(Self { memory, workspace, wide, scratch, ran: 0, loaded: 0 })
    }

    /// Makes room for a program with these needs, in bytes.
    ///
    /// # Errors
    /// If memory cannot be had.
    pub(crate) fn grow(
        &mut self,
        memory: usize,
        workspace: usize,
        wide: usize,
        scratch: usize,
    ) -> Result<(), ExecError> {
        let fail = |what: &str, bytes| Err(out_of_memory(what, bytes, Need::Batch));
        if !self.memory.grow(memory) {
            return fail("activations", memory);
        }
        if !self.workspace.grow(workspace) {
            return fail("partial sums", workspace);
        }
        if !self.wide.grow(wide) {
            return fail("16-bit values in 32 bits", wide);
        }
        for mine in &mut self.scratch {
            if !mine.get_mut().unwrap_or_else(PoisonError::into_inner).grow(scratch) {
                return fail("a thread's scratch memory", scratch);
            }
        }
        Ok(())
    }
}

/// Takes hold of the arena.
pub(crate) fn lock(arena: &Mutex<Arena>) -> MutexGuard<'_, Arena> {
    // A kernel that panicked leaves scratch memory half written, which the next run overwrites.
    arena.lock().unwrap_or_else(PoisonError::into_inner)
}
