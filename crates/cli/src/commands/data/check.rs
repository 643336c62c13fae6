//! `ocelli data check`: which rows of sources can be used, and why the others cannot.

use super::{Aside, request, split, why};
use crate::args::DataCheck as Args;
use crate::console::Console;
use crate::output::{arrived, say, say_json, warn};
use anyhow::bail;
use ocelli_data::scan::UnknownCharacter;
use ocelli_data::text::count;
use ocelli_train::look::{self, Bad, Checked, Part};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Bad rows named in a text; `--json` has more.
const NAMED: usize = 20;

/// Reads every row of each source; exit code 0 if all of them can be trained on as they are.
pub fn check(args: &Args) -> anyhow::Result<()> {
    let (sources, overrides) = split(&args.sources);
    if sources.is_empty() || sources.iter().any(String::is_empty) {
        bail!("no source is named: give a file or a folder");
    }
    let mut refused = 0;
    for source in &sources {
        let found = look::check(&request(source, &args.named, &overrides), &mut Aside(Console::new()));
        refused += usize::from(found.as_ref().map_or(true, |found| !found.refusals.is_empty()));
        match found {
            Ok(found) if args.json => say_json(&as_json(source, &found)),
            Ok(found) => say(&as_text(&found)),
            Err(error) => {
                if args.json {
                    say_json(&json!({"source": source, "trainable": false, "error": error.to_string()}));
                }
                warn(&format!("error: {error}"));
            }
        }
        arrived()?;
    }
    if refused > 0 {
        bail!("{refused} of {} cannot be used as it is", count(sources.len(), "source"));
    }
    Ok(())
}

fn as_text(found: &Checked) -> String {
    let mut lines = found.notes.clone();
    if let Some(c) = found.captions {
        lines.push(format!(
            "captions: {} on average, {} at most; {}",
            count(c.mean.round() as u64, "character"),
            c.longest,
            count(c.characters, "different character")
        ));
    }
    let limit = found.captions.map(|c| c.limit);
    found.parts.iter().for_each(|part| lines.extend(part_text(part, limit)));
    lines.extend(found.refusals.iter().map(|why| format!("training would stop: {why}")));
    lines.join("\n")
}

fn part_text(part: &Part, limit: Option<usize>) -> Vec<String> {
    let mut lines =
        vec![format!("{}: {} of {} can be used", part.name, part.usable(), count(part.rows, "row"))];
    if let Some([w0, w1, h0, h1]) = part.sizes {
        lines.push(format!("pictures: {} wide, {} high (pixels)", span(w0, w1), span(h0, h1)));
    }
    if part.truncated > 0 {
        let limit = count(limit.unwrap_or_default(), "character");
        lines.push(format!("cut to {limit}: {}", count(part.truncated, "caption")));
    }
    if part.replaced > 0 {
        lines.push(format!("not in the vocabulary: {}", count(part.replaced, "character")));
    }
    if !part.warnings.is_empty() {
        lines.push(format!("used in spite of: {}", reasons(&part.warnings)));
    }
    if !part.skipped.is_empty() {
        lines.push(format!("skipped: {}", reasons(&part.skipped)));
        lines.extend(part.bad.iter().take(NAMED).map(|bad| format!("  {}", bad.why)));
    }
    let more = part.unusable().saturating_sub(NAMED);
    if more > 0 {
        let listed = look::LISTED;
        lines.push(format!("  and {more} more (--json lists the first {listed})"));
    }
    lines
}

fn span(least: u32, most: u32) -> String {
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}

fn reasons(counts: &BTreeMap<&'static str, u64>) -> String {
    counts.iter().map(|(reason, n)| format!("{n} {reason}")).collect::<Vec<_>>().join(", ")
}

fn as_json(source: &str, found: &Checked) -> Value {
    let captions = found
        .captions
        .map(|c| json!({"mean": c.mean, "longest": c.longest, "characters": c.characters, "limit": c.limit}));
    let unknown = |u: &UnknownCharacter| {
        json!({
            "character": u.character, "count": u.used.count, "first_row": u.used.first_row, "part": u.used.source,
        })
    };
    json!({
        "source": source,
        "trainable": found.refusals.is_empty(),
        "refusals": found.refusals,
        "notes": found.notes,
        "captions": captions,
        "unknown_characters": found.unknown.iter().map(unknown).collect::<Vec<_>>(),
        "parts": found.parts.iter().map(part_json).collect::<Vec<_>>(),
    })
}

fn part_json(p: &Part) -> Value {
    let bad = |b: &Bad| {
        let mut line = why(&b.why);
        line["row"] = json!(b.row);
        line
    };
    json!({
        "name": p.name,
        "rows": p.rows,
        "usable": p.usable(),
        "skipped": p.skipped,
        "bad": p.bad.iter().map(bad).collect::<Vec<_>>(),
        "warnings": p.warnings,
        "truncated": p.truncated,
        "replaced": p.replaced,
        "sizes": p.sizes.map(|[w0, w1, h0, h1]| json!({"width": [w0, w1], "height": [h0, h1]})),
    })
}
