//! Cut, damaged and lying picture files: each gets its reason, in every format that can hold the damage.

mod image_common;

use image_common::{SAMPLES, find, marker, mend_checksums, patched, png_chunk, png_with, read};
use ocelli_data::image::{DecodeOptions, Reject, Rgb, decode};

fn open(bytes: &[u8]) -> Result<Rgb, Reject> {
    decode(bytes, &DecodeOptions::default())
}

fn reason(bytes: &[u8]) -> &'static str {
    open(bytes).map_or_else(|e| e.reason, |_| "accepted")
}

/// However a file was cut, and whatever stands in for the rest, a part of a picture is never handed out.
#[test]
fn every_cut_of_every_kind_is_found() {
    for name in SAMPLES {
        let bytes = read(name);
        let whole = open(&bytes).unwrap();
        for cut in 1..bytes.len() {
            let found = open(&bytes[..cut]);
            match &found {
                Err(e) if cut >= 3 => {
                    assert_eq!(e.reason, "truncated", "{name} cut at {cut} of {}: {e}", bytes.len())
                }
                Err(_) => {}
                Ok(picture) => {
                    assert_eq!(picture.pixels, whole.pixels, "{name} cut at {cut} of {}", bytes.len());
                    let padding = name.ends_with("webp") && cut + 1 == bytes.len();
                    assert!(picture.warnings.no_end_marker || padding, "{name} cut at {cut}");
                }
            }
            let end = match name.rsplit('.').next() {
                Some("jpg") => &b"\xff\xd9"[..],
                Some("png") => b"\0\0\0\0IEND\xae\x42\x60\x82",
                _ => b"\0;",
            };
            for tail in [end, &[0; 300]] {
                // Of WebP, which has no checksums, only a fill of many bytes can be told from data.
                if tail.len() == 300 && name.ends_with("webp") && cut + 72 > bytes.len() {
                    continue;
                }
                if let Ok(picture) = open(&[&bytes[..cut], tail].concat()) {
                    // Half of a picture with an end of its own: the pixels must all be there, but for the detail of
                    // progressive scans.
                    let same = picture.pixels == whole.pixels;
                    let scans = name.contains("progressive") && tail == b"\xff\xd9";
                    assert!(
                        same || scans && picture.warnings.incomplete,
                        "{name} cut at {cut} of {}, {} bytes behind",
                        bytes.len(),
                        tail.len()
                    );
                }
            }
        }
    }
}

#[test]
fn what_follows_the_end_does_not_matter() {
    for name in SAMPLES {
        let bytes = read(name);
        let whole = open(&bytes).unwrap();
        let other = read("jpeg/grey.jpg");
        for tail in [&b"\n"[..], b"garbage", &[0; 300], &[0xff; 40], &other, &bytes] {
            let found = open(&[&bytes, tail].concat()).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(found, whole, "{name} and {} bytes", tail.len());
        }
    }
}

/// The places of width and height in files of each kind, the largest value that fits, and its bytes.
fn sizes() -> Vec<(&'static str, Vec<u8>, usize, Vec<u8>)> {
    let jpeg = |name: &str, sof| {
        let file = read(name);
        let at = marker(&file, sof) + 5;
        (file, at)
    };
    let (baseline, base_at) = jpeg("jpeg/baseline_420.jpg", 0xc0);
    let (progressive, prog_at) = jpeg("jpeg/progressive.jpg", 0xc2);
    let (cmyk, cmyk_at) = jpeg("jpeg/cmyk.jpg", 0xc0);
    let (lossy, lossless) = (read("formats/lossy.webp"), read("formats/lossless.webp"));
    let animated = read("formats/animated.webp");
    vec![
        ("baseline JPEG", baseline, base_at, vec![0xff; 4]),
        ("progressive JPEG", progressive, prog_at, vec![0xff; 4]),
        ("CMYK JPEG", cmyk, cmyk_at, vec![0xff; 4]),
        ("PNG", read("formats/rgb8.png"), 16, vec![0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff]),
        ("PNG beyond all", read("formats/grey1.png"), 16, vec![0xff; 8]),
        ("APNG", read("formats/animated.png"), 16, vec![0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff]),
        ("lossy WebP", lossy.clone(), find(&lossy, b"\x9d\x01\x2a") + 3, vec![0xff, 0x3f, 0xff, 0x3f]),
        ("lossless WebP", lossless.clone(), find(&lossless, b"VP8L") + 9, vec![0xff, 0xff, 0xff, 0x0f]),
        ("WebP canvas", animated.clone(), find(&animated, b"VP8X") + 12, vec![0xff; 6]),
        ("GIF screen", read("formats/plain.gif"), 6, vec![0xff; 4]),
        ("animated GIF screen", read("formats/animated.gif"), 6, vec![0xff; 4]),
        ("GIF frame", read("formats/local_palette.gif"), 13 + 1 + 4, vec![0xff; 4]),
        ("GIF frame far off", read("formats/local_palette.gif"), 13 + 1, vec![0xff; 4]),
    ]
}

#[test]
fn too_many_pixels_are_refused_from_the_header() {
    for (what, file, at, largest) in sizes() {
        let mut file = patched(&file, at, &largest);
        if what.contains("PNG") {
            mend_checksums(&mut file);
        }
        // Cut files too: what they ask for is the first thing wrong with them.
        for bytes in [&file[..], &file[..at + largest.len() + 14]] {
            let start = std::time::Instant::now();
            let reject = open(bytes).unwrap_err();
            assert!(start.elapsed().as_millis() < 50, "{what}: {:?}", start.elapsed());
            assert_eq!(reject.reason, "too_many_pixels", "{what}: {reject}");
            assert!(reject.detail.contains("100000000"), "{what}: {reject}");
        }
    }
}

#[test]
fn zero_width_or_height_is_corrupt() {
    for (what, file, at, largest) in sizes() {
        if matches!(what, "lossless WebP" | "WebP canvas" | "GIF frame far off") {
            continue; // These store the size less one, or a place.
        }
        let half = largest.len() / 2;
        for place in [at, at + half] {
            let mut file = patched(&file, place, &vec![0; half]);
            if what.contains("PNG") {
                mend_checksums(&mut file);
            }
            assert_eq!(reason(&file), "corrupt", "{what}");
        }
    }
}

#[test]
fn the_limit_is_what_the_options_say() {
    for name in SAMPLES {
        let bytes = read(name);
        let whole = open(&bytes).unwrap();
        let pixels = u64::from(whole.width) * u64::from(whole.height);
        let with = |max_pixels| decode(&bytes, &DecodeOptions { max_pixels, ..DecodeOptions::default() });
        assert!(with(pixels).is_ok(), "{name}");
        assert_eq!(with(pixels - 1).unwrap_err().reason, "too_many_pixels", "{name}");
    }
}

#[test]
fn containers_that_contradict_themselves_are_corrupt() {
    let offset = read("formats/offset.webp");
    let canvas = find(&offset, b"VP8X") + 12;
    assert_eq!(reason(&patched(&offset, canvas, &[9, 0, 0])), "corrupt", "frame beyond the canvas");
    let frame = find(&offset, b"ANMF") + 8 + 6;
    assert_eq!(reason(&patched(&offset, frame, &[9, 0, 0])), "corrupt", "frame smaller than its picture");
    let alpha = read("formats/lossy_alpha.webp");
    let canvas = find(&alpha, b"VP8X") + 12;
    assert_eq!(
        reason(&patched(&alpha, canvas, &[99, 0, 0, 99, 0, 0])),
        "corrupt",
        "canvas larger than the picture"
    );
    assert_eq!(
        reason(&patched(&alpha, canvas, &[1, 0, 0, 1, 0, 0])),
        "corrupt",
        "canvas smaller than the picture"
    );
    let lossy = read("formats/lossy.webp");
    let riff = (lossy.len() as u32 - 28).to_le_bytes();
    assert_eq!(reason(&patched(&lossy, 4, &riff)), "corrupt", "container shorter than its chunk");
    assert_eq!(reason(&patched(&lossy, 4, &[0; 4])), "corrupt", "empty container");
}

#[test]
fn damaged_checksums_are_corrupt_where_pixels_depend_on_them() {
    let file = read("formats/palette4_trns.png");
    for (kind, wanted) in
        [(b"IHDR", "corrupt"), (b"PLTE", "corrupt"), (b"tRNS", "corrupt"), (b"IDAT", "corrupt")]
    {
        let mut bytes = file.clone();
        let at = find(&file, kind);
        let length = u32::from_be_bytes(file[at - 4..at].try_into().unwrap()) as usize;
        bytes[at + 4 + length] ^= 1;
        assert_eq!(reason(&bytes), wanted, "{}", kind.escape_ascii());
    }
    let mut text = png_chunk(b"tEXt", b"Comment\0hello");
    *text.last_mut().unwrap() ^= 1;
    assert_eq!(reason(&png_with(&file, &text)), "accepted");
    // Every single flipped bit of the pixel data.
    let at = find(&file, b"IDAT") + 4;
    for bit in 0..(file.len() - 16 - at) * 8 {
        let mut bytes = file.clone();
        bytes[at + bit / 8] ^= 1 << (bit % 8);
        assert_eq!(reason(&bytes), "corrupt", "bit {bit}");
    }
}

#[test]
fn palettes_of_odd_lengths_are_corrupt() {
    let file = read("formats/palette4.png");
    let at = find(&file, b"PLTE") - 4;
    let length = u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    for palette in [&b""[..], b"r", b"rgbr", &[7; 771]] {
        let other = [&file[..at], &png_chunk(b"PLTE", palette), &file[at + 12 + length..]].concat();
        assert_eq!(reason(&other), "corrupt", "{} bytes", palette.len());
    }
    assert_eq!(reason(&[&file[..at], &file[at + 12 + length..]].concat()), "corrupt", "no palette");
}

#[test]
fn jpeg_segments_of_wrong_length_are_refused() {
    let file = read("jpeg/baseline_444.jpg");
    for (name, code) in [("APP0", 0xe0), ("DQT", 0xdb), ("DHT", 0xc4), ("SOF", 0xc0), ("SOS", 0xda)] {
        let at = marker(&file, code) + 2;
        for length in [0u16, 1, 2, 3, 7, 1000, u16::MAX] {
            let found = reason(&patched(&file, at, &length.to_be_bytes()));
            // A shorter APP0 leaves bytes before the next marker, which do no harm; a table without codes defines nothing, and
            // this file's are the standard's, which hold then.
            let short = code == 0xe0 && length < 16 || code == 0xc4 && length == 2;
            let harmless = short && found == "accepted";
            assert!(
                harmless || matches!(found, "corrupt" | "truncated"),
                "{name} of length {length}: {found}"
            );
        }
    }
    let (from, to) = (marker(&file, 0xdb), marker(&file, 0xc0));
    assert_eq!(reason(&[&file[..from], &file[to..]].concat()), "corrupt", "without quantisation tables");
    let (from, to) = (marker(&file, 0xc4), marker(&file, 0xda));
    // Frames of motion JPEG leave them out: the standard's are meant.
    assert_eq!(reason(&[&file[..from], &file[to..]].concat()), "accepted", "without Huffman tables");
}

#[test]
fn bytes_between_jpeg_segments_do_no_harm() {
    for name in ["jpeg/baseline_420.jpg", "jpeg/progressive.jpg", "jpeg/restarts.jpg"] {
        let file = read(name);
        let whole = open(&file).unwrap();
        for code in [0xdb, 0xc4, 0xda, 0xd9] {
            let at = marker(&file, code);
            for gap in [&b"\xff"[..], b"garbage", &[0; 50], b"\xff\xd0"] {
                let found = open(&[&file[..at], gap, &file[at..]].concat());
                assert!(found.as_ref() == Ok(&whole), "{name}, {gap:?} before {code:x}: {found:?}");
            }
            let again = [&file[..at], b"\xff\xd8", &file[at..]].concat();
            assert_eq!(reason(&again), "corrupt", "{name}, a second start before {code:x}");
        }
    }
}

#[test]
fn kinds_of_jpeg_that_are_not_read_are_named() {
    let file = read("jpeg/baseline_444.jpg");
    let sof = marker(&file, 0xc0);
    for (code, name) in [(0xc3, "lossless"), (0xc5, "hierarchical"), (0xc9, "arithmetic"), (0xf7, "JPEG-LS")]
    {
        let reject = open(&patched(&file, sof + 1, &[code])).unwrap_err();
        assert_eq!(reject.reason, "unsupported_format");
        assert!(reject.detail.contains(name) && reject.detail.contains("convert"), "{reject}");
    }
    let twelve = open(&patched(&file, sof + 4, &[12])).unwrap_err();
    assert_eq!(twelve.reason, "unsupported_format");
    assert!(twelve.detail.contains("12-bit"), "{twelve}");
}

#[test]
fn endless_scans_are_refused_in_time() {
    let file = read("jpeg/progressive.jpg");
    // A scan that sends one more bit of coefficient 0, which can be sent again.
    let scans: Vec<usize> = (0..file.len() - 1).filter(|i| file[*i..].starts_with(b"\xff\xda")).collect();
    let refining = scans.iter().position(|at| file[at + 11..at + 14] == [0, 0, 0x10]).unwrap();
    let (before, scan) = (&file[..scans[refining]], &file[scans[refining]..scans[refining + 1]]);
    let repeated = [before, &scan.repeat(20_000), b"\xff\xd9"].concat();
    let start = std::time::Instant::now();
    let reject = open(&repeated).unwrap_err();
    assert!(reject.detail.contains("scans"), "{reject}");
    assert!(start.elapsed().as_secs() < 2, "{:?}", start.elapsed());
}

#[test]
fn first_frames_that_lack_pixels_are_truncated() {
    // A second, whole frame does not stand in for the first.
    let file = read("formats/animated.gif");
    let at = find(&file, b",") + 10;
    let blocks = at + 1;
    let first = usize::from(file[blocks]);
    let short = [&file[..blocks], &[1, file[blocks + 1]], &file[blocks + 1 + first..]].concat();
    assert_eq!(reason(&short), "truncated");
}
