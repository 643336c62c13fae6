//! A ladder as lines for a terminal.

use super::report::{Figures, Ladder, Rung};

/// The table.
pub fn text(ladder: &Ladder) -> String {
    let mut lines = vec![
        format!("{}, cores: {}", ladder.machine.name, ladder.machine.cores),
        format!(
            "{:<28} {:>9} {:>8} {:>8} {:>10} {:>9} {:>8}",
            "rung", "ms a step", "x start", "x before", "memory, MB", "launches", "loss"
        ),
    ];
    let mut rows = |rungs: &[Rung], sign: &str| {
        for rung in rungs {
            let sign = if rung.name == "start" { "" } else { sign };
            lines.push(row(rung, &format!("{sign}{}", rung.title)));
        }
    };
    rows(&ladder.rungs, "+ ");
    if !ladder.without.is_empty() {
        rows(&ladder.without, "all but ");
    }
    lines.join("\n")
}

fn row(rung: &Rung, title: &str) -> String {
    let Some(f) = &rung.figures else {
        // Reasons may be long; the files have them whole.
        let why = rung.why.as_deref().unwrap_or_default().lines().next().unwrap_or_default();
        return format!("{title:<28} not measured: {why}");
    };
    let Figures { ms, speedup, against, memory, launches, .. } = f;
    let times = |x: Option<f64>| x.map_or("-".to_string(), |x| format!("{x:.2}"));
    format!(
        "{title:<28} {ms:>9.2} {:>8} {:>8} {:>10.1} {launches:>9} {:>8}",
        times(*speedup),
        times(against.as_ref().map(|a| a.speedup)),
        memory.total as f64 / 1e6,
        rung.last_loss().map_or("-".into(), |l| format!("{l:.4}"))
    )
}
