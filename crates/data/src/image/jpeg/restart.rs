//! Markers among the codes of a scan, and what to do about restart markers that are not the expected ones.

/// What is read after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ahead {
    /// Codes, from this byte on.
    Data(usize),
    /// A marker that comes later than the wanted one, at this byte: the interval is missing.
    Marker(usize),
    /// The end of the file.
    Nothing,
}

/// Finds the restart marker with number `wanted`, from byte `at` on. Where another one stands, libjpeg's way is followed:
/// one of the next two says that the wanted one is missing, as a marker of another kind does; one of the two before is passed
/// over, as what is no marker; and any other is taken for the wanted one.
pub(super) fn resync(data: &[u8], mut at: usize, wanted: usize) -> Ahead {
    while let Some(found) = next_marker(data, at) {
        let marker = data[found + 1];
        at = found + 2;
        match marker {
            0x00..0xc0 => {}
            0xd0..=0xd7 => match (usize::from(marker) + 8 - 0xd0 - wanted) % 8 {
                1 | 2 => return Ahead::Marker(found),
                6 | 7 => {}
                _ => return Ahead::Data(at),
            },
            _ => return Ahead::Marker(found),
        }
    }
    Ahead::Nothing
}

/// Position of the next `ff xx` that is a marker, from byte `at` on.
pub(super) fn next_marker(data: &[u8], at: usize) -> Option<usize> {
    let rest = data.get(at..)?;
    rest.windows(2).position(|w| w[0] == 0xff && w[1] != 0 && w[1] != 0xff).map(|i| at + i)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_restart_markers_are_waited_for_or_passed_over() {
        let data = |markers: &[u8]| markers.iter().flat_map(|m| [7, 0xff, *m]).collect::<Vec<_>>();
        let found = |markers: &[u8], wanted| resync(&data(markers), 0, wanted);
        assert_eq!(found(&[0xd3], 3), Ahead::Data(3));
        assert_eq!(found(&[0xd4], 3), Ahead::Marker(1));
        assert_eq!(found(&[0xd1], 7), Ahead::Marker(1), "numbers go round");
        assert_eq!(found(&[0xd6], 3), Ahead::Data(3), "too far away to mean anything");
        assert_eq!(found(&[0xd2, 0xd1, 0x05, 0xd3], 3), Ahead::Data(12));
        assert_eq!(found(&[0xd2, 0xd9], 3), Ahead::Marker(4));
        assert_eq!(found(&[0xd2], 3), Ahead::Nothing);
    }
}
