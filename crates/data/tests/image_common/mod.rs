//! Picture files for tests, and ways to damage them.

#![allow(dead_code)] // Each test binary uses a part of it.

use std::path::PathBuf;

/// A file under `tests/`.
pub fn read(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// One small file of every kind that each format has.
pub const SAMPLES: [&str; 33] = [
    "jpeg/baseline_444.jpg",
    "jpeg/baseline_420.jpg",
    "jpeg/baseline_411.jpg",
    "jpeg/restarts.jpg",
    "jpeg/progressive.jpg",
    "jpeg/progressive_restarts.jpg",
    "jpeg/grey.jpg",
    "jpeg/cmyk.jpg",
    "jpeg/cmyk_progressive.jpg",
    "jpeg/ycck.jpg",
    "formats/grey1.png",
    "formats/grey16_trns.png",
    "formats/rgb8.png",
    "formats/rgb8_interlaced.png",
    "formats/palette4_trns.png",
    "formats/rgba16_interlaced.png",
    "formats/animated.png",
    "formats/animated_default_apart.png",
    "formats/o6.png",
    "formats/lossy.webp",
    "formats/lossy_alpha.webp",
    "formats/lossless.webp",
    "formats/lossless_alpha.webp",
    "formats/animated.webp",
    "formats/animated_alpha.webp",
    "formats/offset.webp",
    "formats/o6.webp",
    "formats/plain.gif",
    "formats/transparent.gif",
    "formats/interlaced.gif",
    "formats/local_palette.gif",
    "formats/photo.gif",
    "formats/animated.gif",
];

/// A PNG chunk with its checksum.
pub fn png_chunk(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut chunk = (body.len() as u32).to_be_bytes().to_vec();
    chunk.extend_from_slice(kind);
    chunk.extend_from_slice(body);
    let sum = crc32fast::hash(&chunk[4..]);
    chunk.extend_from_slice(&sum.to_be_bytes());
    chunk
}

/// Puts `chunk` behind the header of a PNG file.
pub fn png_with(file: &[u8], chunk: &[u8]) -> Vec<u8> {
    [&file[..33], chunk, &file[33..]].concat()
}

/// Makes the checksums of a PNG file right again, as far as its chunks can be followed.
pub fn mend_checksums(bytes: &mut [u8]) {
    let mut at = 8;
    while let Some(head) = bytes.get(at..at + 8) {
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let Some(chunk) = bytes.get_mut(at + 4..(at + 12).saturating_add(length)) else { return };
        let (body, sum) = chunk.split_at_mut(4 + length);
        sum.copy_from_slice(&crc32fast::hash(body).to_be_bytes());
        at += 12 + length;
    }
}

/// Where the first marker `ff marker` stands in a JPEG file.
pub fn marker(file: &[u8], marker: u8) -> usize {
    file.windows(2).position(|w| w == [0xff, marker]).unwrap()
}

/// Where `what` stands in `file`.
pub fn find(file: &[u8], what: &[u8]) -> usize {
    file.windows(what.len()).position(|w| w == what).unwrap()
}

/// `file` with `bytes` written over it from `at` on.
pub fn patched(file: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    file[at..at + bytes.len()].copy_from_slice(bytes);
    file
}
