//! `ocelli caption`: pictures in, captions out.

use super::device;
use crate::args::{Caption as Args, On};
use crate::finish::flaw;
use crate::output::{arrived, say, say_json, warn};
use crate::shown::line;
use anyhow::{anyhow, bail};
use ocelli_config::{Config, Device};
use ocelli_data::image::{Reject, Warnings, decode, scaled};
use ocelli_data::source::MAX_FILE_BYTES;
use ocelli_data::text::count;
use ocelli_train::caption::{Caption, Captioner, Sampling};
use ocelli_train::engine::Captions;
use ocelli_train::memory::Task;
use ocelli_train::settings::{self, SIDE_BY_SIDE};
use ocelli_train::trained::{Saved, Trained};
use serde_json::json;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Captions every picture that can be read, in the order of the arguments and as they get done; the others are named
/// in their place, and the exit code is not 0.
pub fn caption(args: &Args) -> anyhow::Result<()> {
    let mut model = load(args)?;
    let prompt = prompt(args, &model)?;
    let how =
        Sampling { temperature: args.temperature, top_k: args.top_k.map(|k| k as usize), seed: args.seed };
    let mut failed = 0;
    // Never more pictures in memory than are captioned side by side.
    let width = model.engine.caption_batch();
    for (part, paths) in args.images.chunks(width).enumerate() {
        let pictures: Vec<_> = paths.iter().map(|path| picture(path, &model.config)).collect();
        let numbered: Vec<(usize, &[u8])> = pictures
            .iter()
            .enumerate()
            .filter_map(|(i, picture)| Some((part * width + i, &picture.as_ref().ok()?.pixels[..])))
            .collect();
        let limit = model.engine.caption_limit();
        let mut captioner = Captioner { engine: &mut model.engine, tokenizer: &*model.tokenizer, limit };
        let mut captions = captioner.caption_numbered(&numbered, &prompt, &how)?.into_iter();
        for (path, picture) in paths.iter().zip(&pictures) {
            match picture {
                Ok(picture) => {
                    captions.next().iter().for_each(|c| print(path, c, picture.warnings, args));
                }
                Err(why) => {
                    print_failure(path, why, args);
                    failed += 1;
                }
            }
        }
        // What was asked for does not arrive any more.
        arrived()?;
    }
    if failed > 0 {
        bail!("{failed} of {} could not be captioned", count(args.images.len(), "picture"));
    }
    Ok(())
}

fn load(args: &Args) -> anyhow::Result<Trained> {
    let mut saved = Saved::open(&args.snapshot, &[])?;
    saved.refused.iter().for_each(|e| warn(&format!("warning: {e}")));
    let t = &mut saved.config.trainer;
    t.threads = args.threads.map(|n| n as usize);
    t.device = match args.device {
        On::Auto => Device::Auto,
        On::Cpu => Device::Cpu,
        On::Cuda => Device::Cuda,
    };
    let executor = device::start(&mut saved.config, None, &mut warn)?;
    // One longer than what was trained on is allowed, up to the position table.
    let limit = args.max_length.map(|n| n as usize).or(saved.text_limit()).unwrap_or(usize::MAX);
    let captions = Captions {
        side_by_side: args.images.len().clamp(1, SIDE_BY_SIDE),
        positions: limit.saturating_add(1).min(saved.config.model.max_positions),
    };
    // A token of a prompt has one character or more.
    let prompt = args.prompt.as_ref().map_or(1, |text| text.chars().count()).min(captions.positions);
    Ok(saved.onto(executor, Task { captions, prompt, measured: None })?)
}

/// The prompt asked for, or how the model's captions begin of themselves.
fn prompt(args: &Args, model: &Trained) -> anyhow::Result<Vec<u32>> {
    let text = args.prompt.clone().unwrap_or_else(|| model.first_text());
    let ids = model.tokenizer.encode(&text).map_err(|e| anyhow!("--prompt: {e}"))?.ids;
    let room = model.engine.caption_limit();
    if ids.len() >= room {
        if args.prompt.is_none() {
            bail!("--max-length {room} leaves nothing to add: the caption begins with '{text}', given to it");
        }
        let length = count(ids.len(), "character");
        bail!("--prompt has {length}, a caption has at most {room}: none is left to add");
    }
    Ok(ids)
}

/// A picture as the model takes it.
struct Picture {
    pixels: Vec<u8>,
    warnings: Warnings,
}

/// A picture, or why there is none.
fn picture(path: &Path, config: &Config) -> Result<Picture, Reject> {
    let rgb = decode(&read(path)?, &settings::decoding(config))?;
    Ok(Picture { pixels: scaled(&rgb, config.model.img_size)?, warnings: rgb.warnings })
}

/// The bytes of a file, or of a pipe that was named: its writer decides when it ends, but not how much is kept.
fn read(path: &Path) -> Result<Vec<u8>, Reject> {
    let failed = |e| Reject { reason: "read_error", detail: format!("cannot read it: {e}"), bytes: None };
    let mut bytes = Vec::new();
    File::open(path).and_then(|f| f.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)).map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        let detail = format!("more than {MAX_FILE_BYTES} bytes, the limit for a picture");
        return Err(Reject { reason: "too_many_bytes", detail, bytes: Some(bytes.len() as u64) });
    }
    Ok(bytes)
}

fn print_failure(path: &Path, why: &Reject, args: &Args) {
    if args.json {
        let error = json!({ "reason": why.reason, "detail": why.detail });
        say_json(&json!({ "image": path.display().to_string(), "error": error }));
    }
    warn(&format!("error: {}: {why}", path.display()));
}

fn print(path: &Path, caption: &Caption, warnings: Warnings, args: &Args) {
    let name = path.display().to_string();
    warnings.words().for_each(|word| warn(&format!("warning: {}: {}", line(&name), flaw(word))));
    if args.json {
        say_json(&json!({
            "image": name,
            "caption": caption.text,
            "tokens": caption.tokens,
            "complete": caption.complete,
            "log_probability": caption.log_probability,
            "warnings": warnings.words().collect::<Vec<_>>(),
        }));
    } else if args.images.len() == 1 {
        say(&line(&caption.text));
    } else {
        say(&format!("{}: {}", line(&name), line(&caption.text)));
    }
}
