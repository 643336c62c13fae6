//! Offsets for scratch buffers: largest first, each at the lowest place where no buffer alive at the same time
//! lies (Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020, greedy by size).

use super::{Drafts, Home};
use crate::schedule::{HappensBefore, Scheduled};

/// The offset in bytes of each buffer (0 for those that are not scratch) and the size of the arena.
pub(super) fn assign(drafts: &Drafts, schedule: &[Scheduled], alignment: usize) -> (Vec<usize>, usize) {
    let order = HappensBefore::new(schedule.iter().map(|s| (s.branch, &s.after[..])));
    let uses = uses(drafts);
    let size = |b: usize| drafts.buffers[b].ty.bytes().next_multiple_of(alignment).max(alignment);
    let mut pending: Vec<usize> = (0..drafts.buffers.len())
        .filter(|&b| drafts.buffers[b].home == Home::Scratch && !uses[b].is_empty())
        .collect();
    pending.sort_by_key(|&b| (std::cmp::Reverse(size(b)), b));
    let mut offsets = vec![0; drafts.buffers.len()];
    let mut placed: Vec<usize> = Vec::new();
    let mut total = 0;
    for b in pending {
        let mut taken: Vec<(usize, usize)> = placed
            .iter()
            .filter(|&&other| alive_together(&order, &uses[b], &uses[other]))
            .map(|&other| (offsets[other], offsets[other] + size(other)))
            .collect();
        taken.sort_unstable();
        let mut at = 0;
        for (start, end) in taken {
            if at + size(b) <= start {
                break;
            }
            at = at.max(end);
        }
        offsets[b] = at;
        total = total.max(at + size(b));
        placed.push(b);
    }
    (offsets, total)
}

/// The launches that touch each buffer. A program output is touched by one more, behind all launches.
fn uses(drafts: &Drafts) -> Vec<Vec<usize>> {
    let mut uses = vec![Vec::new(); drafts.buffers.len()];
    for (i, launch) in drafts.launches.iter().enumerate() {
        for loc in launch.inputs.iter().chain(&launch.outputs) {
            if uses[loc.buffer].last() != Some(&i) {
                uses[loc.buffer].push(i);
            }
        }
    }
    drafts.outputs.iter().for_each(|(_, loc)| uses[loc.buffer].push(usize::MAX));
    uses
}

/// False only if every use of one happens before every use of the other.
fn alive_together(order: &HappensBefore, a: &[usize], b: &[usize]) -> bool {
    let before = |x: usize, y: usize| x != usize::MAX && (y == usize::MAX || order.holds(x, y));
    let all_before = |xs: &[usize], ys: &[usize]| xs.iter().all(|&x| ys.iter().all(|&y| before(x, y)));
    !all_before(a, b) && !all_before(b, a)
}
