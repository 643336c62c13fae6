//! Contents of a state on their way to the host, while the device goes on.

use crate::executor::ExecError;
use std::fmt::Debug;

/// A slot's contents as they were when [`State::begin_read`](crate::executor::State::begin_read) was called. Dropped, they are
/// given up.
pub trait Reading: Send + Debug {
    /// True once they are there: then [`take`](Self::take) waits for nothing.
    ///
    /// # Errors
    /// If the device fails, or what was queued before did.
    fn ready(&self) -> Result<bool, ExecError>;

    /// The contents, as [`State::read`](crate::executor::State::read) gives them; waits until they are there.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    fn take(self: Box<Self>) -> Result<Vec<u8>, ExecError>;
}

/// Contents that are there.
#[derive(Debug)]
pub(crate) struct There(pub Vec<u8>);

impl Reading for There {
    fn ready(&self) -> Result<bool, ExecError> {
        Ok(true)
    }

    fn take(self: Box<Self>) -> Result<Vec<u8>, ExecError> {
        Ok(self.0)
    }
}
