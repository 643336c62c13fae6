//! Memory of the device, and memory of the host that the device reads by itself.

use super::{Asked, Context, Driven, Stream};
use cudarc::driver::{result, sys};
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
        context.bind()?;
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
        self.context.bind()?;
        // SAFETY: the range is inside; `from` outlives the copy, which is waited for.
        unsafe { result::memcpy_htod_async(to, from, stream.raw) }.asked("a copy to the device")?;
        stream.synchronize()
    }

    /// Queues a copy of the first `bytes` bytes of `from` to `at`.
    ///
    /// # Errors
    /// If the driver fails.
    ///
    /// # Panics
    /// If it does not fit.
    pub fn write_pinned(
        &mut self,
        stream: &Stream,
        at: usize,
        from: &PinnedBuffer,
        bytes: usize,
    ) -> Driven<()> {
        let to = self.inside(at, bytes);
        self.context.bind()?;
        // SAFETY: both ranges are inside. Pinned memory is written again only after an event behind this copy.
        unsafe { result::memcpy_htod_async(to, &from.bytes()[..bytes], stream.raw) }
            .asked("a copy to the device")
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
        self.context.bind()?;
        // SAFETY: the range is inside; `to` outlives the copy, which is waited for.
        unsafe { result::memcpy_dtoh_async(to, from, stream.raw) }.asked("a copy from the device")?;
        stream.synchronize()
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: allocated once, freed once; the driver waits for work that uses it.
            let _ = unsafe { result::free_sync(self.address) };
        }
    }
}

/// Bytes of the host that stay where they are, so that the device copies them by itself.
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
        context.bind()?;
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

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: allocated once, freed once.
            let _ = unsafe { result::free_host(self.start.cast()) };
        }
    }
}
