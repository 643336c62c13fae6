//! A full disk: the error names path, needed and free bytes, the previous snapshot stays, nothing half-written is left.
#![cfg(unix)]
mod snapshot_support;

use std::{fs, os::unix::fs::FileTypeExt, path::Path, process::Command};

use ocelli_train::snapshot::{SnapshotError, load, save, write_whole};
use snapshot_support::*;
use tempfile::tempdir;

/// Elements of a snapshot of 4 MB, over the limit of 1 MiB below.
const EXTRA: usize = 1_000_000;
/// The same snapshot, saved without a limit, to know its size.
const REFERENCE: &str = "reference.safetensors";

fn assert_names_all(error: &SnapshotError, path: &Path, needed: u64) {
    let text = error.to_string();
    assert!(matches!(error, SnapshotError::Write(_)), "{text}");
    let needed = format!("{needed} bytes needed");
    for part in [path.to_str().unwrap(), &needed, "bytes free there"] {
        assert!(text.contains(part), "{part} not in: {text}");
    }
}

#[test]
fn a_full_device_is_an_error_and_stays_a_device() {
    let dir = tempdir().unwrap();
    let (_, bytes) = saved(dir.path(), "s.safetensors", 1);
    let full = Path::new("/dev/full");
    let error = save(full, &small(1, 8)).unwrap_err();
    let needed = format!(
        "/dev/full: No space left on device (os error 28); {} bytes needed. That is a device",
        bytes.len()
    );
    assert!(error.to_string().contains(&needed), "{error}");
    assert!(fs::metadata(full).unwrap().file_type().is_char_device());
    // A device where the folder should be.
    let error = save(&full.join("01_snapshot.safetensors"), &small(1, 8)).unwrap_err();
    assert_names_all(&error, full, bytes.len() as u64);
}

#[test]
fn a_folder_in_the_place_of_the_file_is_an_error() {
    let dir = tempdir().unwrap();
    let taken = dir.path().join("taken");
    fs::create_dir(&taken).unwrap();
    let error = write_whole(&taken, b"x").unwrap_err();
    assert!(error.to_string().contains("not a file"), "{error}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
}

/// The child: its files are limited to 1 MiB, as on a full disk.
fn save_too_much(dir: &Path) {
    let path = dir.join("01_snapshot.safetensors");
    let error = save(&path, &small(2, EXTRA)).unwrap_err();
    assert_names_all(&error, &path, fs::metadata(dir.join(REFERENCE)).unwrap().len());
    // The process lives on and may still write small files.
    write_whole(&dir.join("after.txt"), b"went on").unwrap();
}

#[test]
fn a_write_that_fails_part_way_leaves_the_previous_snapshot() {
    if let Some(dir) = child_dir() {
        return save_too_much(&dir);
    }
    let dir = tempdir().unwrap();
    let (path, before) = saved(dir.path(), "01_snapshot.safetensors", 1);
    save(&dir.path().join(REFERENCE), &small(2, EXTRA)).unwrap();
    let inner = child("a_write_that_fails_part_way_leaves_the_previous_snapshot", dir.path());
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 2048; exec \"$0\" \"$@\""])
        .arg(inner.get_program())
        .args(inner.get_args())
        .env(CHILD_DIR, dir.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fs::read(dir.path().join("after.txt")).unwrap(), b"went on");
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(load(&path).unwrap().meta.optim_step, 1);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "no temporary file is left");
}
