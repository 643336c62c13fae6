//! Late sums: those that many launches leave behind are made in one step, before anybody reads the first of them.

use crate::lower::{Arg, LateSums};
use crate::ops;
use crate::plan::{Home, Step};
use std::ops::Range;

/// Bytes of a memory.
pub type Bytes = (Home, Range<usize>);

/// The sums that wait, and those that were made.
#[derive(Debug, Default)]
pub struct Late {
    /// Steps that left sums, and where these go.
    waiting: Vec<(usize, Vec<Bytes>)>,
    /// Where sums went, and the step that made them.
    made: Vec<(Bytes, usize)>,
}

fn meet(a: &Bytes, b: &Bytes) -> bool {
    a.0 == b.0 && a.1.start < b.1.end && b.1.start < a.1.end
}

impl Late {
    /// Remembers what step number `index` leaves.
    pub fn leave(&mut self, index: usize, step: &Step) {
        let places = |s: &LateSums| {
            let bytes = s.cols * size_of::<f32>();
            s.to.iter()
                .filter_map(|&to| step.spot(to))
                .map(move |at| (at.home, at.at..at.at + bytes))
                .collect::<Vec<_>>()
        };
        if !step.lowered.late.is_empty() {
            self.waiting.push((index, step.lowered.late.iter().flat_map(places).collect()));
        }
    }

    /// The step that makes all sums that wait, on this branch, if a launch that touches `bytes` is next there.
    pub fn before(&mut self, bytes: &[Bytes], branch: usize, steps: &[Step]) -> Option<Step> {
        let touched =
            self.waiting.iter().flat_map(|w| &w.1).any(|place| bytes.iter().any(|b| meet(place, b)));
        if touched { self.make(branch, steps) } else { None }
    }

    /// The step that makes all sums that wait, on this branch.
    pub fn make(&mut self, branch: usize, steps: &[Step]) -> Option<Step> {
        let waiting = std::mem::take(&mut self.waiting);
        let (mut ins, mut outs, mut sums) = (Vec::new(), Vec::new(), Vec::new());
        for (index, places) in &waiting {
            let step = &steps[*index];
            for s in &step.lowered.late {
                ins.extend(step.spot(s.from));
                let to = s.to.iter().map(|&to| {
                    outs.extend(step.spot(to));
                    Arg::Out(outs.len() - 1, 0)
                });
                let to = to.collect();
                sums.push(LateSums { from: Arg::In(ins.len() - 1, 0), to, ..s.clone() });
            }
            self.made.extend(places.iter().map(|p| (p.clone(), steps.len())));
        }
        let after = waiting.iter().map(|w| w.0).filter(|&i| steps[i].branch != branch).max();
        let launch = waiting.last().map(|w| steps[w.0].launch)?;
        let lowered = ops::late_sums(&sums);
        Some(Step {
            launch,
            launches: 0,
            branch,
            after: after.into_iter().collect(),
            lowered,
            ins,
            outs,
            kept: 0,
        })
    }

    /// The steps of another branch that made sums which a launch touches.
    pub fn made_for<'a>(
        &'a self,
        bytes: &'a [Bytes],
        branch: usize,
        steps: &'a [Step],
    ) -> impl Iterator<Item = usize> + 'a {
        let these = self.made.iter().filter(|(place, _)| bytes.iter().any(|b| meet(place, b)));
        these.map(|m| m.1).filter(move |&i| steps[i].branch != branch)
    }
}
