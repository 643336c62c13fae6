//! `ocelli data`: what is in a source, and what the model sees of it.

mod check;
mod prepare;
mod show;

pub use check::check;
pub use prepare::prepare;
pub use show::show;

use crate::args::Named;
use crate::console::Console;
use crate::output::warn;
use ocelli_data::source::BadSample;
use ocelli_train::look::Request;
use ocelli_train::report::{Event, Reporter};
use serde_json::{Value, json};
use std::path::Path;

/// Tells of a fetch beside what was asked for: on standard error, or as a progress line.
pub(super) struct Aside(pub(super) Console);

impl Reporter for Aside {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Note(line) => warn(line),
            other => self.0.event(other),
        }
    }
}

/// Sources and overrides among the arguments. An override begins with a group of keys; or it has the form of one and
/// is no file: then a key is misspelt, which the configuration says better.
pub(super) fn split(args: &[String]) -> (Vec<String>, Vec<String>) {
    let is_override = |arg: &String| {
        let key = arg.trim_start_matches(['+', '~']);
        let grouped = ocelli_config::GROUPS
            .iter()
            .any(|g| key.strip_prefix(g).is_some_and(|rest| rest.starts_with('.')));
        grouped || (arg.contains('=') && !Path::new(arg).exists())
    };
    let (overrides, sources) = args.iter().cloned().partition(is_override);
    (sources, overrides)
}

/// Why a row cannot be used, as JSON.
fn why(bad: &BadSample) -> Value {
    json!({
        "reason": bad.reason, "source": bad.file, "place": bad.place, "bytes": bad.bytes, "detail": bad.detail,
    })
}

pub(super) fn request(source: &str, named: &Named, overrides: &[String]) -> Request {
    Request {
        source: source.into(),
        config_name: named.config_name.clone(),
        config_path: named.config_path.clone(),
        overrides: overrides.to_vec(),
    }
}
