//! Huffman tables of a JPEG file (ITU-T T.81, annex C), read to know how long each code is.

use super::bits::{Bits, Stop};

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
    class: Class,
    /// For the next [`FAST`] bits: `bits of code and value << 8 | step`, or 0 if the code is longer.
    skip: Box<[u16; 1 << FAST]>,
    /// For the next [`FAST`] bits: `length << 8 | symbol`, or 0 if the code is longer.
    fast: Box<[u16; 1 << FAST]>,
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
        let mut table = Self {
            class,
            skip: Box::new([0; 1 << FAST]),
            fast: Box::new([0; 1 << FAST]),
            limit: [0; 17],
            shift: [0; 17],
            symbols: symbols.to_vec(),
        };
        let (mut code, mut index) = (0u32, 0usize);
        for length in 1..=16u32 {
            let count = u32::from(counts[length as usize - 1]);
            table.shift[length as usize] = index as i32 - code as i32;
            if code + count > 1 << length {
                return None;
            }
            for symbol in symbols.get(index..index + count as usize)? {
                if length <= FAST {
                    let first = (code << (FAST - length)) as usize;
                    let range = first..first + (1 << (FAST - length));
                    let (size, step) = meaning(class, *symbol);
                    table.skip[range.clone()].fill(((length + size) << 8 | step) as u16);
                    table.fast[range].fill((length << 8) as u16 | u16::from(*symbol));
                }
                code += 1;
            }
            index += count as usize;
            table.limit[length as usize] = code << (16 - length);
            code <<= 1;
        }
        Some(table)
    }

    /// Skips one symbol of a sequential scan and the value behind it. Returns by how many coefficients that
    /// goes on; 64 for the end of the block.
    #[inline(always)]
    pub(super) fn skip_value(&self, bits: &mut Bits<'_>) -> Result<u32, Stop> {
        let next = bits.peek32();
        let hit = u32::from(self.skip[(next >> (32 - FAST)) as usize]);
        if hit != 0 {
            // At most 10 bits of code and 16 of value: they are in the window if the file has them.
            bits.take(hit >> 8)?;
            return Ok(hit & 255);
        }
        let (rest, step) = self.skip_long(next >> 16, *bits)?;
        *bits = rest;
        Ok(step)
    }

    #[cold]
    fn skip_long<'a>(&self, next: u32, mut bits: Bits<'a>) -> Result<(Bits<'a>, u32), Stop> {
        let (size, step) = meaning(self.class, self.long_symbol(next, &mut bits)?);
        bits.skip(size)?;
        Ok((bits, step))
    }

    /// Reads one symbol.
    #[inline]
    pub(super) fn symbol(&self, bits: &mut Bits<'_>) -> Result<u8, Stop> {
        let next = bits.peek32();
        let hit = self.fast[(next >> (32 - FAST)) as usize];
        if hit != 0 {
            bits.take(u32::from(hit >> 8))?;
            return Ok(hit as u8);
        }
        self.long_symbol(next >> 16, bits)
    }

    fn long_symbol(&self, next: u32, bits: &mut Bits<'_>) -> Result<u8, Stop> {
        for length in FAST + 1..=16 {
            if next < self.limit[length as usize] {
                bits.take(length)?;
                let place = (next >> (16 - length)) as i32 + self.shift[length as usize];
                return self.symbols.get(place as usize).copied().ok_or(Stop::BadCode);
            }
        }
        // A file cut here shows zeros or a part of a code: that is an end, not a bad code.
        bits.take(16)?;
        Err(Stop::BadCode)
    }
}

/// Of a sequential scan: bits of the value that follows, and by how many coefficients the symbol goes on.
fn meaning(class: Class, symbol: u8) -> (u32, u32) {
    let (run, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
    match (class, run, size) {
        // Larger sizes do not exist; the decoder, which sees the file next, says so.
        (Class::Dc, ..) => (u32::from(symbol).min(16), 1),
        (Class::Ac, 15, 0) => (0, 16),
        (Class::Ac, _, 0) => (0, 64),
        (Class::Ac, ..) => (size, run + 1),
    }
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
            assert_eq!(table.symbol(&mut bits), Ok(wanted));
        }
    }

    #[test]
    fn skips_values_with_their_codes() {
        // Symbol 0x21 (two zeros, one bit) has the code 0, symbol 0 the code 10, symbol 0xf0 the code 110.
        let mut counts = [0u8; 16];
        (counts[0], counts[1], counts[2]) = (1, 1, 1);
        let table = Table::new(Class::Ac, &counts, &[0x21, 0, 0xf0]).unwrap();
        let mut bits = Bits::new(&[0b0111_0010], 0);
        for step in [3, 16, 3] {
            assert_eq!(table.skip_value(&mut bits), Ok(step));
        }
        assert_eq!(table.skip_value(&mut bits), Err(Stop::NoData));
    }

    #[test]
    fn bad_codes_and_impossible_tables_are_found() {
        let mut bits = Bits::new(&[0xfe, 0xfe, 0xfe], 0);
        assert_eq!(table().symbol(&mut bits), Err(Stop::BadCode));
        let mut bits = Bits::new(&[0xfe], 0);
        assert_eq!(table().symbol(&mut bits), Err(Stop::NoData));
        let mut counts = [0u8; 16];
        counts[0] = 3;
        assert!(Table::new(Class::Ac, &counts, &[1, 2, 3]).is_none());
    }
}
