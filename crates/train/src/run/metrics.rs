//! The lines of `metrics.jsonl`. Each names its `kind`: `step`, `overflow`, `bad_step`, `progress`, `validation`
//! or `summary`.

use crate::engine::StepMetrics;
use crate::report::{Ended, Progress, Summary};
use serde_json::{Value, json};

/// One step as a line.
pub fn step_line(epoch: u64, step: u64, m: &StepMetrics) -> Value {
    json!({"kind": "step", "epoch": epoch, "step": step, "loss": m.loss(), "grad_norm": m.grad_norm, "lr": m.lr, "weight": m.weight})
}

/// A batch that took no step as a line: its gradient overflowed in 16 bits.
pub fn overflow_line(epoch: u64, m: &StepMetrics) -> Value {
    json!({"kind": "overflow", "epoch": epoch, "loss": m.loss(), "loss_scale": m.loss_scale})
}

/// A step that was skipped, behind `step`, as a line: its loss or gradient is no finite number. JSON has words for
/// those only as text.
pub fn bad_line(epoch: u64, step: u64, m: &StepMetrics) -> Value {
    let number = |x: f32| if x.is_finite() { json!(x) } else { json!(x.to_string()) };
    json!({"kind": "bad_step", "epoch": epoch, "after_step": step, "loss": number(m.loss()), "grad_norm": number(m.grad_norm)})
}

/// The state of things as a line.
pub fn progress_line(p: &Progress) -> Value {
    json!({
        "kind": "progress", "epoch": p.epoch, "step": p.step, "loss": p.loss, "images_per_s": p.images_per_s,
        "ms_per_step": p.ms_per_step, "data_wait": p.data_wait,
    })
}

/// A validation as a line.
pub fn validation_line(epoch: u64, step: u64, loss: f64) -> Value {
    json!({"kind": "validation", "epoch": epoch, "step": step, "loss": loss})
}

/// The whole run as a line, its last.
pub fn summary_line(s: &Summary) -> Value {
    let ended = match s.ended {
        Ended::Done => "done",
        Ended::Interrupted => "interrupted",
        Ended::BadSamples => "bad_samples",
        Ended::NoWeight => "no_weight",
    };
    json!({
        "kind": "summary", "ended": ended, "steps": s.steps, "new_steps": s.new_steps, "samples": s.samples,
        "seconds": s.training.as_secs_f64(), "skipped": s.counts.skipped, "truncated": s.counts.truncated,
        "replaced": s.counts.replaced, "warnings": s.counts.warnings, "validation_loss": s.validation_loss,
        "bad_steps": s.bad_steps, "text_places": s.padding.places, "text_places_unsorted": s.padding.unsorted,
        "text_tokens": s.padding.captions,
    })
}
