//! `ocelli data prepare`: the cache of decoded pictures, made beforehand.

use super::{Aside, request, split};
use crate::args::DataPrepare as Args;
use crate::console::Console;
use crate::output::{arrived, say, say_json};
use anyhow::bail;
use ocelli_data::text::count;
use ocelli_train::look::{self, Kept};
use serde_json::json;

/// Makes the file, and one for a split to validate on.
pub fn prepare(args: &Args) -> anyhow::Result<()> {
    let (sources, overrides) = split(&args.source);
    let source = match &sources[..] {
        [source] if !source.is_empty() => source,
        [] | [_] => bail!("no source is named: give a file or a folder"),
        _ => bail!("one source can be prepared at a time, not {}", sources.len()),
    };
    let request = request(source, &args.named, &overrides);
    let made = look::prepare(&request, &args.out, &mut Aside(Console::new()))?;
    for kept in &made {
        match args.json {
            true => say_json(&as_json(kept)),
            false => say(&as_text(kept)),
        }
    }
    arrived()
}

fn as_text(k: &Kept) -> String {
    let (file, mb, pictures) = (k.file.display(), k.bytes.div_ceil(1_000_000), count(k.pictures, "picture"));
    let how = match k.seconds {
        Some(s) => format!("{:.0} pictures/s", k.pictures as f64 / s.max(1e-9)),
        None => "it was there".into(),
    };
    format!("{file}: {pictures} {}, {mb} MB ({how})", k.split)
}

fn as_json(k: &Kept) -> serde_json::Value {
    json!({"file": k.file, "split": k.split, "pictures": k.pictures, "bytes": k.bytes, "seconds": k.seconds})
}
