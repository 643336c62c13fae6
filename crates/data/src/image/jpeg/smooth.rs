//! Detail that a progressive file does not send, estimated from the levels of the blocks around: libjpeg smooths so what
//! would else be steps, and shows it as the picture if the file ends there.
//!
//! Each of the first coefficients is a sum over 5 x 5 blocks of their coefficients 0, weighted, over 256.

use super::frame::{Component, UNSENT};
use super::idct::Block;
use super::zigzag::PLACE;

/// Weights of the blocks around, row by row.
type Around = [[i64; 5]; 5];

/// The coefficients that are estimated, in zigzag order, and the level itself.
const COUNT: usize = 10;

const NONE: [i64; 5] = [0; 5];

/// Where nothing but levels has been sent.
const FROM_LEVELS: [Around; COUNT] = {
    let across =
        [[-1, -1, 0, 1, 1], [-3, 13, 0, -13, 3], [-3, 38, 0, -38, 3], [-3, 13, 0, -13, 3], [-1, -1, 0, 1, 1]];
    let bend = [[0, 0, 1, 0, 0], [0, 2, 7, 2, 0], [0, -5, -14, -5, 0], [0, 2, 7, 2, 0], [0, 0, 1, 0, 0]];
    let twist = [[-1, 0, 0, 0, 1], [0, 9, 0, -9, 0], NONE, [0, -9, 0, 9, 0], [1, 0, 0, 0, -1]];
    let wave = [NONE, [0, 1, 0, -1, 0], [0, 2, 0, -2, 0], [0, 1, 0, -1, 0], NONE];
    let fold = [NONE, [0, 1, -3, 1, 0], NONE, [0, -1, 3, -1, 0], NONE];
    let edge = [-2, -6, -8, -6, -2];
    let side = [-6, 6, 42, 6, -6];
    let level = [edge, side, [-8, 42, 152, 42, -8], side, edge];
    [level, across, turned(&across), bend, twist, turned(&bend), wave, fold, turned(&fold), turned(&wave)]
};

/// Where other coefficients have been sent in part: of the first five alone.
const BESIDE_DETAIL: [Around; 6] = {
    let across = [NONE, NONE, [-7, 50, 0, -50, 7], NONE, NONE];
    let bend = [NONE, NONE, [-1, 13, -24, 13, -1], NONE, NONE];
    let twist = [[0, -1, 0, 1, 0], [-1, 10, 0, -10, 1], NONE, [1, -10, 0, 10, -1], [0, 1, 0, -1, 0]];
    [[NONE; 5], across, turned(&across), turned(&bend), twist, bend]
};

const fn turned(weights: &Around) -> Around {
    let mut turned = [NONE; 5];
    let mut i = 0;
    while i < 25 {
        turned[i % 5][i / 5] = weights[i / 5][i % 5];
        i += 1;
    }
    turned
}

/// How one component is smoothed.
pub(super) struct Smoothing {
    /// Factors of the first coefficients.
    factors: [i64; COUNT],
    /// For each, the lowest bit that was sent; and before the last scan.
    sent: [u8; COUNT],
    sent_before: [u8; COUNT],
    /// The last row of coded units that the last scan reached.
    good: usize,
    /// Blocks in a row, those included that the picture does not reach; and without.
    stride: usize,
    width: usize,
    /// Rows of blocks that the picture reaches; in a coded unit; and coded units.
    height: usize,
    v: usize,
    down: usize,
}

impl Smoothing {
    /// Whether libjpeg smooths a progressive picture of these components.
    pub(super) fn helps(components: &[Component]) -> bool {
        let known = |c: &Component| {
            let factors =
                c.factors.as_ref().is_some_and(|f| PLACE[..COUNT].iter().all(|place| f[*place] != 0));
            factors && c.sent[0] != UNSENT
        };
        let rough = |c: &Component| c.sent[1..COUNT].iter().any(|low| *low != 0);
        components.iter().all(known) && components.iter().any(rough)
    }

    /// For a component of a picture that is `down` coded units high, of which the last scan reached row `good` if it broke
    /// off. `None` if it has no factors.
    pub(super) fn of(c: &Component, down: usize, good: Option<usize>) -> Option<Self> {
        let factors = c.factors.as_ref()?;
        Some(Self {
            factors: std::array::from_fn(|k| i64::from(factors[PLACE[k]] as u16)),
            sent: std::array::from_fn(|k| c.sent[k]),
            sent_before: std::array::from_fn(|k| c.sent_before[k]),
            good: good.unwrap_or(down),
            stride: c.stride,
            width: c.width.div_ceil(8),
            height: c.height.div_ceil(8),
            v: c.v,
            down,
        })
    }

    /// Fills `out` with the blocks of a row, smoothed. `blocks` are all of the component.
    pub(super) fn fill(&self, out: &mut [Block], blocks: &[Block], row: usize) {
        let blocks_of = |row: usize| blocks.chunks_exact(self.stride).nth(row).unwrap_or_default();
        out.copy_from_slice(blocks_of(row));
        if row >= self.height {
            return;
        }
        let sent = if row / self.v > self.good { &self.sent_before } else { &self.sent };
        let levels_only = sent[1..].iter().all(|low| *low == UNSENT);
        let weights: &[Around] = if levels_only { &FROM_LEVELS } else { &BESIDE_DETAIL };
        let rows = self.rows_around(row).map(blocks_of);
        for (x, block) in out.iter_mut().enumerate().take(self.width) {
            let columns: [usize; 5] = std::array::from_fn(|i| (x + i).saturating_sub(2).min(self.width - 1));
            let levels = rows.map(|row| columns.map(|x| i64::from(row[x][0])));
            for (k, weights) in weights.iter().enumerate() {
                let unknown = sent[k] != 0 && block[PLACE[k]] == 0;
                if if k == 0 { levels_only } else { unknown } {
                    block[PLACE[k]] = self.estimate(k, sent[k], &levels, weights);
                }
            }
        }
    }

    /// The rows from two above to two below, the outermost repeated at the edges. In the last coded unit, rows are
    /// counted by those that it has, so that of few units a row above can be passed over.
    fn rows_around(&self, row: usize) -> [usize; 5] {
        let unit = row / self.v;
        let rows = if unit + 1 < self.down { self.v } else { self.height - unit * self.v };
        let (place, end) = (unit * rows + row % self.v, rows * self.down);
        let above = if place > 0 { row - 1 } else { row };
        let below = if place + 1 < end { row + 1 } else { row };
        [
            if place > 1 { row - 2 } else { above },
            above,
            row,
            below,
            if place + 2 < end { row + 2 } else { below },
        ]
    }

    fn estimate(&self, k: usize, sent: u8, levels: &Around, weights: &Around) -> i16 {
        let pairs = levels.as_flattened().iter().zip(weights.as_flattened());
        let sum = self.factors[0] * pairs.map(|(level, weight)| level * weight).sum::<i64>();
        let factor = self.factors[k];
        let size = ((factor << 7) + sum.abs()) / (factor << 8);
        // Bits that were sent are zero.
        let most = if k > 0 && (1..16).contains(&sent) { (1 << sent) - 1 } else { i64::MAX };
        (size.min(most) * sum.signum()) as i16
    }
}
