//! The order in which coefficients are sent (T.81, figure A.6).

/// For each place in the order of sending, the place in a block, row by row. The runs of zeros of damaged files lead up
/// to 16 places beyond: what stands there goes to the last one, as with libjpeg.
pub(super) const PLACE: [usize; 80] = order();

const fn order() -> [usize; 80] {
    let mut places = [63; 80];
    let (mut row, mut column) = (0usize, 0usize);
    let mut i = 0;
    while i < 64 {
        places[i] = row * 8 + column;
        // Diagonals are walked in turn upwards and downwards; at an edge the next one begins.
        if (row + column).is_multiple_of(2) {
            if column == 7 {
                row += 1;
            } else {
                column += 1;
                row = row.saturating_sub(1);
            }
        } else if row == 7 {
            column += 1;
        } else {
            row += 1;
            column = column.saturating_sub(1);
        }
        i += 1;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::PLACE;

    #[test]
    fn every_place_comes_once_along_the_diagonals() {
        assert_eq!(PLACE[..10], [0, 1, 8, 16, 9, 2, 3, 10, 17, 24]);
        assert_eq!(PLACE[60..64], [47, 55, 62, 63]);
        assert_eq!(PLACE[64..], [63; 16]);
        let mut sorted = PLACE[..64].to_vec();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..64));
    }
}
