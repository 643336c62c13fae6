//! Pass `schedule` (exact): fixes the branch and the order of every launch.
//!
//! One branch for now, in the order of construction: forward, backward, optimiser. The types know several
//! branches, and the memory pass and the verifier reason with happens-before, never with list order alone
//! (rule 10).

/// Which launches happen before which, for launches with branches and `after` edges.
#[derive(Clone, Debug)]
pub struct HappensBefore {
    words: usize,
    before: Vec<u64>,
}

impl HappensBefore {
    /// From each launch's branch and its `after` edges; both refer to earlier launches only.
    pub fn new<'a>(launches: impl ExactSizeIterator<Item = (usize, &'a [usize])>) -> Self {
        let n = launches.len();
        let words = n.div_ceil(64);
        let mut before = vec![0u64; n * words];
        let mut last_of_branch: Vec<Option<usize>> = Vec::new();
        for (i, (branch, after)) in launches.enumerate() {
            if branch >= last_of_branch.len() {
                last_of_branch.resize(branch + 1, None);
            }
            for p in after.iter().copied().chain(last_of_branch[branch]) {
                let (head, tail) = before.split_at_mut(i * words);
                let row = &mut tail[..words];
                row.iter_mut().zip(&head[p * words..][..words]).for_each(|(a, b)| *a |= b);
                row[p / 64] |= 1 << (p % 64);
            }
            last_of_branch[branch] = Some(i);
        }
        Self { words, before }
    }

    /// True if launch `a` has ended before launch `b` starts, on every run.
    pub fn holds(&self, a: usize, b: usize) -> bool {
        self.before[b * self.words + a / 64] >> (a % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_are_unordered_unless_joined() {
        // 0 (branch 0), 1 (branch 1), 2 (branch 0), 3 (branch 1, after 2)
        let edges: [(usize, &[usize]); 4] = [(0, &[]), (1, &[]), (0, &[]), (1, &[2])];
        let hb = HappensBefore::new(edges.into_iter());
        assert!(hb.holds(0, 2) && hb.holds(1, 3) && hb.holds(2, 3) && hb.holds(0, 3));
        assert!(!hb.holds(0, 1) && !hb.holds(1, 2) && !hb.holds(2, 1) && !hb.holds(3, 0));
    }
}
