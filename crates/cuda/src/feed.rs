//! How batches get to the device: host memory that is filled in turn, and with `prefetch` a queue of its own that copies the
//! next batch while a program runs.
//!
//! Every program reads its inputs at fixed addresses, which a recorded graph needs. Without `prefetch` the copy to them
//! stands in the queue of programs. With it the bus is crossed on the second queue, to one of two places that all programs
//! share, and what stands in front of the program is a copy within the device, some microseconds long.
//!
//! Order: a host buffer is filled again once it was copied; a place is written again once it was copied on; a program starts
//! once its inputs have arrived. The host may be [`STAGES`] batches ahead, and waits for nothing else.

use crate::driver::{Context, DeviceBuffer, Driven, Event, HostBuffer, Stream};
use std::sync::Arc;

/// Batches that the host may be ahead.
const STAGES: usize = 3;
/// Places on the device.
pub const PLACES: usize = 2;

/// The way of all programs of an executor.
#[derive(Debug)]
pub struct Feed {
    context: Arc<Context>,
    pinned: bool,
    /// The queue of copies, with `prefetch`.
    copies: Option<Stream>,
    /// Host memory, and the mark behind the copy that read it last.
    stages: Vec<(HostBuffer, Event)>,
    /// Device memory, and the mark behind the copy that read it last.
    places: Vec<(DeviceBuffer, Event)>,
    bytes: usize,
    fed: usize,
}

impl Feed {
    /// One without room. `pinned`: the host memory is page-locked.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn new(context: &Arc<Context>, pinned: bool, prefetch: bool) -> Driven<Self> {
        let copies = if prefetch { Some(Stream::new(context)?) } else { None };
        Ok(Self {
            context: context.clone(),
            pinned,
            copies,
            stages: vec![],
            places: vec![],
            bytes: 0,
            fed: 0,
        })
    }

    /// Makes room for inputs of `bytes` bytes.
    ///
    /// # Errors
    /// If there is none.
    pub fn grow(&mut self, compute: &Stream, bytes: usize) -> Driven<()> {
        if bytes <= self.bytes {
            return Ok(());
        }
        self.settle(compute)?;
        self.stages.clear();
        self.places.clear();
        self.bytes = 0;
        for _ in 0..STAGES {
            self.stages
                .push((HostBuffer::new(&self.context, bytes, self.pinned)?, Event::new(&self.context)?));
        }
        for _ in 0..if self.copies.is_some() { PLACES } else { 0 } {
            self.places.push((DeviceBuffer::new(&self.context, bytes)?, Event::new(&self.context)?));
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Queues copies of `inputs` to the offsets `starts` of `to`, the first `bytes` bytes of which are inputs.
    ///
    /// # Errors
    /// If the driver fails, or anything queued before did.
    pub fn hand(
        &mut self,
        compute: &Stream,
        to: &mut DeviceBuffer,
        bytes: usize,
        starts: &[usize],
        inputs: &[&[u8]],
    ) -> Driven<()> {
        if bytes == 0 {
            return Ok(());
        }
        let (host, copied) = &mut self.stages[self.fed % STAGES];
        // Waits only if the host is STAGES batches ahead of the device.
        copied.synchronize()?;
        for (&at, input) in starts.iter().zip(inputs) {
            host.bytes_mut()[at..][..input.len()].copy_from_slice(input);
        }
        if let Some(copies) = &self.copies {
            let (place, free) = &mut self.places[self.fed % PLACES];
            copies.wait(free)?;
            place.write_from(copies, host, bytes)?;
            copied.record(copies)?;
            compute.wait(copied)?;
            to.copy_from(compute, place, 0, bytes)?;
            free.record(compute)?;
        } else {
            to.write_from(compute, host, bytes)?;
            copied.record(compute)?;
        }
        self.fed += 1;
        Ok(())
    }

    /// Waits until no copy is under way.
    fn settle(&self, compute: &Stream) -> Driven<()> {
        self.copies.as_ref().map_or(Ok(()), Stream::synchronize)?;
        compute.synchronize()
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        // Copies may still read what goes now. A device that failed does not read any more.
        let _ = self.copies.as_ref().map_or(Ok(()), Stream::synchronize);
        for (_, copied) in &self.stages {
            let _ = copied.synchronize();
        }
    }
}
