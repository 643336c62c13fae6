//! The bits of a JPEG scan: byte stuffing undone, stopping at the first marker.
//!
//! Invariant: what lies behind a marker is never handed out. A reader that is asked for more has run dry: it hands
//! out zeros, as libjpeg does, and says so.

/// A reader of bits, most significant first. Small and copied freely, so that it lives in registers.
#[derive(Clone, Copy)]
pub(super) struct Bits<'a> {
    data: &'a [u8],
    /// Next byte to load; never beyond the marker that ends the scan.
    at: usize,
    /// Loaded bits, the next one at the top, zeros below the loaded ones.
    window: u64,
    /// How many bits of `window` are loaded; below 0 once it has run dry: then there is nothing to load.
    loaded: i32,
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
    pub(super) fn take(&mut self, n: u32) {
        self.window <<= n;
        self.loaded = self.loaded.wrapping_sub_unsigned(n);
    }

    /// Reads `n` bits, at most 31, as a number.
    #[inline]
    pub(super) fn read(&mut self, n: u32) -> u32 {
        let value = (u64::from(self.peek32()) >> (32 - n)) as u32;
        self.take(n);
        value
    }

    /// Whether more was asked for than there is.
    #[inline]
    pub(super) fn ran_dry(&self) -> bool {
        self.loaded < 0
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
            if byte == 0xff {
                // A marker may have any number of bytes 0xff before it, and so may the 0 of a stuffed one.
                while self.data.get(self.at + 1) == Some(&0xff) {
                    self.at += 1;
                }
                if self.data.get(self.at + 1) != Some(&0) {
                    break;
                }
                self.at += 1;
            }
            self.at += 1;
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
            assert_eq!(bits.read(4), wanted);
        }
        assert!(!bits.ran_dry());
        assert_eq!(bits.position(), 6);
        for _ in 0..1_000 {
            assert_eq!(bits.read(11), 0);
            assert!(bits.ran_dry());
        }
        assert_eq!(bits.position(), 6);
    }

    #[test]
    fn fill_bytes_belong_to_what_follows_them() {
        let mut bits = Bits::new(&[0xff, 0xff, 0xff, 0x00, 0x12, 0xff, 0xff, 0xd9], 0);
        assert_eq!([bits.read(8), bits.read(8)], [0xff, 0x12]);
        assert!(!bits.ran_dry());
        assert_eq!(bits.position(), 6);
    }

    #[test]
    fn the_fast_and_the_slow_way_agree() {
        let data: Vec<u8> = (0..=254).collect();
        let mut bits = Bits::new(&data, 0);
        for (i, byte) in data.iter().enumerate() {
            assert_eq!(bits.read(3), u32::from(byte >> 5), "byte {i}");
            assert_eq!(bits.read(5), u32::from(byte & 31), "byte {i}");
        }
        assert!(!bits.ran_dry());
        bits.read(1);
        assert!(bits.ran_dry());
    }
}
