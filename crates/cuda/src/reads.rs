//! How a slot gets to the host while the device goes on: a copy within the device stands in the queue of programs, so that what
//! runs behind it may overwrite the slot; the bus is crossed on a queue of its own, to page-locked memory.
//!
//! That queue is not the one of batches ([`Feed`](crate::feed::Feed)): a read waits for the program before it, and the next
//! batch must not wait for a read.
//!
//! Order: a way is used again, or given back, once its last copy has arrived.

use crate::driver::{Context, DeviceBuffer, Driven, DriverFault, Event, HostBuffer, Stream};
use crate::executor::lock;
use crate::state::failed;
use ocelli_ir::executor::{ExecError, Reading};
use std::sync::{Arc, Mutex};

/// The ways of a state's slots to the host.
#[derive(Debug)]
pub struct Reads {
    copies: Stream,
    /// Those that no reading has.
    free: Mutex<Vec<Way>>,
}

/// Memory that one slot passes.
#[derive(Debug)]
struct Way {
    place: DeviceBuffer,
    host: HostBuffer,
    /// Behind the copy to `place`.
    left: Event,
    /// Behind the copy to `host`.
    arrived: Event,
}

impl Way {
    fn new(context: &Arc<Context>, bytes: usize) -> Driven<Self> {
        Ok(Self {
            place: DeviceBuffer::new(context, bytes)?,
            host: HostBuffer::new(context, bytes, true)?,
            left: Event::new(context)?,
            arrived: Event::new(context)?,
        })
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        // A copy may still write what goes now. A device that failed does not write any more.
        let _ = self.arrived.synchronize();
    }
}

impl Reads {
    /// Without a way yet: the first reads of a run make them.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn new(context: &Arc<Context>) -> Driven<Arc<Self>> {
        Ok(Arc::new(Self { copies: Stream::new(context)?, free: Mutex::default() }))
    }

    /// Begins to read the `bytes` bytes at `at` of `memory`, as they are behind what is queued on `compute`. `name` is the
    /// slot's.
    ///
    /// # Errors
    /// If there is no memory for it, or the driver fails.
    pub fn begin(
        self: &Arc<Self>,
        compute: &Stream,
        memory: &DeviceBuffer,
        at: usize,
        bytes: usize,
        name: &str,
    ) -> Driven<CudaReading> {
        let mut way = self.way(compute.context(), bytes)?;
        way.place.copy_from(compute, memory, at, bytes)?;
        way.left.record(compute)?;
        self.copies.wait(&way.left)?;
        way.place.read_to(&self.copies, &mut way.host, bytes)?;
        way.arrived.record(&self.copies)?;
        Ok(CudaReading { way: Some(way), bytes, name: name.into(), reads: self.clone() })
    }

    /// A way for so many bytes that nothing is on.
    fn way(&self, context: &Arc<Context>, bytes: usize) -> Driven<Way> {
        let fitting = {
            let mut free = lock(&self.free);
            let at = free.iter().position(|way| way.place.size() >= bytes);
            at.map(|i| free.swap_remove(i))
        };
        let Some(way) = fitting else { return Way::new(context, bytes) };
        // Waits only for a reading that was given up.
        way.arrived.synchronize()?;
        Ok(way)
    }
}

/// A slot on its way.
#[derive(Debug)]
pub struct CudaReading {
    /// Always there until it is dropped.
    way: Option<Way>,
    bytes: usize,
    name: Box<str>,
    reads: Arc<Reads>,
}

impl CudaReading {
    fn fault(&self, e: &DriverFault) -> ExecError {
        failed(&format!("reading '{}'", self.name), 0, e)
    }
}

impl Reading for CudaReading {
    fn ready(&self) -> Result<bool, ExecError> {
        self.way.as_ref().map_or(Ok(true), |way| way.arrived.passed()).map_err(|e| self.fault(&e))
    }

    fn take(self: Box<Self>) -> Result<Vec<u8>, ExecError> {
        let Some(way) = &self.way else { return Ok(Vec::new()) };
        way.arrived.synchronize().map_err(|e| self.fault(&e))?;
        Ok(way.host.bytes()[..self.bytes].to_vec())
    }
}

impl Drop for CudaReading {
    fn drop(&mut self) {
        lock(&self.reads.free).extend(self.way.take());
    }
}
