//! The figures of an evaluation, as text, as JSON and row by row.

use crate::console::attributes;
use crate::finish::odd_rows;
use ocelli_data::source::BadSample;
use ocelli_data::text::count;
use ocelli_train::evaluate::{Captioned, Evaluated, Judged};
use serde_json::{Value, json};
use std::path::Path;

/// Bad rows named in a text; `--out` has all.
const NAMED: usize = 20;

/// Lines for a person.
pub fn text(e: &Evaluated, out: Option<&Path>) -> String {
    let (pictures, references) = numbers(e);
    let mut lines = vec![
        format!("{} (step {}) on {}", e.snapshot.display(), e.step, e.source),
        format!(
            "loss {:.4}, perplexity {:.4}: {} of {}",
            e.loss,
            e.perplexity(),
            count(e.tokens as u64, "token"),
            count(e.rows - e.skipped(), "row")
        ),
        format!("greedy captions of {}, {}:", count(pictures, "picture"), count(references, "reference")),
    ];
    let s = &e.scores;
    let [b1, b2, b3, b4] = s.bleu;
    lines.push(format!("  exact match        {:.4}", s.exact_match));
    lines.push(format!("  BLEU-1 to BLEU-4   {b1:.4} {b2:.4} {b3:.4} {b4:.4}"));
    lines.push(format!("  CIDEr              {:.4}", s.cider));
    lines.push(format!("  ROUGE-L            {:.4}", s.rouge_l));
    lines.push(format!("  METEOR, exact      {:.4}", s.meteor_exact));
    lines.extend(e.attributes.as_ref().map(attributes));
    lines.extend(odd_rows(&e.counts, ""));
    lines.extend(bad(e).take(NAMED).map(|(_, why)| format!("  {why}")));
    if e.skipped() > NAMED {
        lines.push(format!("  and {} more (--out lists all)", e.skipped() - NAMED));
    }
    lines.extend(out.map(|out| format!("captions: {}", out.display())));
    lines.join("\n")
}

/// Everything but the captions.
pub fn json(e: &Evaluated) -> Value {
    let (pictures, references) = numbers(e);
    let s = &e.scores;
    let bad = |(row, why): (usize, &BadSample)| bad_line(row, why);
    json!({
        "snapshot": e.snapshot.display().to_string(),
        "step": e.step,
        "source": e.source,
        "rows": e.rows,
        "tokens": e.tokens,
        "loss": e.loss,
        "perplexity": e.perplexity(),
        "pictures": pictures,
        "references": references,
        "exact_match": s.exact_match,
        "bleu": s.bleu,
        "cider": s.cider,
        "rouge_l": s.rouge_l,
        "meteor_exact": s.meteor_exact,
        "attributes": e.attributes.map(|a| json!({
            "pictures": a.pictures, "right": a.right, "random_caption": a.chance, "best_constant_caption": a.commonest,
        })),
        "skipped": e.counts.skipped,
        "truncated": e.counts.truncated,
        "replaced": e.counts.replaced,
        "warnings": e.counts.warnings,
        "bad": self::bad(e).map(bad).collect::<Vec<_>>(),
    })
}

/// One JSON object a line and picture, or bad row.
pub fn lines(e: &Evaluated) -> String {
    e.judged.iter().map(|j| format!("{}\n", line(j))).collect()
}

fn line(Judged { number: row, outcome, .. }: &Judged) -> Value {
    match outcome {
        Ok(Captioned { caption, references }) => json!({
            "row": row,
            "caption": caption.text,
            "references": references,
            "tokens": caption.tokens,
            "complete": caption.complete,
            "log_probability": caption.log_probability,
        }),
        Err(why) => bad_line(*row, why),
    }
}

fn bad_line(row: usize, why: &BadSample) -> Value {
    json!({"row": row, "place": why.place, "error": {"reason": why.reason, "detail": why.detail}})
}

fn bad(e: &Evaluated) -> impl Iterator<Item = (usize, &BadSample)> {
    e.judged.iter().filter_map(|j| Some((j.number, j.outcome.as_ref().err()?)))
}

/// Pictures captioned, and their references.
fn numbers(e: &Evaluated) -> (usize, usize) {
    e.captions().fold((0, 0), |(pictures, all), c| (pictures + 1, all + c.references.len()))
}
