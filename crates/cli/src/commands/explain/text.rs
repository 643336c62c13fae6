//! A training step as text.

use super::device::Peaks;
use ocelli_ir::plan::{Launch, Operand, Plan};
use ocelli_ir::{Op, SlotKind};
use ocelli_train::explain::Explained;
use std::collections::BTreeMap;

/// Launches listed unless all are asked for.
const LONGEST: usize = 12;
/// Columns of the picture of the arena.
const COLUMNS: usize = 48;

/// The whole explanation.
pub fn lines(programs: &[Explained], peaks: &Peaks, all: bool) -> Vec<String> {
    let mut out = vec![format!("roofline of {}: {}", peaks.name, peaks.rates())];
    if let Some(first) = programs.first() {
        out.extend(state(&first.plan));
    }
    for program in programs {
        out.push(String::new());
        out.extend(passes(program));
        out.extend(plan(&program.plan, peaks, all));
        out.extend(arena(&program.plan));
    }
    out
}

fn mb(bytes: usize) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// What the state is made of.
fn state(plan: &Plan) -> Vec<String> {
    let sum = |name: &str, keep: fn(SlotKind) -> bool| {
        let bytes = plan.state.bytes(keep);
        (bytes > 0).then(|| format!("{name} {}", mb(bytes)))
    };
    let parts = [
        sum("weights", |k| k == SlotKind::Parameter),
        sum("weights in 16 bits", |k| matches!(k, SlotKind::Rounded(_))),
        sum("moments", |k| k == SlotKind::Moment),
        sum("sums of gradients", |k| k == SlotKind::Accumulator),
        sum("keys and values of captions", |k| k == SlotKind::Cache),
        sum("metrics", |k| k == SlotKind::Ring),
    ];
    let parts = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    vec![format!("state: {parts}; in all {}", mb(plan.state.bytes(|_| true)))]
}

fn passes(p: &Explained) -> Vec<String> {
    let mut out = vec![
        format!("program {}", p.plan.name),
        format!("  {:<12} {:>7} {:>9} {:>9}", "behind pass", "nodes", "GFLOP", "GB"),
    ];
    for s in &p.stages {
        let (flops, bytes) = (s.flops as f64 / 1e9, s.bytes as f64 / 1e9);
        out.push(format!("  {:<12} {:>7} {flops:>9.3} {bytes:>9.3}", s.name, s.nodes));
    }
    out
}

fn plan(plan: &Plan, peaks: &Peaks, all: bool) -> Vec<String> {
    let total: f64 = plan.launches.iter().map(|l| peaks.seconds(l)).sum();
    let (flops, bytes) = plan.cost();
    let mut out = vec![format!(
        "plan {:016x}: {} launches, {:.3} GFLOP, {:.3} GB, at least {}",
        plan.hash(),
        plan.launches.len(),
        flops as f64 / 1e9,
        bytes as f64 / 1e9,
        time(total)
    )];
    out.push(format!(
        "  {:<22} {:>8} {:>9} {:>9} {:>10} {:>6}",
        "by op", "launches", "GFLOP", "MB", "roofline", "share"
    ));
    let mut by_op: BTreeMap<String, (usize, u64, u64, f64)> = BTreeMap::new();
    for l in &plan.launches {
        let ((flops, bytes), sum) = (l.cost(), by_op.entry(named(&l.op)).or_default());
        *sum = (sum.0 + 1, sum.1 + flops, sum.2 + bytes, sum.3 + peaks.seconds(l));
    }
    let mut by_op: Vec<_> = by_op.into_iter().collect();
    by_op.sort_by(|a, b| b.1.3.total_cmp(&a.1.3));
    for (name, (n, flops, bytes, seconds)) in by_op {
        out.push(format!(
            "  {name:<22} {n:>8} {:>9.3} {:>9.2} {:>10} {:>5.1}%",
            flops as f64 / 1e9,
            bytes as f64 / 1e6,
            time(seconds),
            100.0 * seconds / total
        ));
    }
    let mut order: Vec<usize> = (0..plan.launches.len()).collect();
    if !all {
        order.sort_by(|&a, &b| peaks.seconds(&plan.launches[b]).total_cmp(&peaks.seconds(&plan.launches[a])));
        order.truncate(LONGEST);
        out.push(format!("  the {} longest launches (all: --launches)", order.len()));
    }
    out.extend(order.into_iter().map(|i| launch(i, &plan.launches[i], peaks)));
    out
}

/// What an op is counted as: those of a kind together, fused ones by what is in them.
fn named(op: &Op) -> String {
    if let Op::Fused(_) = op { op.to_string() } else { op.name().into() }
}

fn launch(index: usize, l: &Launch, peaks: &Peaks) -> String {
    let types =
        |operands: &[Operand]| operands.iter().map(|o| o.ty().to_string()).collect::<Vec<_>>().join(" ");
    let (flops, bytes) = l.cost();
    format!(
        "  {index:>4} {:<18} {:>9.4} GFLOP {:>8.3} MB {:>9}  {} -> {}  [{}]",
        l.op.to_string(),
        flops as f64 / 1e9,
        bytes as f64 / 1e6,
        time(peaks.seconds(l)),
        types(&l.inputs),
        types(&l.outputs),
        l.scope
    )
}

/// Scratch memory over the launches.
fn arena(plan: &Plan) -> Vec<String> {
    let live = plan.memory_timeline();
    let Some((at, &peak)) = live.iter().enumerate().max_by_key(|(_, bytes)| **bytes) else { return vec![] };
    let l = &plan.launches[at];
    let mut out = vec![format!(
        "scratch memory: {}; most in use {} at launch {at} ({} in '{}')",
        mb(plan.arena_bytes),
        mb(peak),
        l.op,
        l.scope
    )];
    // The most of each stretch of launches, as a bar from empty to the peak.
    let chunk = live.len().div_ceil(COLUMNS);
    let bars = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bar = |most: usize| bars[(most * (bars.len() - 1)).div_ceil(peak.max(1)).min(bars.len() - 1)];
    let picture: String =
        live.chunks(chunk.max(1)).map(|c| bar(c.iter().copied().max().unwrap_or(0))).collect();
    out.push(format!("  {picture}  (first launch to last)"));
    out
}

fn time(seconds: f64) -> String {
    if seconds < 1e-3 { format!("{:.1} us", seconds * 1e6) } else { format!("{:.2} ms", seconds * 1e3) }
}
