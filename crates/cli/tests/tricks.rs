//! `docs/tricks.md` shows the figures of the committed ladders, `docs/gpu/ladder-*.json`.
//!
//! `UPDATE_TRICKS=1` writes them (`scripts/tricks_figures.sh` calls it so).

use serde_json::Value;
use std::path::{Path, PathBuf};

/// The tricks, in the published order.
const TRICKS: [&str; 10] = [
    "workers",
    "pinned_memory",
    "cuda_graph",
    "prefetch",
    "tf32",
    "amp",
    "compile",
    "flash_attention",
    "autotune",
    "data_parallel",
];

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("docs")
}

/// The committed ladders, in the order of their names.
fn ladders() -> Vec<Value> {
    let Ok(folder) = std::fs::read_dir(docs().join("gpu")) else { return vec![] };
    let mut paths: Vec<PathBuf> = folder.map(|e| e.unwrap().path()).collect();
    paths.sort();
    let ladder = |p: &PathBuf| {
        let name = p.file_name()?.to_str()?;
        (name.starts_with("ladder-") && name.ends_with(".json"))
            .then(|| serde_json::from_str(&std::fs::read_to_string(p).unwrap()).unwrap())
    };
    paths.iter().filter_map(ladder).collect()
}

fn ms(figures: &Value) -> f64 {
    figures["ms"].as_f64().unwrap()
}

/// The middle of some turns, as the ladder takes it.
fn median(turns: &Value) -> Option<f64> {
    let mut all: Vec<f64> = turns.as_array()?.iter().map(|t| t.as_f64().unwrap()).collect();
    all.sort_by(f64::total_cmp);
    (!all.is_empty()).then(|| f64::midpoint(all[(all.len() - 1) / 2], all[all.len() / 2]))
}

fn named<'a>(rungs: &'a Value, name: &str) -> Option<&'a Value> {
    rungs.as_array()?.iter().find(|r| r["name"] == name)
}

/// Which machine, and what was measured.
fn machine(l: &Value) -> String {
    let (m, s) = (&l["machine"], &l["settings"]);
    format!("{}, batch {}, {} tokens", m["name"].as_str().unwrap(), s["batch"], s["length"])
}

/// A trick's line: before and after it came in, and what taking it away from all costs.
fn line(l: &Value, name: &str) -> String {
    let rung = named(&l["rungs"], name).unwrap_or_else(|| panic!("the ladder has no rung '{name}'"));
    let f = &rung["figures"];
    if f.is_null() {
        return format!("- {}: not measured: {}.", machine(l), rung["why"].as_str().unwrap());
    }
    let against = &f["against"];
    let speedup = against["speedup"].as_f64().unwrap();
    let before = median(&against["turns"]).unwrap_or(ms(f) * speedup);
    let without = named(&l["without"], name).map(|w| &w["figures"]).filter(|f| !f.is_null());
    let without = without.map_or(String::new(), |f| {
        let times = 1.0 / f["against"]["speedup"].as_f64().unwrap();
        format!(" All tricks but this one take {times:.2} times as long as all.")
    });
    let memory = f["memory"]["total"].as_f64().unwrap() / 1e6;
    format!(
        "- {}: {before:.2} ms before, {:.2} ms after: {speedup:.2} times as fast; {memory:.0} MB after.{without}",
        machine(l),
        ms(f)
    )
}

/// The whole ladder as a table.
fn table(l: &Value) -> String {
    let (m, o) = (&l["machine"], &l["ocelli"]);
    let driver = m["driver"].as_str().map_or(String::new(), |d| format!(", driver {d}"));
    let commit = o["commit"].as_str().map_or(String::new(), |c| format!(", commit {c}"));
    let mut lines = vec![
        format!("{}{driver}{commit}, {}:\n", machine(l), &l["made"].as_str().unwrap()[..10]),
        "| rung | ms a step | x first | x before | memory, MB | launches | loss |".into(),
        "|---|---|---|---|---|---|---|".into(),
    ];
    let number = |v: &Value| v.as_f64().map_or("-".into(), |x| format!("{x:.2}"));
    for (part, sign) in [("rungs", "+ "), ("without", "all but ")] {
        for r in l[part].as_array().unwrap() {
            let sign = if r["name"] == "start" { "" } else { sign };
            let (title, f) = (r["title"].as_str().unwrap(), &r["figures"]);
            lines.push(match f.is_null() {
                true => format!(
                    "| {sign}{title} | {} | | | | | |",
                    r["status"].as_str().unwrap().replace('_', " ")
                ),
                false => format!(
                    "| {sign}{title} | {:.2} | {} | {} | {:.0} | {} | {:.4} |",
                    ms(f),
                    number(&f["speedup"]),
                    number(&f["against"]["speedup"]),
                    f["memory"]["total"].as_f64().unwrap() / 1e6,
                    f["launches"],
                    f["loss"].as_array().unwrap().last().unwrap()["loss"].as_f64().unwrap_or(f64::NAN)
                ),
            });
        }
    }
    lines.join("\n")
}

/// What stands in a marked place.
fn figures(ladders: &[Value], name: &str) -> String {
    let parts: Vec<String> = match name {
        "ladder" => ladders.iter().map(table).collect(),
        name => ladders.iter().map(|l| line(l, name)).collect(),
    };
    if parts.is_empty() {
        "Not measured yet.".into()
    } else {
        parts.join(if name == "ladder" { "\n\n" } else { "\n" })
    }
}

/// The text with all its marked places filled; the names of the places.
fn filled<'a>(text: &'a str, ladders: &[Value]) -> (String, Vec<&'a str>) {
    const END: &str = "<!-- end -->";
    let (mut out, mut rest, mut names) = (String::new(), text, Vec::new());
    while let Some((before, after)) = rest.split_once("<!-- figures ") {
        let (name, after) = after.split_once(" -->").unwrap();
        let (_, after) = after.split_once(END).unwrap_or_else(|| panic!("the figures of {name} have no end"));
        out += &format!("{before}<!-- figures {name} -->\n{}\n{END}", figures(ladders, name));
        names.push(name);
        rest = after;
    }
    (out + rest, names)
}

#[test]
fn the_tricks_show_the_committed_figures() {
    let path = docs().join("tricks.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (wanted, names) = filled(&text, &ladders());
    assert_eq!(names, [&["ladder"], &TRICKS[..]].concat(), "a section a trick, in the published order");
    if std::env::var_os("UPDATE_TRICKS").is_some() {
        std::fs::write(&path, wanted).unwrap();
    } else {
        assert!(text == wanted, "docs/tricks.md is behind docs/gpu: run scripts/tricks_figures.sh");
    }
}

#[test]
fn a_ladder_becomes_lines() {
    let figures = |ms: f64, against: Value| {
        serde_json::json!({"ms": ms, "against": against, "speedup": 2.0, "launches": 7, "memory": {"total": 3_000_000},
            "loss": [{"step": 1, "loss": 3.5}]})
    };
    let rung = |name: &str, f: Value| serde_json::json!({"name": name, "title": name, "status": "measured", "why": "so", "figures": f});
    let ladder = serde_json::json!({
        "made": "2026-11-30T18:00:00+00:00", "ocelli": {"commit": "abc"}, "machine": {"name": "A GPU", "driver": "1.2"},
        "settings": {"batch": 64, "length": 256},
        "rungs": [rung("start", figures(20.0, Value::Null)), rung("tf32", figures(10.0, serde_json::json!({"turns": [20.0, 22.0, 21.0], "speedup": 2.1}))), rung("amp", Value::Null)],
        "without": [rung("tf32", figures(12.0, serde_json::json!({"turns": [], "speedup": 0.8})))],
    });
    let text = "a\n<!-- figures tf32 -->old<!-- end -->\n<!-- figures amp -->\n<!-- end -->\n<!-- figures ladder --><!-- end -->z";
    let (out, names) = filled(text, &[ladder]);
    assert_eq!(names, ["tf32", "amp", "ladder"]);
    assert!(out.starts_with(
        "a\n<!-- figures tf32 -->\n- A GPU, batch 64, 256 tokens: 21.00 ms before, 10.00 ms after: 2.10 times as fast; 3 MB \
         after. All tricks but this one take 1.25 times as long as all.\n<!-- end -->"
    ), "{out}");
    assert!(
        out.contains("- A GPU, batch 64, 256 tokens: not measured: so.") && out.ends_with("<!-- end -->z"),
        "{out}"
    );
    assert!(out.contains("| all but tf32 | 12.00 | 2.00 | 0.80 | 3 | 7 | 3.5000 |"), "{out}");
    assert!(filled(text, &[]).0.contains("Not measured yet."));
}
