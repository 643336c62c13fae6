//! Pass `schedule` (exact): fixes the branch and the order of every launch.
//!
//! Launches keep the order of construction: forward, backward, optimiser. On a device that runs branches side by side, what
//! the backward part computes for the optimiser alone, the gradients of weights, goes to a second branch: the chain of
//! gradients from layer to layer does not wait for it. The memory pass and the verifier reason with happens-before, never
//! with list order alone (rule 10).

use ocelli_ir::Phase;
use std::collections::{HashMap, HashSet};

/// The first branch waits for what the second was given this many launches ago: so far apart, memory that both use can be
/// used again.
const LAG: usize = 56;

/// A launch as the schedule sees it. Memory has numbers: equal numbers are the same memory.
#[derive(Clone, Debug)]
pub struct Work {
    /// The part of the program.
    pub phase: Phase,
    /// What it reads.
    pub reads: Vec<usize>,
    /// What it writes.
    pub writes: Vec<usize>,
}

/// Where a launch runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scheduled {
    /// Its branch.
    pub branch: usize,
    /// Launches of other branches that it waits for.
    pub after: Vec<usize>,
}

/// The branch of each launch, and what it waits for.
pub fn schedule(work: &[Work], branches: usize) -> Vec<Scheduled> {
    let mut plan = vec![Scheduled::default(); work.len()];
    if branches < 2 {
        return plan;
    }
    for (i, aside) in aside(work).into_iter().enumerate() {
        plan[i].branch = usize::from(aside);
    }
    // The last launch of each branch that wrote, or touched, each memory; counted from 1.
    let mut wrote: HashMap<usize, [usize; 2]> = HashMap::new();
    let mut touched: HashMap<usize, [usize; 2]> = HashMap::new();
    // How far each branch has waited for the other.
    let mut waited = [0; 2];
    let mut given = Vec::new();
    for (i, w) in work.iter().enumerate() {
        let (mine, other) = (plan[i].branch, 1 - plan[i].branch);
        let last = |map: &HashMap<usize, [usize; 2]>, keys: &[usize]| {
            keys.iter().filter_map(|k| map.get(k)).map(|at| at[other]).max().unwrap_or(0)
        };
        let mut need = last(&wrote, &w.reads).max(last(&touched, &w.writes));
        if mine == 0 {
            let old = given.partition_point(|&g| g + LAG <= i);
            need = need.max(given[..old].last().map_or(0, |g| g + 1));
        } else {
            given.push(i);
        }
        if need > waited[mine] {
            waited[mine] = need;
            plan[i].after.push(need - 1);
        }
        for &key in &w.writes {
            wrote.entry(key).or_default()[mine] = i + 1;
        }
        for &key in w.reads.iter().chain(&w.writes) {
            touched.entry(key).or_default()[mine] = i + 1;
        }
    }
    plan
}

/// Which launches only the optimiser waits for: those of the backward part that none but the optimiser reads.
fn aside(work: &[Work]) -> Vec<bool> {
    let mut aside = vec![false; work.len()];
    // Memory that a launch before the optimiser reads later.
    let mut chain: HashSet<usize> = HashSet::new();
    for (i, w) in work.iter().enumerate().rev() {
        aside[i] = w.phase == Phase::Backward && !w.writes.iter().any(|key| chain.contains(key));
        if w.phase != Phase::Update {
            chain.extend(&w.reads);
        }
    }
    aside
}

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

    fn work(phase: Phase, reads: &[usize], writes: &[usize]) -> Work {
        Work { phase, reads: reads.to_vec(), writes: writes.to_vec() }
    }

    #[test]
    fn gradients_of_weights_stand_aside_and_the_optimiser_waits_for_them() {
        use Phase::{Backward, Forward, Update};
        let program = [
            work(Forward, &[1], &[2]),
            work(Backward, &[2, 1], &[3]), // the chain
            work(Backward, &[2, 3], &[4]), // a weight's gradient
            work(Backward, &[3, 1], &[5]), // the chain goes on
            work(Backward, &[5], &[6]),    // another weight's gradient
            work(Update, &[4, 6, 1], &[1]),
        ];
        let plan = schedule(&program, 2);
        let found: Vec<(usize, &[usize])> = plan.iter().map(|s| (s.branch, &s.after[..])).collect();
        assert_eq!(found, [(0, &[][..]), (0, &[]), (1, &[1]), (0, &[]), (1, &[3]), (0, &[4])]);
        assert!(schedule(&program, 1).iter().all(|s| s.branch == 0 && s.after.is_empty()));
    }

    #[test]
    fn branches_are_unordered_unless_joined() {
        // 0 (branch 0), 1 (branch 1), 2 (branch 0), 3 (branch 1, after 2)
        let edges: [(usize, &[usize]); 4] = [(0, &[]), (1, &[]), (0, &[]), (1, &[2])];
        let hb = HappensBefore::new(edges.into_iter());
        assert!(hb.holds(0, 2) && hb.holds(1, 3) && hb.holds(2, 3) && hb.holds(0, 3));
        assert!(!hb.holds(0, 1) && !hb.holds(1, 2) && !hb.holds(2, 1) && !hb.holds(3, 0));
    }
}
