//! Decodes the files named on the standard input, one a line, and prints for each `ok WIDTH HEIGHT CRC-32` of its pixels in
//! RGB, or why it is refused. `scripts/jpeg_against_pillow.py` compares that with Pillow.

use std::io::BufRead;

use ocelli_data::image::{AlphaMode, DecodeOptions, decode};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let opts = DecodeOptions { max_pixels: 4_000_000, alpha: AlphaMode::Drop, exif: true };
    for path in std::io::stdin().lock().lines() {
        match decode(&std::fs::read(path?)?, &opts) {
            Ok(p) => println!("ok {} {} {}", p.width, p.height, crc32fast::hash(&p.pixels)),
            Err(reject) => println!("{reject}"),
        }
    }
    Ok(())
}
