//! Pictures for which there is no memory, through the real binary with a limit of its address space: each is one skipped
//! sample, and the run goes on.
#![cfg(target_os = "linux")]

mod support;

use std::io::{Seek, SeekFrom, Write};
use std::process::Command;
use support::{Bench, Said, tiny, with};

const GOOD: &[u8] = include_bytes!("../../data/tests/cases/03_alpha_palette_grey/grey_L.png");
/// 900 megapixels in 100 kB, all of them there.
const LARGE: &[u8] = include_bytes!("../../data/tests/cases/07_decompression_bomb/real_900Mpx.png");
const CLAIMS: &[u8] = include_bytes!("../../data/tests/cases/07_decompression_bomb/lying_header_3600Mpx.png");
const PHOTO: &[u8] = include_bytes!("pictures/barn.jpg");
/// The address space of the process, in kB: more than it takes for itself, less than 900 megapixels.
const SPACE: u32 = 2_500_000;
/// What lets such pictures past the limit of pixels.
const ANY_SIZE: &str = "data_config.max_pixels=5000000000";

fn limited(b: &Bench, args: &[&str]) -> Said {
    limited_to(SPACE, b, args)
}

fn limited_to(space: u32, b: &Bench, args: &[&str]) -> Said {
    let script = format!("ulimit -v {space} && exec \"$0\" \"$@\"");
    let mut shell = Command::new("sh");
    shell.current_dir(b.dir.path()).args(["-c", &script, env!("CARGO_BIN_EXE_ocelli")]).args(args);
    support::said(shell.output().unwrap())
}

/// A JPEG whose header says 60,000 x 60,000.
fn jpeg() -> Vec<u8> {
    let mut bytes = PHOTO.to_vec();
    let frame = bytes.windows(2).position(|w| matches!(w, [0xff, 0xc0 | 0xc2])).unwrap();
    for at in [frame + 5, frame + 7] {
        bytes[at..at + 2].copy_from_slice(&60_000_u16.to_be_bytes());
    }
    bytes
}

/// A GIF with one pixel on a screen of 60,000 x 60,000.
fn gif() -> Vec<u8> {
    let side = 60_000_u16.to_le_bytes();
    let screen = [b"GIF89a", &side[..], &side[..], &[0x80, 0, 0, 0, 0, 0, 255, 255, 255]].concat();
    [&screen[..], &[0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0, 0x3b]].concat()
}

/// Twelve good pictures, and so many that are too large for the memory.
fn folder(b: &Bench) -> usize {
    std::fs::create_dir(b.path("f")).unwrap();
    let (jpeg, gif) = (jpeg(), gif());
    let large: [&[u8]; 8] = [LARGE, CLAIMS, &jpeg, &gif, LARGE, LARGE, LARGE, LARGE];
    let good = (0..12).map(|i| (format!("good{i}.png"), GOOD));
    let large_ones = large.iter().enumerate().map(|(i, bytes)| (format!("large{i}.png"), *bytes));
    for (name, bytes) in good.chain(large_ones) {
        std::fs::write(b.path(&format!("f/{name}")), bytes).unwrap();
        std::fs::write(b.path(&format!("f/{name}")).with_extension("txt"), "a dot").unwrap();
    }
    large.len()
}

/// A table is read on behind a record that is too large.
#[test]
fn a_record_of_a_table_is_one_row() {
    let b = Bench::new();
    let dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGPg5OQEAAA6ABztCJuOAAAAAElFTkSuQmCC";
    let rows = |first: usize| (first..first + 10).map(|i| format!("{dot},dot {i}\n")).collect::<String>();
    let mut file = std::fs::File::create(b.path("my.csv")).unwrap();
    write!(file, "b64string_images,caption\n{}", rows(0)).unwrap();
    // A hole, which takes no room on the disk.
    file.seek(SeekFrom::Current(180 << 20)).unwrap();
    write!(file, ",large\n{}", rows(10)).unwrap();
    drop(file);
    let check = ["data", "check", "my.csv"];
    let wanted =
        ["20 of 21 rows can be used", "1 no_memory", "my.csv:12 (row 10)", "a record of 188743687 bytes"];
    limited_to(250_000, &b, &check).done().mentions(&wanted);
}

#[test]
fn what_there_is_no_memory_for_is_skipped() {
    let b = Bench::new();
    let large = folder(&b);
    let skipped = format!("{large} no_memory");
    let check = ["data", "check", "f", ANY_SIZE, "data_config.max_skip_ratio=0.5"];
    limited(&b, &check).done().mentions(&[
        "12 of 20 rows can be used",
        &skipped,
        "bytes of memory cannot be had",
    ]);
    let keys = [
        "data_config.dataset=folder",
        "data_config.data_path=f",
        "data_config.train_split_ratio=1",
        ANY_SIZE,
    ];
    let name = ["--config-name", "csv_train", "data_config.vocab_path=auto", "trainer_config.epochs=2"];
    let run = with(&with(&name, &keys), &["data_config.max_skip_ratio=0.5"]);
    limited(&b, &tiny(&run)).done().mentions(&["no_memory"]);
    let reasons: Vec<_> = b.log("skipped.jsonl").iter().map(|line| line["reason"].clone()).collect();
    assert!(reasons.len() >= large && reasons.iter().all(|reason| reason == "no_memory"), "{reasons:?}");
    // Too many of them end the run with what to do.
    let strict = with(&with(&name, &keys), &["data_config.max_skip_ratio=0.05"]);
    let said = limited(&b, &tiny(&strict)).refused(&["no_memory", "or lower data_config.max_pixels"]);
    assert!(!said.err.contains("epair the data"), "{}", said.err);
}
