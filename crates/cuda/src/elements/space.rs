//! Where a loop's elements are: axes that join, widths that operands allow.

use super::{Access, Loop, Place};

impl Loop {
    /// A space of no axes is one of one element.
    pub(super) fn scalar(&mut self) {
        if self.space.is_empty() {
            self.space.push(1);
            for access in self.reads.iter_mut().chain(&mut self.writes) {
                if let Place::Strides(strides) = &mut access.place {
                    strides.push(0);
                }
            }
        }
    }

    /// Distance of a thread's elements; none for what is handed over.
    pub(super) fn step(&self, a: &Access) -> Option<usize> {
        (a.place != Place::Sums).then(|| self.at(a).1)
    }

    /// Index of a thread's first element, and the distance of its elements.
    pub(super) fn at(&self, a: &Access) -> (String, usize) {
        let last = self.space.len() - 1;
        match &a.place {
            Place::At(at, step, _) => (format!("({at})"), *step),
            Place::Sums => unreachable!("sums are handed over, not found"),
            Place::Strides(s) => {
                let term = |axis: usize| {
                    let name = if axis == last { "first".into() } else { format!("c{axis}") };
                    if s[axis] == 1 { name } else { format!("{name} * {}u", s[axis]) }
                };
                let terms: Vec<String> =
                    (0..=last).filter(|&i| s[i] != 0 && self.space[i] > 1).map(term).collect();
                let at = if terms.is_empty() { "0".into() } else { terms.join(" + ") };
                // An axis of one element has no neighbours: it is as good as side by side.
                (format!("({at})"), if self.space[last] == 1 { 1 } else { s[last] })
            }
        }
    }

    /// How many neighbours a thread takes.
    pub(super) fn width(&self) -> usize {
        let most = if self.reads.iter().chain(&self.writes).any(|a| a.dtype.size() == 2) { 8 } else { 4 };
        let last = self.space.len() - 1;
        let mut width = most;
        while width > 1 && !(self.space[last].is_multiple_of(width) && self.all_take(width, last)) {
            width /= 2;
        }
        width
    }

    pub(super) fn all_take(&self, width: usize, last: usize) -> bool {
        self.reads.iter().chain(&self.writes).all(|a| {
            let unit = (a.dtype.size() * width).min(16);
            match &a.place {
                Place::Strides(s) => {
                    let whole =
                        (0..last).all(|i| self.space[i] == 1 || (s[i] * a.dtype.size()).is_multiple_of(unit));
                    s[last] == 0 || (s[last] == 1 && whole && a.align.is_multiple_of(unit))
                }
                // Rows of one width: whoever writes such a place gives rows that start where the width allows it.
                Place::At(_, step, _) => *step == 0 || (*step == 1 && a.align.is_multiple_of(unit)),
                Place::Sums => true,
            }
        })
    }

    /// Joins axes that follow each other without a gap in every operand, perhaps all but the last.
    pub(super) fn collapse(&mut self, keep_last: bool) {
        let found = || self.reads.iter().chain(&self.writes).filter(|a| a.place != Place::Sums);
        let all = |a: &Access| if let Place::Strides(s) = &a.place { Some(s.clone()) } else { None };
        let Some(mut strides) = found().map(all).collect::<Option<Vec<_>>>() else {
            return;
        };
        let mut space: Vec<usize> = Vec::new();
        let mut kept: Vec<Vec<usize>> = vec![Vec::new(); strides.len()];
        for (axis, &n) in self.space.iter().enumerate() {
            let last = keep_last && axis + 1 == self.space.len();
            if n == 1 && !last {
                continue;
            }
            let joins = !last
                && !space.is_empty()
                && kept
                    .iter()
                    .zip(&strides)
                    .all(|(k, s)| k.last().is_some_and(|&before| before == n * s[axis]));
            match space.last_mut() {
                Some(have) if joins => {
                    *have *= n;
                    kept.iter_mut()
                        .zip(&strides)
                        .for_each(|(k, s)| *k.last_mut().unwrap_or(&mut 0) = s[axis]);
                }
                _ => {
                    space.push(n);
                    kept.iter_mut().zip(&strides).for_each(|(k, s)| k.push(s[axis]));
                }
            }
        }
        strides = kept;
        self.space = space;
        let found = self.reads.iter_mut().chain(&mut self.writes).filter(|a| a.place != Place::Sums);
        for (access, strides) in found.zip(strides) {
            access.place = Place::Strides(strides);
        }
    }

    /// The largest index that any operand or the space reaches.
    pub(super) fn numel_reach(&self) -> usize {
        let reach = |a: &Access| match &a.place {
            Place::Strides(s) => s.iter().zip(&self.space).map(|(s, n)| s * n.saturating_sub(1)).sum(),
            Place::At(..) | Place::Sums => 0,
        };
        let operands = self.reads.iter().chain(&self.writes).map(reach).max().unwrap_or(0);
        operands.max(self.space.iter().product())
    }
}
