//! `ocelli config`: what the keys mean.

use crate::args::Config;
use crate::output::{arrived, say};
use anyhow::bail;

/// Prints the help of one key, or of all.
pub fn config(args: &Config) -> anyhow::Result<()> {
    match args.key.as_deref().or(args.help.as_deref()).filter(|k| !k.is_empty()) {
        None => say(ocelli_config::all_help().trim_end()),
        Some(key) => match ocelli_config::help(key) {
            Some(text) => say(text.trim_end()),
            None => bail!("there is no key '{key}'{}", ocelli_config::hint(key)),
        },
    }
    arrived()
}
