//! The state: one device allocation, a place for each slot.

use crate::driver::{DeviceBuffer, DriverFault, Stream};
use crate::executor::lock;
use crate::lower::ALIGNMENT;
use crate::reads::Reads;
use crate::target::NAME;
use ocelli_ir::executor::{ExecError, Need, Reading, State};
use ocelli_ir::memory::Room;
use ocelli_ir::{SlotId, StateSpec};
use std::any::Any;
use std::sync::{Arc, Mutex};

/// A state on a GPU.
#[derive(Debug)]
pub struct CudaState {
    spec: Arc<StateSpec>,
    pub(crate) memory: DeviceBuffer,
    /// Where each slot starts.
    pub(crate) starts: Vec<usize>,
    stream: Arc<Stream>,
    reads: Arc<Reads>,
    /// A number that no other state of the process has.
    pub(crate) id: u64,
}

impl CudaState {
    pub(crate) fn new(
        stream: &Arc<Stream>,
        spec: &Arc<StateSpec>,
        seed: u64,
        id: u64,
    ) -> Result<Self, ExecError> {
        let mut bytes = 0;
        let mut starts = Vec::with_capacity(spec.len());
        for (_, slot) in spec.iter() {
            starts.push(bytes);
            bytes += slot.ty.bytes().next_multiple_of(ALIGNMENT);
        }
        let mut memory = DeviceBuffer::new(stream.context(), bytes)
            .map_err(|e| failed_for(Need::Model, "weights and optimiser state", bytes, &e))?;
        // In one piece: a copy for each of hundreds of small slots would take longer than all bytes together.
        let mut host = vec![0u8; bytes];
        fill(spec, seed, &mut host);
        memory.write(stream, 0, &host).map_err(|e| failed("the initial state", bytes, &e))?;
        let reads = Reads::new(stream.context()).map_err(|e| failed("a queue of reads", 0, &e))?;
        Ok(Self { spec: spec.clone(), memory, starts, stream: stream.clone(), reads, id })
    }
}

/// Every slot as it starts, one behind the other, each at a multiple of [`ALIGNMENT`] bytes: slots by all threads, for drawing
/// millions of weights by one would be half of a program's start.
fn fill(spec: &StateSpec, seed: u64, host: &mut [u8]) {
    let mut rest = host;
    let slots = spec.iter().map(|(_, slot)| {
        let bytes = slot.ty.bytes();
        let (mine, behind) = std::mem::take(&mut rest).split_at_mut(bytes.next_multiple_of(ALIGNMENT));
        rest = behind;
        (slot, &mut mine[..bytes])
    });
    let slots = Mutex::new(slots.collect::<Vec<_>>().into_iter());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let next = lock(&slots).next();
                    let Some((slot, out)) = next else { break };
                    spec.fill(slot, seed, out);
                }
            });
        }
    });
}

/// An error of the driver, for the user; memory is wanted for what grows with the batch.
pub fn failed(what: &str, bytes: usize, e: &DriverFault) -> ExecError {
    failed_for(Need::Batch, what, bytes, e)
}

fn failed_for(need: Need, what: &str, bytes: usize, e: &DriverFault) -> ExecError {
    if let Some(Room { free, total }) = e.out_of_memory {
        let what = format!("{what} ({free} of {total} bytes are free)");
        return ExecError::OutOfMemory { device: NAME.into(), what, bytes, need };
    }
    ExecError::Device { device: NAME.into(), message: format!("{what}: {e}") }
}

impl State for CudaState {
    fn spec(&self) -> &Arc<StateSpec> {
        &self.spec
    }

    fn read(&self, slot: SlotId) -> Result<Vec<u8>, ExecError> {
        let info = self.spec.get(slot);
        let mut bytes = vec![0; info.ty.bytes()];
        let at = self.starts[slot.0 as usize];
        self.memory
            .read(&self.stream, at, &mut bytes)
            .map_err(|e| failed(&format!("reading '{}'", info.name), 0, &e))?;
        Ok(bytes)
    }

    fn begin_read(&self, slot: SlotId) -> Result<Box<dyn Reading>, ExecError> {
        let info = self.spec.get(slot);
        let (at, bytes) = (self.starts[slot.0 as usize], info.ty.bytes());
        let begun = self.reads.begin(&self.stream, &self.memory, at, bytes, &info.name);
        Ok(Box::new(begun.map_err(|e| failed(&format!("reading '{}'", info.name), bytes, &e))?))
    }

    fn write(&mut self, slot: SlotId, bytes: &[u8]) -> Result<(), ExecError> {
        let rounded = self.spec.writes(slot, bytes).map_err(|m| ExecError::misuse("state", m))?;
        let name = &self.spec.get(slot).name;
        for (slot, bytes) in [(slot, bytes)].into_iter().chain(rounded.iter().map(|(s, b)| (*s, &b[..]))) {
            let at = self.starts[slot.0 as usize];
            self.memory
                .write(&self.stream, at, bytes)
                .map_err(|e| failed(&format!("writing '{name}'"), 0, &e))?;
        }
        Ok(())
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
