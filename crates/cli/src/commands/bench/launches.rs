//! What the launches of a step took, one by one, beside the least that each can take.
//!
//! That floor is the longer of two: its operands read and written once at the measured rate of memory, and its operations at
//! that of products. Operands that lie in a cache can beat the first.

use crate::commands::explain::device::Peaks;
use ocelli_train::engine::{StepProgram, Timed};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Longest launches that are shown.
const LONGEST: usize = 12;

/// The launches of each program of a step, and what the device can do at most.
pub type Measured = (Vec<Vec<Timed>>, Peaks);

/// What launches took and did.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    kernels: usize,
    seconds: f64,
    flops: u64,
    bytes: u64,
    /// Seconds at least.
    floor: f64,
}

impl Sum {
    fn of(t: &Timed, peaks: &Peaks) -> Self {
        let zero = Self { kernels: 1, seconds: t.seconds, ..Self::default() };
        t.launches.iter().fold(zero, |sum, l| {
            let (flops, bytes) = l.cost();
            let floor = sum.floor + peaks.seconds(l);
            Self { flops: sum.flops + flops, bytes: sum.bytes + bytes, floor, ..sum }
        })
    }

    fn add(self, o: Self) -> Self {
        Self {
            kernels: self.kernels + o.kernels,
            seconds: self.seconds + o.seconds,
            flops: self.flops + o.flops,
            bytes: self.bytes + o.bytes,
            floor: self.floor + o.floor,
        }
    }

    fn words(&self) -> String {
        let (gflop, mb) = (self.flops as f64 / 1e9, self.bytes as f64 / 1e6);
        let share = 100.0 * self.floor / self.seconds;
        format!("{:9.1} us {gflop:9.3} GFLOP {mb:9.2} MB {share:5.1} % of it the floor", self.seconds * 1e6)
    }

    fn object(&self) -> Value {
        json!({
            "kernels": self.kernels, "seconds": self.seconds, "flops": self.flops, "bytes": self.bytes,
            "floor_seconds": self.floor,
        })
    }
}

/// Those of equal ops together, the longest first.
fn by_op<'a>(launches: &'a [Timed], peaks: &Peaks) -> Vec<(&'a str, Sum)> {
    let mut by_op: BTreeMap<&str, Sum> = BTreeMap::new();
    for t in launches {
        let sum = by_op.entry(&t.ops).or_default();
        *sum = sum.add(Sum::of(t, peaks));
    }
    let mut by_op: Vec<_> = by_op.into_iter().collect();
    by_op.sort_by(|a, b| b.1.seconds.total_cmp(&a.1.seconds));
    by_op
}

/// The programs of a step, and of each the launches if they were timed.
pub fn objects(programs: &[StepProgram], timed: Option<&Measured>) -> Vec<Value> {
    let of = |t: &Timed, peaks| {
        let mut object = Sum::of(t, peaks).object();
        object["op"] = json!(t.ops);
        object["module"] = json!(t.scope);
        object
    };
    let one = |(i, p): (usize, &StepProgram)| {
        let mut object = json!({
            "name": p.name, "hash": format!("{:016x}", p.hash), "runs_a_step": p.runs,
            "scratch_bytes": p.footprint.arena, "launches": null,
        });
        if let Some((launches, peaks)) = timed.and_then(|(all, peaks)| Some((all.get(i)?, peaks))) {
            let ops = by_op(launches, peaks).into_iter().map(|(op, sum)| (op.to_string(), sum.object()));
            object["launches"] = launches.iter().map(|t| of(t, peaks)).collect();
            object["by_op"] = Value::Object(ops.collect());
        }
        object
    };
    programs.iter().enumerate().map(one).collect()
}

/// What the launches of each program took: by op, and the longest.
pub fn lines(programs: &[StepProgram], (launches, peaks): &Measured) -> Vec<String> {
    let mut out = vec![format!("at most, {}: {}", peaks.name, peaks.rates())];
    programs.iter().zip(launches).for_each(|(p, launches)| program(&mut out, p, launches, peaks));
    out
}

fn program(out: &mut Vec<String>, p: &StepProgram, launches: &[Timed], peaks: &Peaks) {
    let all = launches.iter().map(|t| Sum::of(t, peaks)).fold(Sum::default(), Sum::add);
    let StepProgram { name, hash, runs, .. } = p;
    out.push(format!(
        "plan {name} {hash:016x}, {runs} times a step: {} launches, one by one:",
        launches.len()
    ));
    out.push(format!("{}, all", all.words()));
    for (op, sum) in by_op(launches, peaks) {
        let share = 100.0 * sum.seconds / all.seconds;
        out.push(format!("{}, {share:4.1} % of the step, {} x {op}", sum.words(), sum.kernels));
    }
    let mut longest: Vec<_> = launches.iter().collect();
    longest.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let shown = longest.into_iter().take(LONGEST);
    out.extend(shown.map(|t| format!("{}, {} in {}", Sum::of(t, peaks).words(), t.ops, t.scope)));
}
