//! The picture decoders: JPEG, PNG, WebP, GIF.

use std::path::PathBuf;

use ocelli_data::image::{AlphaMode, DecodeOptions, REASONS, decode, scaled};

use super::{Target, Verdict};

#[path = "../image_common/mod.rs"]
mod image_common;

/// The limit of pixels while fuzzing. The bound of memory follows from it.
pub const MAX_PIXELS: u64 = 1_000_000;

pub fn target() -> Target {
    Target { name: "pictures", files: files(), mend, read, memory: 48 << 20 }
}

/// Every fixture that is small enough to be changed in a place that matters.
fn files() -> Vec<Vec<u8>> {
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests");
    let cases = ["cases/01_broken_images", "cases/03_alpha_palette_grey", "cases/05_exif_orientation"];
    let mut paths: Vec<PathBuf> = ["jpeg", "edges", "formats", "resize"]
        .iter()
        .chain(&cases)
        .flat_map(|folder| std::fs::read_dir(tests.join(folder)).expect("the fixtures are in tests/"))
        .map(|entry| entry.expect("a folder that can be listed").path())
        .filter(|path| path.extension().is_some_and(|ending| ending != "json"))
        .collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("a fixture")).collect()
}

fn read(bytes: &[u8], choice: u64) -> Verdict {
    let alpha = if choice & 1 == 0 { AlphaMode::White } else { AlphaMode::Drop };
    let opts = DecodeOptions { max_pixels: MAX_PIXELS, alpha, exif: choice & 2 == 0 };
    let picture = match decode(bytes, &opts) {
        Err(e) if e.detail.contains("gave up") => return Verdict::Wrong(format!("a panic: {e}")),
        Err(e) if e.detail.is_empty() => return Verdict::Wrong(format!("no detail: {}", e.reason)),
        Err(e) if REASONS.iter().all(|(reason, _)| *reason != e.reason) => {
            return Verdict::Wrong(format!("an unknown reason: {e}"));
        }
        Err(e) => return Verdict::Refused(e.reason),
        Ok(picture) => picture,
    };
    let pixels = u64::from(picture.width) * u64::from(picture.height);
    if pixels == 0 || pixels > MAX_PIXELS || picture.pixels.len() as u64 != pixels * 3 {
        let (w, h, n) = (picture.width, picture.height, picture.pixels.len());
        return Verdict::Wrong(format!("{w} x {h} with {n} bytes"));
    }
    match scaled(&picture, 16) {
        Ok(scaled) if scaled.len() == 16 * 16 * 3 => Verdict::Accepted,
        other => Verdict::Wrong(format!("scaled to {:?}", other.map(|s| s.len()))),
    }
}

/// Makes the checksums right if it is a PNG.
fn mend(bytes: &mut [u8]) {
    if bytes.starts_with(b"\x89PNG") {
        image_common::mend_checksums(bytes);
    }
}
