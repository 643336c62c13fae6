//! How batches get to the device: host memory that is filled in turn, device memory that it is copied to, and with `prefetch` a
//! queue of its own for that, so that the next batch crosses the bus while a program runs.
//!
//! Every program reads its inputs at fixed addresses, which a recorded graph needs. What stands in front of it in its queue is
//! one kernel, which brings them there and widens indices (`narrow.rs`), some microseconds long.
//!
//! Page-locked memory of inputs is copied as it is, without a copy by the host: a handle of it is kept until it was.
//!
//! Order: a host buffer is filled again, and a handle let go, once it was copied; a place is written again once it was read; a
//! program starts once its inputs have arrived. The host may be [`STAGES`] batches ahead, and waits for nothing else.

use crate::driver::{Context, DeviceBuffer, Driven, Event, Function, HostBuffer, Stream};
use crate::narrow::{self, Goal, Part, Rows};
use ocelli_ir::executor::{HostBytes, Input};
use std::sync::Arc;

/// Batches that the host may be ahead.
const STAGES: usize = 3;
/// Places on the device.
pub const PLACES: usize = 2;
/// Threads of a block of the kernel, and blocks at most: they go round.
const THREADS: u32 = 256;
const BLOCKS: usize = 256;

/// What is read on the host's side.
#[derive(Debug)]
struct Stage {
    host: HostBuffer,
    /// Memory of inputs that is copied from where it is.
    held: Vec<HostBytes>,
    /// The mark behind the copies of both.
    copied: Event,
}

/// The way of all programs of an executor.
#[derive(Debug)]
pub struct Feed {
    context: Arc<Context>,
    pinned: bool,
    /// The queue of copies, with `prefetch`.
    copies: Option<Stream>,
    stages: Vec<Stage>,
    /// Device memory, and the mark behind the copy that read it last.
    places: Vec<(DeviceBuffer, Event)>,
    bytes: usize,
    fed: usize,
    /// Inputs of the last batch.
    parts: Vec<Part>,
    /// Of these, rows of stores.
    gathered: Vec<Rows>,
    /// Bytes that crossed the bus so far.
    crossed: u64,
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
            parts: vec![],
            gathered: vec![],
            crossed: 0,
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
            let host = HostBuffer::new(&self.context, bytes, self.pinned)?;
            self.stages.push(Stage { host, held: vec![], copied: Event::new(&self.context)? });
        }
        for _ in 0..PLACES {
            self.places.push((DeviceBuffer::new(&self.context, bytes)?, Event::new(&self.context)?));
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Bytes of inputs that crossed the bus so far.
    pub fn crossed(&self) -> u64 {
        self.crossed
    }

    /// Queues all that brings inputs to where they start in the program's memory `to`; `kernels` are those for it.
    ///
    /// # Errors
    /// If the driver fails, or anything queued before did.
    pub fn hand(
        &mut self,
        compute: &Stream,
        kernels: &[Function; 2],
        to: &DeviceBuffer,
        goals: &[Goal],
        given: &[Input<'_>],
    ) -> Driven<()> {
        if self.bytes == 0 || goals.is_empty() {
            return Ok(());
        }
        let queued = self.queue(compute, kernels, to, goals, given);
        if queued.is_err() {
            // There may be a copy without a mark behind it.
            self.settle(compute)?;
        }
        queued
    }

    fn queue(
        &mut self,
        compute: &Stream,
        [unpack, gather]: &[Function; 2],
        to: &DeviceBuffer,
        goals: &[Goal],
        given: &[Input<'_>],
    ) -> Driven<()> {
        // Waits only if the host is STAGES batches ahead of the device.
        self.stages[self.fed % STAGES].copied.synchronize()?;
        for stage in self.stages.iter_mut().filter(|s| !s.held.is_empty()) {
            if stage.copied.passed()? {
                stage.held.clear();
            }
        }
        let Stage { host, held, copied } = &mut self.stages[self.fed % STAGES];
        let packed = narrow::pack(host.bytes_mut(), goals, given, &mut self.parts, &mut self.gathered);
        let (place, free) = &mut self.places[self.fed % PLACES];
        let bus = self.copies.as_ref().unwrap_or(compute);
        bus.wait(free)?;
        place.write_from(bus, host, packed.written)?;
        for (at, memory) in narrow::shared(&packed, given) {
            held.push(memory.clone());
            // SAFETY: the handle is kept until the queue has passed `copied`, or is empty. Memory with two handles is not written,
            // and it goes with the last one.
            unsafe { place.queue_write(bus, at, memory) }?;
        }
        copied.record(bus)?;
        compute.wait(copied)?;
        for (words, most) in narrow::launches(&self.parts, place.address(), to.address()) {
            let grid = [most.div_ceil(THREADS as usize).clamp(1, BLOCKS) as u32, 1, 1];
            // SAFETY: `words` are the kernel's arguments. It reads what `pack` wrote and was copied to `place`, and writes inputs of
            // the program where they start, each up to a multiple of 16 bytes, which its memory has. `place` goes once all
            // queued work is done, and so does the program's memory.
            unsafe { unpack.launch(compute, grid, THREADS, 0, &words, false) }?;
        }
        for rows in &self.gathered {
            let (words, grid) = rows.launch(place.address(), to.address(), THREADS as usize);
            // SAFETY: as above; the numbers that it reads are of rows that the store has (`Plan::check_inputs`), and the store's memory,
            // as any, goes once all queued work is done.
            unsafe { gather.launch(compute, grid, THREADS, 0, &words, false) }?;
        }
        free.record(compute)?;
        self.crossed += packed.bytes as u64;
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
        for stage in &self.stages {
            let _ = stage.copied.synchronize();
        }
    }
}
