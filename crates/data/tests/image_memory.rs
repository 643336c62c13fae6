//! Files that unpack to much more than they show: memory is bounded by the pixels, not by what stands beside them.

mod image_common;

use std::io::Write as _;
use std::sync::Mutex;
use std::time::Instant;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use image_common::{mend_checksums, patched, png_chunk, png_with, read};
use ocelli_data::image::{DecodeOptions, Reject, Rgb, decode};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Memory is counted for the whole process, so one file is read at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Decodes, and says how much memory that took at its height.
fn measured(bytes: &[u8]) -> (Result<Rgb, Reject>, usize) {
    MEMORY.reset_peak_usage();
    let (before, start) = (MEMORY.current_usage(), Instant::now());
    let found = decode(bytes, &DecodeOptions::default());
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    (found, MEMORY.peak_usage() - before)
}

/// Many zeros, well packed.
fn packed(bytes: usize) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&vec![0; bytes]).unwrap();
    encoder.finish().unwrap()
}

const MANY: usize = 256 << 20;

#[test]
fn text_and_profiles_of_a_png_are_never_unpacked() {
    let _alone = ONE_AT_A_TIME.lock();
    let file = read("formats/rgb8.png");
    let whole = decode(&file, &DecodeOptions::default()).unwrap();
    let bomb = packed(MANY);
    let heads: [(&[u8; 4], &[u8]); 3] =
        [(b"iCCP", b"name\0\0"), (b"zTXt", b"Comment\0\0"), (b"iTXt", b"Comment\0\x01\0\0\0")];
    for (kind, head) in heads {
        let bytes = png_with(&file, &png_chunk(kind, &[head, &bomb].concat()));
        let (found, memory) = measured(&bytes);
        assert_eq!(found.as_ref(), Ok(&whole), "{}", kind.escape_ascii());
        assert!(memory < (8 << 20) + 2 * bytes.len(), "{}: {memory} bytes", kind.escape_ascii());
    }
}

#[test]
fn pixels_beyond_the_last_row_are_never_unpacked() {
    let _alone = ONE_AT_A_TIME.lock();
    let file = read("formats/rgb8.png");
    let bytes = [&file[..33], &png_chunk(b"IDAT", &packed(MANY)), &png_chunk(b"IEND", b"")].concat();
    let (found, memory) = measured(&bytes);
    assert!(found.is_ok_and(|p| p.pixels.iter().all(|b| *b == 0)));
    assert!(memory < (8 << 20) + 2 * bytes.len(), "{memory} bytes");
}

#[test]
fn exif_blocks_cost_nothing() {
    let _alone = ONE_AT_A_TIME.lock();
    // 65,535 entries that claim 4 billion values each, and an offset into nowhere.
    let mut exif = b"II*\0\x08\0\0\0\xff\xff".to_vec();
    exif.extend(b"\x0e\x01\x02\0\xff\xff\xff\xff\xff\xff\xff\x7f".repeat(65_535));
    for block in [&exif[..], b"MM\0*\xff\xff\xff\xff", b"II*\0", b""] {
        let bytes = png_with(&read("formats/rgb8.png"), &png_chunk(b"eXIf", block));
        let (found, memory) = measured(&bytes);
        assert!(found.is_ok());
        assert!(memory < (2 << 20) + 2 * bytes.len(), "{memory} bytes");
    }
}

#[test]
fn headers_that_ask_for_too_much_allocate_nothing() {
    let _alone = ONE_AT_A_TIME.lock();
    let mut png = patched(&read("formats/rgb8.png"), 16, &[0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff]);
    mend_checksums(&mut png);
    let gif = patched(&read("formats/plain.gif"), 6, &[0xff; 4]);
    let webp = read("formats/animated.webp");
    let webp = patched(&webp, 24, &[0xff; 6]);
    for bytes in [png, gif, webp, read("cases/07_decompression_bomb/real_900Mpx.png")] {
        let (found, memory) = measured(&bytes);
        assert_eq!(found.unwrap_err().reason, "too_many_pixels");
        assert!(memory < 64 << 10, "{memory} bytes");
    }
}

/// Sizes within the limit, but without the pixels to fill them.
#[test]
fn small_files_of_large_pictures_stay_within_the_bound() {
    let _alone = ONE_AT_A_TIME.lock();
    let mut png = patched(&read("formats/rgb8.png"), 16, &[0, 0, 0x27, 0, 0, 0, 0x27, 0]);
    mend_checksums(&mut png);
    let gif = patched(&read("formats/local_palette.gif"), 13 + 1 + 4, &[0, 0x27, 0, 0x27]);
    for bytes in [png, gif] {
        let (found, memory) = measured(&bytes);
        assert_eq!(found.unwrap_err().reason, "truncated");
        // What is asked for beforehand counts.
        assert!(memory < 0x2700 * 0x2700 * 4 + (1 << 20), "{memory} bytes");
    }
}
