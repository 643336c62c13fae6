//! The bits of a JPEG scan: byte stuffing undone, stopping at the first marker.
//!
//! Invariant: a bit that is not in the file is never handed out; asking for one is [`Stop::NoData`].

/// Why a scan cannot be read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// A marker or the end of the file comes before the last block.
    NoData,
    /// The bits are no code of the table, or the code makes no sense.
    BadCode,
}

/// A reader of bits, most significant first. Small and copied freely, so that it lives in registers.
#[derive(Clone, Copy)]
pub(super) struct Bits<'a> {
    data: &'a [u8],
    /// Next byte to load; never beyond the marker that ends the scan.
    at: usize,
    /// Loaded bits, the next one at the top, zeros below the loaded ones.
    window: u64,
    /// How many bits of `window` are loaded.
    loaded: u32,
}

impl<'a> Bits<'a> {
    /// Starts at byte `at` of `data`.
    pub(super) fn new(data: &'a [u8], at: usize) -> Self {
        Self { data, at, window: 0, loaded: 0 }
    }

    /// The byte where reading stands: at most the position of the next marker.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Drops what is loaded and goes on at byte `at`.
    pub(super) fn restart(&mut self, at: usize) {
        *self = Self::new(self.data, at);
    }

    /// The next 32 bits, without taking them; zeros stand for what the file lacks.
    #[inline(always)]
    pub(super) fn peek32(&mut self) -> u32 {
        if self.loaded < 32 {
            self.load();
        }
        (self.window >> 32) as u32
    }

    /// Takes `n` bits, at most 32, that have been peeked at.
    #[inline(always)]
    pub(super) fn take(&mut self, n: u32) -> Result<(), Stop> {
        if n > self.loaded {
            return Err(Stop::NoData);
        }
        self.window <<= n;
        self.loaded -= n;
        Ok(())
    }

    /// Reads `n` bits, at most 31, as a number.
    #[inline]
    pub(super) fn read(&mut self, n: u32) -> Result<u32, Stop> {
        let value = (u64::from(self.peek32()) >> (32 - n)) as u32;
        self.take(n)?;
        Ok(value)
    }

    /// Fills the window with at least 32 bits, if the file has them.
    #[inline(always)]
    fn load(&mut self) {
        if let Some(&[a, b, c, d]) = self.data.get(self.at..).and_then(|rest| rest.first_chunk::<4>()) {
            let word = u32::from_be_bytes([a, b, c, d]);
            // No byte of the four is 0xff: the usual case, no stuffing and no marker.
            if (!word).wrapping_sub(0x0101_0101) & word & 0x8080_8080 == 0 {
                self.window |= u64::from(word) << (32 - self.loaded);
                self.loaded += 32;
                self.at += 4;
                return;
            }
        }
        *self = self.load_bytes();
    }

    /// Byte by byte: near a stuffed byte, a marker or the end.
    #[cold]
    fn load_bytes(mut self) -> Self {
        while self.loaded <= 56 {
            let Some(&byte) = self.data.get(self.at) else { break };
            let stuffed = byte == 0xff;
            if stuffed && self.data.get(self.at + 1) != Some(&0) {
                break;
            }
            self.at += 1 + usize::from(stuffed);
            self.window |= u64::from(byte) << (56 - self.loaded);
            self.loaded += 8;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undoes_stuffing_and_stops_at_a_marker() {
        let mut bits = Bits::new(&[0x12, 0xff, 0x00, 0x34, 0x56, 0x78, 0xff, 0xd9, 0x99], 0);
        for wanted in [0x1, 0x2, 0xf, 0xf, 0x3, 0x4, 0x5, 0x6, 0x7, 0x8] {
            assert_eq!(bits.read(4), Ok(wanted));
        }
        assert_eq!(bits.read(1), Err(Stop::NoData));
        assert_eq!(bits.position(), 6);
    }

    #[test]
    fn the_fast_and_the_slow_way_agree() {
        let data: Vec<u8> = (0..=254).collect();
        let mut bits = Bits::new(&data, 0);
        for (i, byte) in data.iter().enumerate() {
            assert_eq!(bits.read(3), Ok(u32::from(byte >> 5)), "byte {i}");
            assert_eq!(bits.read(5), Ok(u32::from(byte & 31)), "byte {i}");
        }
        assert_eq!(bits.read(1), Err(Stop::NoData));
    }
}
