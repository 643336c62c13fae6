//! A device's context, its stream, and events.

use super::calls::Call;
use super::{Asked, Driven};
use cudarc::driver::{result, sys};
use ocelli_ir::memory::Room;
use std::sync::Arc;

/// The primary context of a device.
#[derive(Debug)]
pub struct Context {
    device: sys::CUdevice,
    raw: sys::CUcontext,
}

// SAFETY: a context may be used from any thread that has made it current, which every call here does first.
unsafe impl Send for Context {}
// SAFETY: as above; the driver's calls are safe to make at once.
unsafe impl Sync for Context {}

impl Context {
    /// The context of device number `ordinal`. The driver must have been initialised.
    ///
    /// # Errors
    /// If there is no such device, or the driver fails.
    pub fn new(ordinal: i32) -> Driven<Arc<Self>> {
        let _call = Call::begin();
        let device = result::device::get(ordinal).asked(format!("device {ordinal}"))?;
        // SAFETY: the device was found just now.
        let raw = unsafe { result::primary_ctx::retain(device) }.asked("its context")?;
        Ok(Arc::new(Self { device, raw }))
    }

    /// Makes it current in this thread, for the call that follows and those within it.
    pub(crate) fn bind(&self) -> Driven<Call> {
        let call = Call::begin();
        // SAFETY: the context is alive until `self` is dropped.
        unsafe { result::ctx::set_current(self.raw) }.asked("making the context current")?;
        Ok(call)
    }

    /// An attribute of the device.
    pub(crate) fn attribute(&self, of: sys::CUdevice_attribute) -> Driven<i32> {
        // SAFETY: the device exists.
        unsafe { result::device::get_attribute(self.device, of) }.asked("an attribute of the device")
    }

    /// The device's memory.
    pub(crate) fn room(&self) -> Driven<Room> {
        let _call = self.bind()?;
        let (free, total) = result::mem_get_info().asked("free memory")?;
        Ok(Room { free, total })
    }

    /// The device's name.
    pub(crate) fn name(&self) -> Driven<String> {
        result::device::get_name(self.device).asked("the device's name")
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let _call = Call::begin();
        // SAFETY: retained once, released once. A failure at the end of the program helps no one.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// A queue of work on a device.
#[derive(Debug)]
pub struct Stream {
    pub(super) context: Arc<Context>,
    pub(super) raw: sys::CUstream,
}

// SAFETY: streams may be used from any thread under their context.
unsafe impl Send for Stream {}
// SAFETY: as above; the driver locks.
unsafe impl Sync for Stream {}

impl Stream {
    /// A new queue, which does not wait for the default one.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn new(context: &Arc<Context>) -> Driven<Self> {
        let _call = context.bind()?;
        let raw = result::stream::create(result::stream::StreamKind::NonBlocking).asked("a stream")?;
        Ok(Self { context: context.clone(), raw })
    }

    /// The context it belongs to.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The driver's handle, for libraries.
    pub(crate) fn raw(&self) -> sys::CUstream {
        self.raw
    }

    /// Queues setting `bytes` bytes at a device address to `value`.
    ///
    /// # Errors
    /// If the driver refuses.
    ///
    /// # Safety
    /// The bytes must be memory of the device that is alive until it is done.
    pub unsafe fn fill(&self, address: u64, value: u8, bytes: usize) -> Driven<()> {
        let _call = self.context.bind()?;
        // SAFETY: the caller's promise.
        unsafe { result::memset_d8_async(address, value, bytes, self.raw) }.asked("filling device memory")
    }

    /// What is queued from here on starts after what was queued before `event` was set.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn wait(&self, event: &Event) -> Driven<()> {
        let _call = self.context.bind()?;
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: both are alive.
        unsafe { result::stream::wait_event(self.raw, event.raw, flags) }.asked("waiting for an event")
    }

    /// Waits until all that was queued is done.
    ///
    /// # Errors
    /// If anything that was queued failed.
    pub fn synchronize(&self) -> Driven<()> {
        let _call = self.context.bind()?;
        // SAFETY: the stream is alive.
        unsafe { result::stream::synchronize(self.raw) }.asked("waiting for the device")
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Ok(_call) = self.context.bind() {
            // SAFETY: created once, destroyed once; the driver lets queued work end first.
            let _ = unsafe { result::stream::destroy(self.raw) };
        }
    }
}

/// A mark in a queue.
#[derive(Debug)]
pub struct Event {
    context: Arc<Context>,
    raw: sys::CUevent,
}

// SAFETY: events may be used from any thread under their context.
unsafe impl Send for Event {}
// SAFETY: as above; the driver locks.
unsafe impl Sync for Event {}

impl Event {
    /// A mark that can be timed.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn new(context: &Arc<Context>) -> Driven<Self> {
        let _call = context.bind()?;
        let raw = result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).asked("an event")?;
        Ok(Self { context: context.clone(), raw })
    }

    /// Sets the mark behind what is queued.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn record(&self, stream: &Stream) -> Driven<()> {
        let _call = self.context.bind()?;
        // SAFETY: both are alive.
        unsafe { result::event::record(self.raw, stream.raw) }.asked("recording an event")
    }

    /// Waits until the queue has passed the mark; at once if it was never set.
    ///
    /// # Errors
    /// If what was queued before failed.
    pub fn synchronize(&self) -> Driven<()> {
        let _call = self.context.bind()?;
        // SAFETY: the event is alive.
        unsafe { result::event::synchronize(self.raw) }.asked("waiting for the device")
    }

    /// True if the queue has passed the mark, or it was never set; does not wait.
    ///
    /// # Errors
    /// If what was queued before failed.
    pub fn passed(&self) -> Driven<bool> {
        let _call = self.context.bind()?;
        // SAFETY: the event is alive.
        match unsafe { result::event::query(self.raw) } {
            Err(e) if e.0 == sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            answer => answer.asked("looking at an event").map(|()| true),
        }
    }

    /// Milliseconds of device time from `start` to this mark; both must have been passed.
    ///
    /// # Errors
    /// If they have not.
    pub fn since(&self, start: &Event) -> Driven<f32> {
        let _call = self.context.bind()?;
        // SAFETY: both are alive.
        unsafe { result::event::elapsed(start.raw, self.raw) }.asked("the time between events")
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Ok(_call) = self.context.bind() {
            // SAFETY: created once, destroyed once.
            let _ = unsafe { result::event::destroy(self.raw) };
        }
    }
}
