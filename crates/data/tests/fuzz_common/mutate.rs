//! Changes to files: what transfer, disks and spite do to them.

use super::Target;

/// SplitMix64 (Steele, Lea and Flood, 2014): good enough for choices, and small.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `n - 1`; 0 if `n` is 0.
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// A place in `bytes`: often near the front, where the structure is.
    fn place(&mut self, bytes: &[u8]) -> usize {
        let end = if self.below(3) == 0 { bytes.len().min(64) } else { bytes.len() };
        self.below(end)
    }
}

/// A whole file of the target, changed in 1 to 6 ways, most often in one: what is changed too much is refused at
/// once.
pub fn mutated(target: &Target, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut bytes = target.files[random.below(target.files.len())].clone();
    let other = &target.files[random.below(target.files.len())];
    let most = if random.below(2) == 0 { 1 } else { 6 };
    for _ in 0..=random.below(most) {
        change(&mut bytes, other, &mut random);
    }
    if random.below(4) > 0 {
        (target.mend)(&mut bytes);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = random.place(bytes);
    let n = 1 + random.below(40);
    let end = (at + n).min(bytes.len());
    match random.below(12) {
        0 | 1 => bytes[at..end].iter_mut().take(1).for_each(|b| *b = random.next() as u8),
        2 | 3 => bytes[at..end].iter_mut().take(1).for_each(|b| *b ^= 1 << random.below(8)),
        4 => bytes.truncate(at),
        5 => drop(bytes.drain(at..end)),
        6 => {
            let copy = bytes[at..end].to_vec();
            let times = 1 + random.below(20);
            bytes.splice(at..at, copy.repeat(times));
        }
        7 => {
            let new: Vec<u8> = (0..n).map(|_| random.next() as u8).collect();
            bytes.splice(at..at, new);
        }
        8 => bytes[at..end].fill(if random.below(2) == 0 { 0 } else { 0xff }),
        // A part of another file, or all that follows in it.
        9 => {
            let from = random.place(other);
            let to = if random.below(2) == 0 { other.len() } else { (from + 4 * n).min(other.len()) };
            let until = if random.below(2) == 0 { bytes.len() } else { end };
            bytes.splice(at..until, other[from..to].iter().copied());
        }
        // Lists, or structures, within each other, as parquet writes them.
        10 => drop(bytes.splice(at..at, vec![if random.below(2) == 0 { 0x19 } else { 0x1c }; 1 << 16])),
        _ => length_field(bytes, at, random),
    }
}

/// Writes a number over 2 to 4 bytes, as a field for a length, a count or a size could hold.
fn length_field(bytes: &mut [u8], at: usize, random: &mut Random) {
    let length = bytes.len() as u32;
    let numbers = [0, 1, 2, 255, 256, 0x7fff, 0xffff, 0x7fff_ffff, u32::MAX, length, length - length / 3];
    let number = numbers[random.below(numbers.len())].wrapping_add(random.below(3) as u32);
    let width = 2 + random.below(3);
    let field = if random.below(2) == 0 { number.to_be_bytes() } else { number.to_le_bytes() };
    let part = if random.below(2) == 0 { &field[..width] } else { &field[4 - width..] };
    bytes[at..].iter_mut().zip(part).for_each(|(b, new)| *b = *new);
}
