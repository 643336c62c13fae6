//! Writes snapshots: checks the state, then streams it from where it lies into a file that appears whole.
use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    io::Write,
    path::Path,
};

use super::{
    Meta, Snapshot, SnapshotError, Tensor, atomic::write_atomically, header, tensor::first_non_finite,
};

/// Writes `snapshot` under `path`, wholly or not at all, and returns the meta as written (with version and time).
///
/// The folder is created if it is missing, and the free space is checked first. The tensors' bytes go to the file
/// from where they lie: no second copy is made.
///
/// # Errors
/// [`SnapshotError::Invalid`] if two tensors have one name, a length does not fit its shape, or a number is not finite
/// (such a snapshot could not be resumed, and writing it might push out a good one); [`SnapshotError::Write`] with the
/// path, the needed and the free bytes if the system refuses. Either way what stood under `path` is still there.
pub fn save(path: &Path, snapshot: &Snapshot<'_>) -> Result<Meta, SnapshotError> {
    let meta = snapshot.meta.stamped();
    write(path, &snapshot.tensors, |tensors| header::encode(&meta, tensors))?;
    Ok(meta)
}

/// Writes tensors for other programs: a plain safetensors file, with `about` as its metadata; otherwise as [`save`].
///
/// # Errors
/// As [`save`].
pub fn save_plain(
    path: &Path,
    tensors: &[Tensor<'_>],
    about: HashMap<String, String>,
) -> Result<(), SnapshotError> {
    write(path, tensors, |tensors| header::encode_plain(about, tensors))
}

fn write(
    path: &Path,
    tensors: &[Tensor<'_>],
    head: impl FnOnce(&[&Tensor<'_>]) -> Result<Vec<u8>, String>,
) -> Result<(), SnapshotError> {
    let invalid = |reason| SnapshotError::Invalid { path: path.to_path_buf(), reason };
    check(tensors).map_err(invalid)?;
    let mut tensors: Vec<&Tensor<'_>> = tensors.iter().collect();
    // Widest elements first keeps every tensor aligned in the file, as the format's own writers do.
    tensors.sort_by_key(|t| (Reverse(t.dtype.to_file()), t.name.as_str()));
    let head = head(&tensors).map_err(invalid)?;
    let needed = head.len() as u64 + tensors.iter().map(|t| t.bytes.len() as u64).sum::<u64>();
    Ok(write_atomically(path, needed, |file| {
        file.write_all(&head)?;
        tensors.iter().try_for_each(|t| file.write_all(&t.bytes))
    })?)
}

/// `Err` says what is wrong.
fn check(tensors: &[Tensor<'_>]) -> Result<(), String> {
    let mut names = HashSet::new();
    for t in tensors {
        let name = &t.name;
        if name == "__metadata__" || !names.insert(name) {
            return Err(format!("the tensor name `{name}` is used twice or reserved"));
        }
        if t.expected_len() != Some(t.bytes.len()) {
            return Err(format!("tensor `{name}` {:?} {:?} has {} bytes", t.dtype, t.shape, t.bytes.len()));
        }
        if let Some((index, value)) = first_non_finite(t.dtype.to_file(), &t.bytes) {
            return Err(format!(
                "tensor `{name}` holds {value} at element {index}: the training has diverged. Resume from an earlier \
                 snapshot, with a lower learning rate"
            ));
        }
    }
    Ok(())
}
