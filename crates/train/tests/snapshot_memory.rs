//! A file's claims about its own size allocate nothing. One test alone in its binary, since it counts every allocation.
mod snapshot_support;

use std::{alloc::System, fs};

use cap::Cap;
use ocelli_train::snapshot::{load, save, verify};
use snapshot_support::*;
use tempfile::tempdir;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Bytes that `work` allocated in total, freed or not.
fn allocated(work: impl FnOnce()) -> usize {
    let before = ALLOCATOR.total_allocated();
    work();
    ALLOCATOR.total_allocated() - before
}

#[test]
fn memory_follows_the_file_and_not_its_claims() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.safetensors");
    let tensor_of = |n: u64| {
        let header = format!(r#"{{"w":{{"dtype":"U8","shape":[{n}],"data_offsets":[0,{n}]}}}}"#);
        raw_file(&header, &[0; 100])
    };
    let mut lies: Vec<Vec<u8>> = [50_000_000u64, 5_000_000_000, u64::MAX / 2].map(tensor_of).into();
    for claimed in [200u64, 99_000_000, 1 << 60, u64::MAX] {
        lies.push([&claimed.to_le_bytes()[..], b"{}"].concat());
    }
    for bytes in &lies {
        fs::write(&path, bytes).unwrap();
        let used = allocated(|| drop(load(&path).unwrap_err()));
        assert!(used < 20_000, "{used} bytes allocated for a file of {}", bytes.len());
    }

    // Saving borrows: beside the state itself only the header is held.
    let snapshot = small(1, 2_500_000);
    let used = allocated(|| drop(save(&path, &snapshot).unwrap()));
    assert!(used < 100_000, "{used} bytes allocated to save 10 MB");
    drop(snapshot);
    let used = allocated(|| drop(load(&path).unwrap()));
    assert!((10_000_000..10_100_000).contains(&used), "{used} bytes allocated to load 10 MB");
    let before = ALLOCATOR.allocated();
    verify(&path).unwrap();
    assert_eq!(ALLOCATOR.allocated(), before, "verifying keeps nothing");
}
