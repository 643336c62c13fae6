//! A ladder as a page: one file with its styles and charts in it, which asks the network for nothing.
//!
//! Invariant: whatever is not written here (names, settings, messages) is escaped.

use super::chart::{self, Bar};
use super::report::{Figures, Ladder, Rung};
use std::fmt::Write;

/// The page.
pub fn page(ladder: &Ladder) -> String {
    let m = &ladder.machine;
    let title = escaped(&format!("Ladder of tricks: {}", m.name));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>\n{}</style>\n</head>\n<body>\n<main>\n<h1>What each trick is worth</h1>\n{}{}",
        include_str!("page.css"),
        about(ladder),
        tiles(ladder)
    );
    for (head, body) in [
        ("Milliseconds a step", bars(&ladder.rungs, ms)),
        ("Memory on the device, by the plan", bars(&ladder.rungs, memory)),
        ("All tricks but one", without(ladder)),
        ("Loss", chart::losses(&ladder.rungs)),
        ("All figures", format!("{}{}", table(&ladder.rungs, "+ "), table(&ladder.without, "all but "))),
        ("Not measured", absent(ladder)),
    ] {
        if !body.is_empty() {
            let _ = writeln!(page, "<h2>{head}</h2>\n{body}");
        }
    }
    page + "</main>\n</body>\n</html>\n"
}

/// What was measured where.
fn about(ladder: &Ladder) -> String {
    let (m, s, o) = (&ladder.machine, &ladder.settings, &ladder.ocelli);
    let driver = m.driver.as_ref().map_or(String::new(), |d| format!(", driver {d}"));
    let commit = o.commit.map_or(String::new(), |c| format!(" ({c})"));
    let lines = [
        format!("{}{driver}, {} cores", m.name, m.cores),
        format!(
            "{} {}; batch {}, {} text tokens, vocabulary of {}; {} turns of {} steps, each rung beside the one before it",
            s.config,
            s.overrides.join(" "),
            s.batch,
            s.length,
            s.vocab,
            s.rounds,
            s.steps
        ),
        format!("ocelli {}{commit}, {}", o.version, ladder.made),
    ];
    lines.iter().map(|l| format!("<p class=\"soft\">{}</p>\n", escaped(l))).collect()
}

/// The three numbers that matter most.
fn tiles(ladder: &Ladder) -> String {
    let measured: Vec<&Figures> = ladder.rungs.iter().filter_map(|r| r.figures.as_ref()).collect();
    let (Some(first), Some(last)) = (measured.first(), measured.last()) else { return String::new() };
    let share = 100.0 * last.memory.total as f64 / first.memory.total.max(1) as f64;
    let tile = |number: String, words: &str| format!("<div><b>{number}</b>{words}</div>\n");
    format!(
        "<div class=\"tiles\">\n{}{}{}</div>\n",
        tile(format!("{:.2} times", first.ms / last.ms), "as fast as the first rung"),
        tile(format!("{:.2} ms", last.ms), "a step on the last rung"),
        tile(format!("{share:.0} %"), "of the first rung's memory")
    )
}

/// A chart of the rungs that were measured; nothing if none was.
fn bars(rungs: &[Rung], of: fn(&Figures) -> (f64, String, String)) -> String {
    let bar = |r: &Rung| {
        let (size, value, note) = of(r.figures.as_ref()?);
        Some(Bar { label: label(r, "+ "), size, value, note })
    };
    chart::bars(&rungs.iter().filter_map(bar).collect::<Vec<_>>())
}

fn label(rung: &Rung, sign: &str) -> String {
    escaped(&format!("{}{}", if rung.name == "start" { "" } else { sign }, rung.title))
}

fn ms(f: &Figures) -> (f64, String, String) {
    (f.ms, format!("{:.2} ms", f.ms), f.speedup.map_or(String::new(), |x| format!("{x:.2} x")))
}

fn memory(f: &Figures) -> (f64, String, String) {
    let mb = f.memory.total as f64 / 1e6;
    (mb, format!("{mb:.0} MB"), String::new())
}

/// A chart of all tricks, and all but one each.
fn without(ladder: &Ladder) -> String {
    let bar =
        |label: String, ms: f64, note: String| Bar { label, size: ms, value: format!("{ms:.2} ms"), note };
    let all = ladder.rungs.iter().rev().find_map(|r| r.figures.as_ref());
    let all = all.map(|f| bar("all tricks".into(), f.ms, String::new()));
    let one = |r: &Rung| {
        let f = r.figures.as_ref()?;
        let note = f.against.as_ref().map(|a| format!("{:.2} x as long", 1.0 / a.speedup));
        Some(bar(label(r, "no "), f.ms, note.unwrap_or_default()))
    };
    let rest: Vec<Bar> = ladder.without.iter().filter_map(one).collect();
    if rest.is_empty() {
        String::new()
    } else {
        chart::bars(&all.into_iter().chain(rest).collect::<Vec<_>>())
    }
}

fn table(rungs: &[Rung], sign: &str) -> String {
    let number = |x: Option<f64>| x.map_or("-".into(), |x| format!("{x:.2}"));
    let mb = |bytes: usize| format!("{:.1}", bytes as f64 / 1e6);
    let row = |r: &Rung| {
        let f = r.figures.as_ref()?;
        let cells = [
            label(r, sign),
            format!("{:.3}", f.ms),
            number(f.speedup),
            number(f.against.as_ref().map(|a| a.speedup)),
            format!("{:.0}", f.images_per_s),
            mb(f.memory.state),
            mb(f.memory.scratch),
            mb(f.memory.other),
            f.launches.to_string(),
            r.last_loss().map_or("-".into(), |l| format!("{l:.4}")),
        ];
        Some(format!("<tr><td>{}</td></tr>\n", cells.join("</td><td>")))
    };
    let rows: String = rungs.iter().filter_map(row).collect();
    if rows.is_empty() {
        return rows;
    }
    let beside = if sign == "+ " { "x before" } else { "x all" };
    let heads = [
        "rung",
        "ms",
        "x start",
        beside,
        "images/s",
        "state, MB",
        "scratch, MB",
        "other, MB",
        "launches",
        "loss",
    ];
    let heads = heads.map(|h| format!("<th>{h}</th>")).concat();
    format!("<div class=\"wide\"><table>\n<tr>{heads}</tr>\n{rows}</table></div>\n")
}

/// The rungs without figures, and why.
fn absent(ladder: &Ladder) -> String {
    let item = |r: &Rung, sign: &str| {
        let why = escaped(r.why.as_deref()?);
        Some(format!("<dt>{sign}{}</dt><dd>{why}</dd>\n", escaped(r.title)))
    };
    let items: String = ladder
        .rungs
        .iter()
        .filter_map(|r| item(r, ""))
        .chain(ladder.without.iter().filter_map(|r| item(r, "all but ")))
        .collect();
    if items.is_empty() { items } else { format!("<dl>\n{items}</dl>") }
}

/// Text as it stands in HTML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::report::{Against, Loss, Machine, Memory, Ocelli, Settings, Status};
    use super::*;

    fn measured(name: &'static str, title: &'static str, ms: f64, before: f64) -> Rung {
        let against =
            (before > 0.0).then(|| Against { name: "x", turns: vec![before], speedup: before / ms });
        let scratch = if ms > 15.0 { 3_100_000_000 } else { 500_000_000 };
        let memory = Memory { state: 155_000_000, scratch, other: 0, total: scratch + 155_000_000 };
        let loss =
            (0..5).map(|i| Loss { step: 24 + 20 * i, loss: 4.2 - 0.1 * i as f64 + ms * 1e-4 }).collect();
        let (turns, plan) = (vec![ms], vec!["train 00".into()]);
        let (images_per_s, speedup) = (64e3 / ms, Some(40.0 / ms));
        let figures =
            Some(Figures { ms, turns, images_per_s, speedup, against, memory, launches: 700, plan, loss });
        Rung { name, title, status: Status::Measured, why: None, keys: vec![], figures }
    }

    fn ladder() -> Ladder {
        let refused = |name, title| Rung {
            name,
            title,
            status: Status::Refused,
            why: Some("<script src=\"//x\">".into()),
            keys: vec![],
            figures: None,
        };
        Ladder {
            schema: "ocelli-ladder",
            version: 1,
            made: "2026-11-30T18:00:00+00:00".into(),
            ocelli: Ocelli { version: "0.1.0", commit: Some("abc1234") },
            machine: Machine {
                device: "cuda".into(),
                name: "NVIDIA <H200>".into(),
                driver: Some("580.159".into()),
                about: "sm_90a".into(),
                cores: 16,
            },
            settings: Settings {
                config: "csv_train".into(),
                overrides: vec!["model_config.init_from=<img src=x>".into()],
                batch: 64,
                length: 256,
                vocab: 78,
                grad_accum: 1,
                seed: 1337,
                steps: 20,
                rounds: 5,
                warm_up: 4,
            },
            rungs: vec![
                measured("start", "everything off", 40.0, 0.0),
                refused("pinned_memory", "pinned memory"),
                measured("cuda_graph", "CUDA graph", 31.0, 40.0),
                measured("tf32", "TF32", 15.2, 31.0),
                measured("amp", "mixed precision", 5.4, 15.2),
                measured("flash_attention", "FlashAttention", 1.5, 5.4),
            ],
            without: vec![measured("amp", "mixed precision", 5.1, 1.5)],
        }
    }

    #[test]
    fn the_page_is_one_file_and_foreign_text_is_text() {
        let page = page(&ladder());
        for sign in ["http:", "https:", "src=", "href=", "url(", "@import", "<script", "<img", "<link"] {
            assert!(
                !page.replace("src=x&gt;", "").replace("src=&quot;", "").contains(sign),
                "{sign} in {page}"
            );
        }
        for part in [
            "NVIDIA &lt;H200&gt;, driver 580.159, 16 cores",
            "<b>26.67 times</b>",
            "&lt;script src=&quot;//x&quot;&gt;",
            "<dt>pinned memory</dt>",
            "+ FlashAttention",
            "3.40 x as long",
            "name=\"viewport\"",
            "prefers-color-scheme:dark",
        ] {
            assert!(page.contains(part), "no {part} in {page}");
        }
        let order = ["everything off", "CUDA graph", "TF32", "mixed precision", "FlashAttention"];
        let places: Vec<usize> = order.iter().map(|o| page.find(o).unwrap()).collect();
        assert!(places.is_sorted(), "{places:?}");
        assert_eq!(page.matches("<polyline").count(), 5);
    }
}
