//! Huffman tables of a JPEG file (ITU-T T.81, annex C), and the values that stand behind the codes.
//!
//! Bits that are no code of a table stand for symbol 0, and take one bit more than the longest code: so libjpeg goes on.

use super::bits::Bits;
use crate::scratch::Buffer;

/// Codes up to this length are found by one look-up.
const FAST: u32 = 10;

/// What a table's symbols mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// The size in bits of the value that follows.
    Dc,
    /// High half: how many zeros come before the value; low half: its size in bits.
    Ac,
}

/// One table: codes of 1 to 16 bits for symbols of 8 bits.
pub(super) struct Table {
    /// For the next [`FAST`] bits: `length << 16 | symbol << 8 | all`, or 0 if the code is longer. `length` is the code's, `all`
    /// has the bits of the value besides.
    fast: Buffer<[u32; 1 << FAST]>,
    /// For each length: the first code that is too large for it, aligned to 16 bits.
    limit: [u32; 17],
    /// For each length: what to add to a code to find its place in `symbols`.
    shift: [i32; 17],
    symbols: Vec<u8>,
}

impl Table {
    /// Builds a table from the number of codes of each length, and the symbols in order of their codes.
    /// `None` if no such code exists.
    pub(super) fn new(class: Class, counts: &[u8; 16], symbols: &[u8]) -> Option<Self> {
        // Values of more than 15 bits do not exist.
        if class == Class::Dc && symbols.iter().any(|symbol| *symbol > 15) {
            return None;
        }
        let mut table =
            Self { fast: Buffer::zeros(1), limit: [0; 17], shift: [0; 17], symbols: symbols.to_vec() };
        let (mut code, mut index) = (0u32, 0usize);
        for length in 1..=16u32 {
            let count = u32::from(counts[length as usize - 1]);
            table.shift[length as usize] = index as i32 - code as i32;
            // The code of ones alone is not to be used.
            if count > 0 && code + count >= 1 << length {
                return None;
            }
            for symbol in symbols.get(index..index + count as usize)? {
                if length <= FAST {
                    let first = (code << (FAST - length)) as usize;
                    let range = first..first + (1 << (FAST - length));
                    let (symbol, size) = (u32::from(*symbol), u32::from(*symbol & 15));
                    table.fast[0][range].fill(length << 16 | symbol << 8 | (length + size));
                }
                code += 1;
            }
            index += count as usize;
            table.limit[length as usize] = code << (16 - length);
            code <<= 1;
        }
        Some(table)
    }

    /// Reads one symbol and the value behind it, whose size in bits is the symbol's low half.
    #[inline(always)]
    pub(super) fn value(&self, bits: &mut Bits<'_>) -> (u8, i32) {
        let next = bits.peek32();
        let hit = self.fast[0][(next >> (32 - FAST)) as usize];
        if hit != 0 {
            // At most 10 bits of code and 15 of value: they are in the window if the file has them.
            let (all, size) = (hit & 0x3f, hit >> 8 & 15);
            bits.take(all);
            let value = (next >> (32 - all)) & ((1 << size) - 1);
            return ((hit >> 8) as u8, extended(value, size));
        }
        let (rest, symbol, value) = self.long_value(next >> 16, *bits);
        *bits = rest;
        (symbol, value)
    }

    #[cold]
    fn long_value<'a>(&self, next: u32, mut bits: Bits<'a>) -> (Bits<'a>, u8, i32) {
        let symbol = self.long_symbol(next, &mut bits);
        let size = u32::from(symbol & 15);
        let value = bits.read(size);
        (bits, symbol, extended(value, size))
    }

    /// Reads one symbol.
    #[inline]
    pub(super) fn symbol(&self, bits: &mut Bits<'_>) -> u8 {
        let next = bits.peek32();
        let hit = self.fast[0][(next >> (32 - FAST)) as usize];
        if hit != 0 {
            bits.take(hit >> 16);
            return (hit >> 8) as u8;
        }
        self.long_symbol(next >> 16, bits)
    }

    fn long_symbol(&self, next: u32, bits: &mut Bits<'_>) -> u8 {
        for length in FAST + 1..=16 {
            if next < self.limit[length as usize] {
                bits.take(length);
                let place = (next >> (16 - length)) as i32 + self.shift[length as usize];
                return self.symbols.get(place as usize).copied().unwrap_or(0);
            }
        }
        bits.take(17);
        0
    }
}

/// A number of `size` bits, of which the lower half stands for negative ones (T.81, F.2.2.1).
#[inline(always)]
pub(super) fn extended(value: u32, size: u32) -> i32 {
    let most = (1 << size) - 1;
    if value <= most >> 1 { value as i32 - most as i32 } else { value as i32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Codes 0, 10, 110 and, of 12 bits, 1110_0000_0000 onward.
    fn table() -> Table {
        let mut counts = [0u8; 16];
        (counts[0], counts[1], counts[2], counts[11]) = (1, 1, 1, 2);
        Table::new(Class::Ac, &counts, &[5, 6, 7, 8, 9]).unwrap()
    }

    #[test]
    fn reads_short_and_long_codes() {
        // 0 | 10 | 110 | 1110_0000_0000 | 1110_0000_0001 | padding
        let data = [0b0101_1011, 0b1000_0000, 0b0011_1000, 0b0000_0111];
        let mut bits = Bits::new(&data, 0);
        let table = table();
        for wanted in [5, 6, 7, 8, 9] {
            assert_eq!(table.symbol(&mut bits), wanted);
        }
    }

    #[test]
    fn reads_values_with_their_codes() {
        // Symbol 0x22 (two zeros, two bits) has the code 0, symbol 0 the code 10, symbol 0xf0 the code 110.
        let mut counts = [0u8; 16];
        (counts[0], counts[1], counts[2]) = (1, 1, 1);
        let table = Table::new(Class::Ac, &counts, &[0x22, 0, 0xf0]).unwrap();
        // 0 00 | 0 01 | 10 | 0 10 | 0 11 | 110 | padding
        let mut bits = Bits::new(&[0b0000_0110, 0b0100_1111, 0b0000_0000], 0);
        let wanted = [(0x22, -3), (0x22, -2), (0, 0), (0x22, 2), (0x22, 3), (0xf0, 0)];
        assert_eq!(wanted.map(|_| table.value(&mut bits)), wanted);
        bits.read(7);
        assert!(!bits.ran_dry());
        table.value(&mut bits);
        assert!(bits.ran_dry());
    }

    #[test]
    fn reads_values_behind_long_codes() {
        // 1110_0000_0000 | 8 bits of value: 5, which is negative | padding
        let mut counts = [0u8; 16];
        (counts[0], counts[1], counts[2], counts[11]) = (1, 1, 1, 1);
        let table = Table::new(Class::Ac, &counts, &[1, 2, 3, 8]).unwrap();
        let mut bits = Bits::new(&[0b1110_0000, 0b0000_0000, 0b0101_0000], 0);
        assert_eq!(table.value(&mut bits), (8, 5 - 255));
    }

    #[test]
    fn bad_codes_stand_for_zero_and_impossible_tables_are_found() {
        let mut bits = Bits::new(&[0xff, 0x00, 0xfe, 0b0100_0000], 0);
        assert_eq!(table().symbol(&mut bits), 0);
        assert_eq!((bits.read(1), bits.ran_dry()), (1, false), "17 bits were taken");
        let table = |count: u8, class, symbol| {
            let mut counts = [0u8; 16];
            counts[0] = count;
            Table::new(class, &counts, &[symbol; 3])
        };
        assert!(table(1, Class::Ac, 16).is_some() && table(1, Class::Dc, 16).is_none());
        assert!(table(2, Class::Ac, 1).is_none(), "a code of ones alone");
        assert!(table(3, Class::Ac, 1).is_none(), "more codes than there are");
    }
}
