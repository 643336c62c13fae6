//! Time to decode one picture and to scale it to 96 x 96: `decode_speed FILE...`, nanoseconds, best of many.

use std::time::Instant;

use ocelli_data::image::{DecodeOptions, decode, scaled};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let opts = DecodeOptions::default();
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path)?;
        let (mut best, mut best_decode) = (u128::MAX, u128::MAX);
        for _ in 0..200 {
            let start = Instant::now();
            let picture = decode(&bytes, &opts)?;
            best_decode = best_decode.min(start.elapsed().as_nanos());
            std::hint::black_box(scaled(&picture, 96)?);
            best = best.min(start.elapsed().as_nanos());
        }
        println!("{path}: {best} ns, of it {best_decode} ns to decode");
    }
    Ok(())
}
