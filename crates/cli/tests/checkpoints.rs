//! Damaged, hostile and foreign checkpoints, and a disk that takes no more, through the real binary.

mod support;

use std::path::{Path, PathBuf};
use support::{Bench, said};

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../train/tests/snapshot_cases");

/// A copy of a collected file.
fn case(b: &Bench, name: &str) -> String {
    std::fs::copy(Path::new(CASES).join(name), b.path(name)).unwrap();
    name.into()
}

/// A run of 200 steps with its folder of snapshots, of steps 100 and 200; the last lacks its last 50 bytes, and beside
/// them lie what a killed save and other programs left.
fn resume_dir(b: &Bench) -> (PathBuf, u64) {
    b.train(&["trainer_config.max_iters=200", "trainer_config.snapshot_interval=100"]).done();
    let folder = b.run_folder().join("snapshots");
    let newest = folder.join("00_0000200_snapshot.safetensors");
    let bytes = std::fs::read(&newest).unwrap();
    std::fs::write(&newest, &bytes[..bytes.len() - 50]).unwrap();
    std::fs::write(folder.join("00_0000150_snapshot.safetensors.tmp"), &bytes[..99]).unwrap();
    std::fs::write(folder.join("notes.txt"), "lr 1e-3 was too high").unwrap();
    std::fs::copy(Path::new(CASES).join("hostile.pt"), folder.join("best.pt")).unwrap();
    (folder, bytes.len() as u64)
}

#[test]
fn a_cut_snapshot_is_refused_by_name_and_the_one_before_is_taken() {
    let b = Bench::new();
    let (folder, whole) = resume_dir(&b);
    let numbers = [format!("{whole} bytes wanted"), format!("{} bytes found", whole - 50)];
    let latest = "trainer_config.snapshot_load_strategy=latest";
    let said = b.train(&[latest, "trainer_config.max_iters=101"]).done();
    let warnings: Vec<&str> = said.err.lines().filter(|l| l.starts_with("warning: ")).collect();
    let [warning] = warnings[..] else { panic!("{warnings:?}") };
    for part in ["00_0000200_snapshot.safetensors is damaged", &numbers[0], &numbers[1]] {
        assert!(warning.contains(part), "{warning}");
    }
    let going: Vec<&str> = said.out.lines().filter(|l| l.starts_with("going on from ")).collect();
    let [going] = going[..] else { panic!("{going:?}") };
    assert!(going.contains("00_0000100_snapshot.safetensors (step 100, epoch 0)"), "{going}");
    // Asked for outright.
    let cut = folder.join("00_0000200_snapshot.safetensors");
    b.run(&["train", "--resume", cut.to_str().unwrap()]).refused(&["00_0000200", &numbers[0], &numbers[1]]);
    for stray in ["00_0000150_snapshot.safetensors.tmp", "best.pt", "notes.txt"] {
        assert!(folder.join(stray).exists(), "{stray}");
    }
    assert!(!b.path("PICKLE_RAN").exists());
}

/// Every way in which a file can be given.
fn refused_everywhere(b: &Bench, file: &str, parts: &[&str]) {
    let picture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pictures/barn.jpg");
    b.run(&["train", "--resume", file]).refused(parts);
    b.train(&["--config-name", "shapes", "--resume", file]).refused(parts);
    b.train(&[&format!("model_config.init_from={file}")]).refused(parts);
    b.run(&["caption", "--snapshot", file, picture]).refused(parts);
    assert!(!b.path("runs").exists(), "a run that cannot start leaves no folder");
}

#[test]
fn hostile_and_broken_files_are_refused_with_their_reason() {
    let b = Bench::new();
    refused_everywhere(
        &b,
        &case(&b, "huge_header.safetensors"),
        &["header claims 1152921504606846976 bytes", "has 10"],
    );
    let cut = ["offsets point past its end", "4171 bytes wanted", "331 bytes found"];
    refused_everywhere(&b, &case(&b, "offsets_past_end.safetensors"), &cut);
    let nan = ["nan_weights.safetensors: tensor `w` holds NaN at element 0", "earlier snapshot"];
    refused_everywhere(&b, &case(&b, "nan_weights.safetensors"), &nan);
    let pickle = ["hostile.pt is a pickle: an untrusted format", "scripts/pt_to_safetensors.py hostile.pt"];
    refused_everywhere(&b, &case(&b, "hostile.pt"), &pickle);
    assert!(!b.path("PICKLE_RAN").exists());
    // Not damaged: it never was one.
    std::fs::write(b.path("notes.txt"), "lr 1e-3 was too high").unwrap();
    let other =
        ["notes.txt is not a safetensors file", "the text \"lr 1e-3 was too high\"", "_snapshot.safetensors"];
    refused_everywhere(&b, "notes.txt", &other);
}

#[test]
fn weights_of_a_run_that_diverged_are_said_as_that() {
    let b = Bench::new();
    b.train(&["trainer_config.max_iters=2", "trainer_config.snapshot_interval=1"]).done();
    let newest = b.snapshots().pop().unwrap();
    let mut bytes = std::fs::read(&newest).unwrap();
    let data = 8 + u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..data]).unwrap();
    let weight = "decoder.lm_head.bias";
    let at = data + header[weight]["data_offsets"][0].as_u64().unwrap() as usize;
    bytes[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    std::fs::write(&newest, bytes).unwrap();
    let picture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pictures/barn.jpg");
    let folder = newest.parent().unwrap().to_str().unwrap();
    let said = b.run(&["caption", "--snapshot", folder, picture]).refused(&[
        "tensor `decoder.lm_head.bias` holds NaN",
        "An earlier whole snapshot is ",
        "00_0000001",
    ]);
    assert!(!said.err.contains("cannot be trained on"), "{}", said.err);
}

/// Files of at most 64 KiB, as on a disk that is full.
#[cfg(unix)]
#[test]
fn a_save_that_fails_names_path_and_sizes_and_leaves_the_last_snapshot() {
    let b = Bench::new();
    b.train(&["trainer_config.max_iters=2"]).done();
    let before = b.snapshots().pop().unwrap();
    let bytes = std::fs::read(&before).unwrap();
    assert!(bytes.len() > 1 << 16);
    // The second way leaves the signal, which would end the program, as it is.
    for trap in ["trap '' XFSZ; ", ""] {
        let script = format!("{trap}ulimit -f 128; exec \"$0\" \"$@\"");
        let mut command = std::process::Command::new("sh");
        command.current_dir(b.dir.path()).args(["-c", &script, env!("CARGO_BIN_EXE_ocelli")]);
        let resume = ["train", "--resume", before.to_str().unwrap(), "trainer_config.max_iters=3"];
        said(command.args(resume).output().unwrap()).refused(&[
            "00_0000003_snapshot.safetensors: File too large",
            "bytes needed",
            "bytes free there",
            "ulimit -f",
        ]);
        assert_eq!(std::fs::read(&before).unwrap(), bytes);
        assert_eq!(b.snapshots().len(), 1, "no half-written file under a snapshot's name");
    }
    b.run(&["train", "--resume", before.to_str().unwrap()]).done();
}

/// A device that takes nothing, in the place of the folder and of the file.
#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_said() {
    let b = Bench::new();
    let said = b.train(&["trainer_config.max_iters=1", "trainer_config.snapshot_dir=/dev/full"]);
    said.refused(&["/dev/full", "bytes needed", "bytes free there"]);
}
