//! A resolved configuration as YAML that loads again to the same values.

use crate::keys::{GROUPS, KEYS};
use crate::node::{Origin, printable};
use crate::resolve::Resolved;
use crate::typed;

impl Resolved {
    /// Every key with its final value.
    pub fn to_yaml(&self) -> String {
        self.render(false)
    }

    /// The same with a comment on each line: where its value came from.
    pub fn to_yaml_with_sources(&self) -> String {
        self.render(true)
    }

    fn render(&self, sources: bool) -> String {
        let values = self.config.to_value();
        let mut lines = Vec::new();
        for group in GROUPS {
            lines.push(format!("{group}:"));
            for (key, (_, origin)) in KEYS.iter().zip(&self.provenance).filter(|(k, _)| k.group() == group) {
                let line = format!("  {}: {}", key.name(), typed::to_yaml(&values[group][key.name()]));
                lines.push(if sources { format!("{line:<44}  # {}", source(origin)) } else { line });
            }
        }
        lines.join("\n") + "\n"
    }
}

/// An origin as a comment, on one line.
fn source(origin: &Origin) -> String {
    match origin {
        Origin::Override { text, .. } => format!("override {}", printable(text)),
        other => other.to_string(),
    }
}
