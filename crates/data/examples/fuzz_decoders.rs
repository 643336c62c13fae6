//! Feeds readers with changed files, as many as wanted, and says what came of it.
//!
//!     fuzz_decoders [--seed N] [--count N] [TARGET...]
//!
//! File number i comes from seed N + i, so `--seed S --count 1` repeats the one that is named in the summary.
//! The exit code is 1 if a reader panicked, took too long, took too much memory, or let a bad thing pass.

#[path = "../tests/fuzz_common/mod.rs"]
mod fuzz_common;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fuzz_common::{Target, Verdict, targets};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What one file may take. The slowest takes a few hundredths of a second.
const TIME: Duration = Duration::from_secs(2);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut seed, mut count, mut names) = (0u64, 100_000u64, Vec::new());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number =
            || args.next().ok_or("a number is missing")?.parse().map_err(|e| format!("{arg}: {e}"));
        match arg.as_str() {
            "--seed" => seed = number()?,
            "--count" => count = number()?,
            _ => names.push(arg),
        }
    }
    // Caught panics are counted, not shown.
    std::panic::set_hook(Box::new(|_| {}));
    let mut faults = 0;
    for target in targets() {
        if names.is_empty() || names.iter().any(|name| name == target.name) {
            faults += fuzz(&target, seed, count);
        }
    }
    if faults > 0 {
        std::process::exit(1);
    }
    Ok(())
}

/// Reads `count` files and prints a summary. Returns the number of faults.
fn fuzz(target: &Target, first: u64, count: u64) -> u64 {
    let mut outcomes: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut faults, mut slowest, mut largest) = (0, (Duration::ZERO, 0), (0, 0));
    let begin = Instant::now();
    for seed in first..first.saturating_add(count) {
        let bytes = target.case(seed);
        MEMORY.reset_peak_usage();
        let (before, start) = (MEMORY.current_usage(), Instant::now());
        let verdict = (target.read)(&bytes, seed);
        let (time, memory) = (start.elapsed(), MEMORY.peak_usage().saturating_sub(before));
        slowest = slowest.max((time, seed));
        largest = largest.max((memory, seed));
        let fault = match &verdict {
            Verdict::Wrong(what) => Some(what.clone()),
            _ if time > TIME => Some(format!("{time:?}")),
            _ if memory > target.memory + 4 * bytes.len() => Some(format!("{memory} bytes of memory")),
            _ => None,
        };
        if let Some(what) = fault {
            println!("seed {seed}: {what}");
            faults += 1;
        }
        let word = match verdict {
            Verdict::Accepted => "accepted",
            Verdict::Refused(reason) => reason,
            Verdict::Wrong(_) => "FAULT",
        };
        *outcomes.entry(word).or_default() += 1;
    }
    println!(
        "{}: {count} files from seed {first} on, in {:.0} s",
        target.name,
        begin.elapsed().as_secs_f64()
    );
    outcomes.iter().for_each(|(word, n)| println!("  {word:20} {n:8}"));
    println!("  slowest {:.1} ms (seed {})", slowest.0.as_secs_f64() * 1e3, slowest.1);
    println!("  most memory {:.1} MiB (seed {})", largest.0 as f64 / f64::from(1 << 20), largest.1);
    println!("  faults {faults}");
    faults
}
