//! Charts of a ladder's page. Text that comes in is escaped already.

use super::report::{Loss, Rung};

/// A bar: its name, its size, the size in words, and a word more.
pub struct Bar {
    pub label: String,
    pub size: f64,
    pub value: String,
    pub note: String,
}

/// Bars from 0 on, the longest as wide as there is room.
pub fn bars(bars: &[Bar]) -> String {
    let most = bars.iter().map(|b| b.size).fold(f64::MIN_POSITIVE, f64::max);
    let row = |b: &Bar| {
        format!(
            "<div class=\"row\"><span>{}</span><span class=\"track\"><span class=\"bar\" style=\"width:{:.2}%\"></span>\
             </span><span class=\"value\">{} <small>{}</small></span></div>\n",
            b.label,
            100.0 * b.size / most,
            b.value,
            b.note
        )
    };
    bars.iter().map(row).collect()
}

/// Size of the chart of losses, and its margins.
const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 40.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 8.0;
const BELOW: f64 = 24.0;

/// The losses of all rungs over steps: one line each, which lie on each other where the tricks train the same model.
pub fn losses(rungs: &[Rung]) -> String {
    let lines: Vec<(&str, &[Loss])> = rungs
        .iter()
        .filter_map(|r| Some((r.name, &r.figures.as_ref()?.loss[..])))
        .filter(|(_, l)| !l.is_empty())
        .collect();
    let all = || lines.iter().flat_map(|(_, l)| l.iter()).filter(|l| l.loss.is_finite());
    let range =
        |of: fn(&Loss) -> f64| all().map(of).fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(x), b.max(x)));
    let ((from, to), (low, high)) = (range(|l| l.step as f64), range(|l| l.loss));
    let Some((last, _)) = lines.last().filter(|_| from <= to) else { return String::new() };
    let at = |value: f64, (a, b): (f64, f64)| if b > a { (value - a) / (b - a) } else { 0.5 };
    let bottom = HEIGHT - BELOW;
    let x = |step: f64| LEFT + at(step, (from, to)) * (WIDTH - LEFT - RIGHT);
    let y = |loss: f64| bottom - at(loss, (low, high)) * (bottom - TOP);
    let line = |(name, losses): &(&str, &[Loss])| {
        let class = if *name == "start" {
            " start"
        } else if name == last {
            " all"
        } else {
            ""
        };
        let point = |l: &Loss| format!("{:.1},{:.1}", x(l.step as f64), y(l.loss));
        let points: Vec<String> = losses.iter().filter(|l| l.loss.is_finite()).map(point).collect();
        format!("<polyline class=\"loss{class}\" points=\"{}\"/>\n", points.join(" "))
    };
    // The dashes of the first lie on the last.
    let drawn: String = lines.iter().skip(1).chain(lines.iter().take(1)).map(line).collect();
    let text = |x: f64, y: f64, anchor: &str, what: String| {
        format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{what}</text>\n")
    };
    let words = [
        text(LEFT - 5.0, y(high) + 4.0, "end", format!("{high:.3}")),
        text(LEFT - 5.0, y(low), "end", format!("{low:.3}")),
        text(x(from), HEIGHT - 8.0, "start", format!("step {from}")),
        text(x(to), HEIGHT - 8.0, "end", format!("step {to}")),
    ];
    format!(
        "<figure><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Loss over steps\">\n\
         <path class=\"axis\" fill=\"none\" d=\"M{LEFT} {TOP}V{bottom}H{}\"/>\n{drawn}{}</svg>\n<figcaption>{}</figcaption></figure>",
        WIDTH - RIGHT,
        words.concat(),
        caption(&lines)
    )
}

/// Legend, and how far apart the lines end.
fn caption(lines: &[(&str, &[Loss])]) -> String {
    let ends: Vec<Loss> = lines.iter().filter_map(|(_, l)| l.last().copied()).collect();
    let (Some(first), Some(last)) = (ends.first(), ends.last()) else { return String::new() };
    let apart = ends.iter().map(|l| (l.loss / first.loss - 1.0).abs()).fold(0.0, f64::max);
    format!(
        "<span class=\"key start\"></span>everything off ({:.4}) <span class=\"key all\"></span>the last rung ({:.4}) \
         <span class=\"key\"></span>between; after step {} at most {:.2} % apart. The same seed and batches for all.",
        first.loss,
        last.loss,
        last.step,
        100.0 * apart
    )
}
