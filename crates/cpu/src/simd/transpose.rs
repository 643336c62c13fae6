//! Transposing a matrix by blocks, in registers.

/// Side of a block.
const SIDE: usize = 4;
/// Rows that are read together, so that whole cache lines are written.
const STRIP: usize = 16;

/// Writes column `c` of a matrix with `rows` rows, `stride` apart, to the start of row `c` of `out`, for each row of
/// `out`; these are `pitch` apart. The first column starts at the first element of `from`.
#[inline(always)]
pub fn transpose(shuffle: Shuffle, from: &[f32], stride: usize, rows: usize, out: &mut [f32], pitch: usize) {
    let cols = out.len() / pitch;
    let (whole, blocks) = (rows / SIDE * SIDE, cols / SIDE * SIDE);
    for first in (0..whole).step_by(STRIP) {
        for c in (0..blocks).step_by(SIDE) {
            for r in (first..whole.min(first + STRIP)).step_by(SIDE) {
                let row = |i: usize| *from[(r + i) * stride + c..].first_chunk().unwrap_or(&[0.0; SIDE]);
                let turned = shuffle.turned([row(0), row(1), row(2), row(3)]);
                for (i, row) in turned.iter().enumerate() {
                    out[(c + i) * pitch + r..][..SIDE].copy_from_slice(row);
                }
            }
        }
    }
    for r in 0..rows {
        let done = if r < whole { blocks } else { 0 };
        for c in done..cols {
            out[c * pitch + r] = from[r * stride + c];
        }
    }
}

/// Transposes blocks with the shuffles that every x86-64 has, which the compiler does not find by itself.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub struct Shuffle(Option<pulp::core_arch::x86::Sse>);

#[cfg(target_arch = "x86_64")]
impl Shuffle {
    /// Asks the machine.
    pub fn new() -> Self {
        Self(pulp::core_arch::x86::Sse::try_new())
    }

    #[inline(always)]
    fn turned(self, block: [[f32; SIDE]; SIDE]) -> [[f32; SIDE]; SIDE] {
        let Some(sse) = self.0 else { return plain(block) };
        let [a, b, c, d] = [0, 1, 2, 3].map(|i| bytemuck::cast(block[i]));
        let (ab, cd) = (sse._mm_unpacklo_ps(a, b), sse._mm_unpacklo_ps(c, d));
        let (ab_high, cd_high) = (sse._mm_unpackhi_ps(a, b), sse._mm_unpackhi_ps(c, d));
        [
            bytemuck::cast(sse._mm_movelh_ps(ab, cd)),
            bytemuck::cast(sse._mm_movehl_ps(cd, ab)),
            bytemuck::cast(sse._mm_movelh_ps(ab_high, cd_high)),
            bytemuck::cast(sse._mm_movehl_ps(cd_high, ab_high)),
        ]
    }
}

/// Transposes blocks.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy, Debug)]
pub struct Shuffle;

#[cfg(not(target_arch = "x86_64"))]
impl Shuffle {
    /// Nothing to ask.
    pub fn new() -> Self {
        Self
    }

    #[inline(always)]
    fn turned(self, block: [[f32; SIDE]; SIDE]) -> [[f32; SIDE]; SIDE] {
        plain(block)
    }
}

#[inline(always)]
fn plain(block: [[f32; SIDE]; SIDE]) -> [[f32; SIDE]; SIDE] {
    std::array::from_fn(|i| std::array::from_fn(|j| block[j][i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape() {
        for (rows, cols, stride) in
            [(1, 1, 1), (16, 4, 4), (16, 7, 9), (35, 18, 20), (15, 3, 3), (64, 32, 32)]
        {
            let from: Vec<f32> = (0..rows * stride).map(|i| i as f32).collect();
            for pitch in [rows, rows + 3] {
                let mut out = vec![-1.0; pitch * cols];
                transpose(Shuffle::new(), &from, stride, rows, &mut out, pitch);
                for (i, &x) in out.iter().enumerate() {
                    let want = if i % pitch < rows { from[i % pitch * stride + i / pitch] } else { -1.0 };
                    assert_eq!(x, want, "{rows} x {cols}");
                }
            }
        }
    }
}
