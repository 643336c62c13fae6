//! `ocelli data show`: one picture as the model sees it, and what goes with it.

use super::{Aside, request, split, why};
use crate::args::DataShow as Args;
use crate::console::Console;
use crate::output::{arrived, say, say_json};
use crate::shown::line;
use anyhow::{Context, bail};
use ocelli_data::image::png;
use ocelli_data::text::count;
use ocelli_train::TrainError;
use ocelli_train::look::{self, Shown};
use ocelli_train::snapshot::write_whole;
use serde_json::{Value, json};
use std::path::Path;

/// Writes the picture of a row, and says size, caption and ids.
pub fn show(args: &Args) -> anyhow::Result<()> {
    let (sources, overrides) = split(&args.source);
    let source = match &sources[..] {
        [source] if !source.is_empty() => source,
        [] | [_] => bail!("no source is named: give a file or a folder"),
        _ => bail!("one source can be shown at a time, not {}", sources.len()),
    };
    refuse_itself(source, &args.out)?;
    refuse_no_folder(&args.out)?;
    let index = usize::try_from(args.index).unwrap_or(usize::MAX);
    let shown = look::show(&request(source, &args.named, &overrides), index, &mut Aside(Console::new()));
    if let Some(error) = shown.as_ref().err().filter(|_| args.json) {
        say_json(&json!({"source": source, "index": args.index, "error": error_json(error)}));
    }
    let shown = shown?;
    let file = png(&shown.pixels, shown.side).context("cannot make a PNG file")?;
    write_whole(&args.out, &file)?;
    match args.json {
        true => say_json(&as_json(source, args, &shown)),
        false => say(&as_text(args, &shown)),
    }
    arrived()
}

/// The data are never written over.
fn refuse_itself(source: &str, out: &Path) -> anyhow::Result<()> {
    match (Path::new(source).canonicalize(), out.canonicalize()) {
        (Ok(a), Ok(b)) if a == b => bail!("--out {} is the source itself: name another file", out.display()),
        _ => Ok(()),
    }
}

/// A look makes no folders: a missing one is a slip of the pen, rather.
fn refuse_no_folder(out: &Path) -> anyhow::Result<()> {
    match out.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        Some(folder) => bail!(
            "--out {}: there is no folder {}: make it first, or name another",
            out.display(),
            folder.display()
        ),
        None => Ok(()),
    }
}

fn as_text(args: &Args, shown: &Shown) -> String {
    let (seen, side) = (&shown.seen, shown.side);
    let (w, h) = seen.sample.original;
    let mut lines = vec![
        format!("row {} of {}", args.index, shown.source),
        format!("picture: {w} x {h} pixels, as {side} x {side} in {}", args.out.display()),
        format!(
            "caption: {}",
            if seen.ids.is_empty() { "(none)".into() } else { line(&seen.sample.caption) }
        ),
        format!("ids: {:?}", seen.ids),
    ];
    if seen.cut {
        lines.push(format!("the caption is cut to {}", count(seen.ids.len(), "character")));
    }
    if seen.replaced > 0 {
        lines.push(format!("not in the vocabulary: {}", count(seen.replaced, "character")));
    }
    lines.extend(seen.sample.warnings.words().map(|word| format!("used in spite of: {word}")));
    lines.join("\n")
}

/// The reason of a bad row; of what concerns the whole source, only the words.
fn error_json(error: &TrainError) -> Value {
    match error {
        TrainError::Sample(bad) => why(bad),
        other => json!({"reason": "not_usable", "detail": other.to_string()}),
    }
}

fn as_json(source: &str, args: &Args, shown: &Shown) -> Value {
    let (seen, (w, h)) = (&shown.seen, shown.seen.sample.original);
    json!({
        "source": source,
        "index": args.index,
        "rows": shown.rows,
        "out": args.out.display().to_string(),
        "width": w,
        "height": h,
        "side": shown.side,
        "caption": seen.sample.caption,
        "ids": seen.ids,
        "truncated": seen.cut,
        "replaced": seen.replaced,
        "warnings": seen.sample.warnings.words().collect::<Vec<_>>(),
    })
}
