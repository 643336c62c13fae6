//! Memory of the device, and memory of the host that the device reads by itself.

use super::{Asked, Context, Driven, Stream};
use cudarc::driver::{result, sys};
use ocelli_ir::executor::HostMemory;
use std::sync::Arc;

/// Bytes on the device, at an address that is a multiple of 256.
#[derive(Debug)]
pub struct DeviceBuffer {
    context: Arc<Context>,
    address: sys::CUdeviceptr,
    bytes: usize,
}

impl DeviceBuffer {
    /// Memory of `bytes` bytes, at least one, whose contents are not set.
    ///
    /// # Errors
    /// If there is not so much.
    pub fn new(context: &Arc<Context>, bytes: usize) -> Driven<Self> {
        let _call = context.bind()?;
        // SAFETY: an allocation touches nothing else.
        let address =
            unsafe { result::malloc_sync(bytes.max(1)) }.asked(format!("{bytes} bytes of device memory"))?;
        Ok(Self { context: context.clone(), address, bytes })
    }

    /// Where it starts.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its size.
    pub fn size(&self) -> usize {
        self.bytes
    }

    fn inside(&self, at: usize, bytes: usize) -> sys::CUdeviceptr {
        assert!(
            at.checked_add(bytes).is_some_and(|end| end <= self.bytes),
            "{at} + {bytes} of {}",
            self.bytes
        );
        self.address + at as u64
    }

    /// Writes `from` at `at`, behind what is queued; returns when `from` has been read.
    ///
    /// # Errors
    /// If the device fails.
    ///
    /// # Panics
    /// If it does not fit.
    pub fn write(&mut self, stream: &Stream, at: usize, from: &[u8]) -> Driven<()> {
        let to = self.inside(at, from.len());
        let _call = self.context.bind()?;
        // SAFETY: the range is inside; `from` outlives the copy, which is waited for.
        unsafe { result::memcpy_htod_async(to, from, stream.raw) }.asked("a copy to the device")?;
        stream.synchronize()
    }

    /// Queues a copy of the first `bytes` bytes of `from` to the start. `from` may be written again, or go, once the queue has
    /// passed it.
    ///
    /// # Errors
    /// If the driver fails.
    ///
    /// # Panics
    /// If it does not fit.
    pub fn write_from(&mut self, stream: &Stream, from: &HostBuffer, bytes: usize) -> Driven<()> {
        if bytes == 0 {
            return Ok(());
        }
        let to = self.inside(0, bytes);
        let _call = self.context.bind()?;
        // SAFETY: both ranges are inside. `Feed` alone calls this, and writes or frees `from` only after an event behind it.
        unsafe { result::memcpy_htod_async(to, &from.bytes()[..bytes], stream.raw) }
            .asked("a copy to the device")
    }

    /// Queues a copy of `from` to `at`.
    ///
    /// # Errors
    /// If the driver fails.
    ///
    /// # Panics
    /// If it does not fit.
    ///
    /// # Safety
    /// `from` must neither be written nor go before the queue has passed the copy.
    pub unsafe fn queue_write(&mut self, stream: &Stream, at: usize, from: &[u8]) -> Driven<()> {
        let to = self.inside(at, from.len());
        let _call = self.context.bind()?;
        // SAFETY: the range is inside; the rest is the caller's promise.
        unsafe { result::memcpy_htod_async(to, from, stream.raw) }.asked("a copy to the device")
    }

    /// Queues a copy of the `bytes` bytes at `at` of `from` to the start.
    ///
    /// # Errors
    /// If the driver fails.
    ///
    /// # Panics
    /// If they are not there, or do not fit.
    pub fn copy_from(&mut self, stream: &Stream, from: &DeviceBuffer, at: usize, bytes: usize) -> Driven<()> {
        let (to, from) = (self.inside(0, bytes), from.inside(at, bytes));
        let _call = self.context.bind()?;
        // SAFETY: both ranges are inside; the driver lets queued work end before it frees memory.
        unsafe { result::memcpy_dtod_async(to, from, bytes, stream.raw) }.asked("a copy on the device")
    }

    /// Queues a copy of the first `bytes` bytes to the start of `to`, which may be read, written or go once the queue has passed it.
    ///
    /// # Errors
    /// If the driver fails.
    ///
    /// # Panics
    /// If there are not so many, or they do not fit.
    pub fn read_to(&self, stream: &Stream, to: &mut HostBuffer, bytes: usize) -> Driven<()> {
        let from = self.inside(0, bytes);
        let _call = self.context.bind()?;
        // SAFETY: both ranges are inside. `Reads` alone calls this, and touches or frees `to` only after an event behind it.
        unsafe { result::memcpy_dtoh_async(&mut to.bytes_mut()[..bytes], from, stream.raw) }
            .asked("a copy from the device")
    }

    /// Reads from `at` into `to`, behind what is queued.
    ///
    /// # Errors
    /// If the device fails, or failed before.
    ///
    /// # Panics
    /// If the range is not inside.
    pub fn read(&self, stream: &Stream, at: usize, to: &mut [u8]) -> Driven<()> {
        let from = self.inside(at, to.len());
        let _call = self.context.bind()?;
        // SAFETY: the range is inside; `to` outlives the copy, which is waited for.
        unsafe { result::memcpy_dtoh_async(to, from, stream.raw) }.asked("a copy from the device")?;
        stream.synchronize()
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if let Ok(_call) = self.context.bind() {
            // SAFETY: allocated once, freed once; the driver waits for work that uses it.
            let _ = unsafe { result::free_sync(self.address) };
        }
    }
}

/// Bytes of the host that stay where they are: page-locked, so that the device copies them by itself, or plain.
#[derive(Debug)]
pub enum HostBuffer {
    /// Page-locked.
    Pinned(PinnedBuffer),
    /// As any other memory.
    Plain(Box<[u8]>),
}

impl HostBuffer {
    /// Memory of `bytes` zeros.
    ///
    /// # Errors
    /// If there is not so much page-locked memory.
    pub fn new(context: &Arc<Context>, bytes: usize, pinned: bool) -> Driven<Self> {
        Ok(if pinned {
            Self::Pinned(PinnedBuffer::new(context, bytes)?)
        } else {
            Self::Plain(vec![0; bytes].into())
        })
    }

    /// Its contents.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Pinned(b) => b.bytes(),
            Self::Plain(b) => b,
        }
    }

    /// Its contents, to be written when no copy reads them any more.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Pinned(b) => b.bytes_mut(),
            Self::Plain(b) => b,
        }
    }
}

/// Page-locked bytes of the host.
#[derive(Debug)]
pub struct PinnedBuffer {
    context: Arc<Context>,
    start: *mut u8,
    bytes: usize,
}

// SAFETY: it owns its memory alone.
unsafe impl Send for PinnedBuffer {}
// SAFETY: shared references only read.
unsafe impl Sync for PinnedBuffer {}

impl PinnedBuffer {
    /// Memory of `bytes` zeros.
    ///
    /// # Errors
    /// If there is not so much.
    pub fn new(context: &Arc<Context>, bytes: usize) -> Driven<Self> {
        let _call = context.bind()?;
        // SAFETY: an allocation touches nothing else.
        let start = unsafe { result::malloc_host(bytes.max(1), 0) }
            .asked(format!("{bytes} bytes of pinned memory"))?;
        let start = start.cast::<u8>();
        // SAFETY: just allocated, of this size.
        unsafe { start.write_bytes(0, bytes.max(1)) };
        Ok(Self { context: context.clone(), start, bytes })
    }

    /// Its contents.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: allocated with this size, set to zeros, and ours.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }

    /// Its contents, to be written when no copy reads them any more.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as `bytes`, and borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes) }
    }
}

impl HostMemory for PinnedBuffer {
    fn bytes(&self) -> &[u8] {
        self.bytes()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes_mut()
    }
}

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        if let Ok(_call) = self.context.bind() {
            // SAFETY: allocated once, freed once.
            let _ = unsafe { result::free_host(self.start.cast()) };
        }
    }
}
