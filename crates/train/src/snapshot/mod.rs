//! Snapshots: everything a run needs to go on, in one safetensors file.
//!
//! Invariants:
//! - A file under a snapshot's name is whole. It is written under a temporary name in the same folder, synced,
//!   then renamed, so a kill, a full disk or a power cut leaves the previous one untouched ([`write_whole`]).
//! - A checksum in the metadata covers every byte of the file: a flipped bit is found.
//! - Reading trusts nothing: lengths are checked against the file before anything is allocated, and no pickle is
//!   ever read.
//! - Which of two snapshots of a folder is newer is said by their names (epoch, then step), never by file times.
//!
//! Layout of a file: 8 bytes (little-endian header length), the JSON header, the tensors back to back. The header's
//! `__metadata__` holds `ocelli` (a [`Meta`] as JSON) and `ocelli_crc32c` (8 hexadecimal digits).
mod atomic;
mod error;
mod folder;
mod header;
mod meta;
mod name;
mod preview;
mod read;
mod tensor;
mod weights;
mod write;

pub use atomic::{WriteError, sweep, try_folder, write_whole};
pub use error::{Damage, SnapshotError};
pub use folder::{Found, Passed, Search, Verdict, latest, latest_that, list, prune};
pub use meta::{FORMAT, Meta};
pub use name::SnapshotName;
pub use read::{load, peek, verify};
pub use tensor::{DType, Spec, Tensor};
pub use weights::{Weights, load_weights_only};
pub use write::{save, save_plain};

/// One moment of a run: all tensors of the state and what is needed beside them to go on.
///
/// For saving, the tensors may borrow the state's own memory, so that no second copy of it is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot<'a> {
    /// Weights, moments, counters: each name once, in any order.
    pub tensors: Vec<Tensor<'a>>,
    /// Counters, positions and texts.
    pub meta: Meta,
}

impl<'a> Snapshot<'a> {
    /// The tensor of this name, if the snapshot holds it.
    pub fn tensor(&self, name: &str) -> Option<&Tensor<'a>> {
        self.tensors.iter().find(|t| t.name == name)
    }

    /// Checks that the snapshot holds exactly the `wanted` tensors, each with its dtype and shape.
    ///
    /// # Errors
    /// [`SnapshotError::Layout`], listing what is missing, what is left over and what differs.
    pub fn check_layout(&self, wanted: &[Spec]) -> Result<(), SnapshotError> {
        tensor::compare(&self.tensors, wanted).map_err(|differences| SnapshotError::Layout { differences })
    }
}
