//! Rows that stay on the device, such as the pictures of a whole data set: a program is given their numbers, and a kernel brings
//! them to where it reads them.

use crate::driver::DeviceBuffer;
use crate::executor::Shared;
use crate::state::failed;
use ocelli_ir::executor::{ExecError, Store};
use std::sync::Arc;

/// Rows in a GPU's memory.
#[derive(Debug)]
pub struct CudaStore {
    memory: DeviceBuffer,
    rows: usize,
    row_bytes: usize,
    shared: Arc<Shared>,
}

impl CudaStore {
    pub(crate) fn new(shared: &Arc<Shared>, rows: usize, row_bytes: usize) -> Result<Self, ExecError> {
        let bytes = rows.saturating_mul(row_bytes);
        let memory = DeviceBuffer::new(shared.stream.context(), bytes)
            .map_err(|e| failed("the pictures of the data set", bytes, &e))?;
        Ok(Self { memory, rows, row_bytes, shared: shared.clone() })
    }

    /// Where its first row starts.
    pub(crate) fn address(&self) -> u64 {
        self.memory.address()
    }

    /// True if it is of the executor that has this.
    pub(crate) fn is_of(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }
}

impl Store for CudaStore {
    fn rows(&self) -> usize {
        self.rows
    }

    fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    fn write(&mut self, first: usize, bytes: &[u8]) -> Result<(), ExecError> {
        let at = first.saturating_mul(self.row_bytes);
        if at.saturating_add(bytes.len()) > self.rows * self.row_bytes {
            let (rows, given) = (self.rows, bytes.len());
            let message = format!("{given} bytes from row {first} on do not fit into a store of {rows} rows");
            return Err(ExecError::misuse("store", message));
        }
        // Behind what is queued, which may read what is overwritten.
        (self.memory.write(&self.shared.stream, at, bytes))
            .map_err(|e| failed("filling a store", bytes.len(), &e))
    }
}
