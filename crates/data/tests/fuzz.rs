//! Changed files: whatever the bytes, there is an answer, in time and within bounds of memory; no reader
//! panics, and what one accepts is whole. `examples/fuzz_decoders.rs` does the same with more files.

mod fuzz_common;

use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use fuzz_common::{Target, Verdict, targets};
use ocelli_data::image::{DecodeOptions, decode};
use peak_alloc::PeakAlloc;
use proptest::prelude::*;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

static TARGETS: LazyLock<Vec<Target>> = LazyLock::new(targets);
/// Memory is counted for the whole process, so one file is read at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Far above what any file takes, for slow and busy machines.
const TIME: Duration = Duration::from_secs(20);

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The failing seed is shown; `fuzz_decoders --seed SEED --count 1` runs it alone.
    #[test]
    fn changed_files_get_an_answer(seed in any::<u64>()) {
        let _alone = ONE_AT_A_TIME.lock();
        for target in TARGETS.iter() {
            let bytes = target.case(seed);
            MEMORY.reset_peak_usage();
            let (before, start) = (MEMORY.current_usage(), Instant::now());
            let verdict = (target.read)(&bytes, seed);
            let memory = MEMORY.peak_usage().saturating_sub(before);
            prop_assert!(!matches!(verdict, Verdict::Wrong(_)), "{}: {:?}", target.name, verdict);
            prop_assert!(start.elapsed() < TIME, "{}: {:?}", target.name, start.elapsed());
            let limit = target.memory + 4 * bytes.len();
            prop_assert!(memory <= limit, "{}: {memory} bytes of memory, the limit is {limit}", target.name);
        }
    }

    #[test]
    fn any_bytes_get_an_answer(
        head in prop::sample::select(vec![
            &b""[..], b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"RIFF", b"RIFF\xff\0\0\0WEBPVP8X", b"GIF89a\x01\0\x01\0",
        ]),
        tail in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let _alone = ONE_AT_A_TIME.lock();
        let bytes = [head, &tail[..]].concat();
        prop_assert!(decode(&bytes, &DecodeOptions::default()).is_err());
    }
}
