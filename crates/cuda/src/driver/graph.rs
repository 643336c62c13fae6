//! A recorded sequence of launches, replayed by one call.

use super::calls::Recording;
use super::{Asked, Driven, Stream};
use cudarc::driver::{result, sys};
use std::sync::Arc;

/// Launches recorded once.
#[derive(Debug)]
pub struct Graph {
    context: Arc<super::Context>,
    exec: sys::CUgraphExec,
}

// SAFETY: graphs may be used from any thread under their context.
unsafe impl Send for Graph {}
// SAFETY: launching is the only use, and the driver locks.
unsafe impl Sync for Graph {}

impl Graph {
    /// Records what `queue` queues on `stream`; nothing runs. No other thread calls the driver meanwhile.
    ///
    /// # Errors
    /// If `queue` fails, or does what cannot be recorded.
    pub fn record<E: From<super::DriverFault>>(
        stream: &Stream,
        queue: impl FnOnce() -> Result<(), E>,
    ) -> Result<Self, E> {
        let _alone = Recording::begin();
        let _call = stream.context.bind()?;
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is alive.
        unsafe { result::stream::begin_capture(stream.raw, mode) }.asked("recording a graph")?;
        let queued = queue();
        // SAFETY: the stream is recording; it must stop in any case.
        let graph = unsafe { result::stream::end_capture(stream.raw) }.asked("recording a graph");
        queued?;
        let graph = graph?;
        // SAFETY: the graph is whole; the executable copy does not need it any more.
        let exec = unsafe {
            let exec = result::graph::instantiate(graph, sys::CUgraphInstantiate_flags(0))
                .asked("making a graph ready");
            let _ = result::graph::destroy(graph);
            exec?
        };
        Ok(Self { context: stream.context.clone(), exec })
    }

    /// Queues all of it.
    ///
    /// # Errors
    /// If the driver refuses.
    ///
    /// # Safety
    /// All memory that the recorded launches touch must be alive until they have run.
    pub unsafe fn launch(&self, stream: &Stream) -> Driven<()> {
        let _call = self.context.bind()?;
        // SAFETY: the caller's promise.
        unsafe { result::graph::launch(self.exec, stream.raw) }.asked("a graph's launch")
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if let Ok(_call) = self.context.bind() {
            // SAFETY: made once, destroyed once; the driver lets a running graph end.
            let _ = unsafe { result::graph::exec_destroy(self.exec) };
        }
    }
}
