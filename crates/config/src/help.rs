//! What a person can ask about keys, made from the table.

use crate::keys::{GROUPS, KEYS, Key, Kind, Status};
use crate::typed;
use crate::types::Config;

/// Help on one key (`trainer_config.lr`, or `lr` alone) or on a group; `None` if there is no such name.
pub fn help(name: &str) -> Option<String> {
    let found: Vec<&Key> =
        KEYS.iter().filter(|key| key.path == name || key.name() == name || key.group() == name).collect();
    if found.is_empty() { None } else { Some(found.iter().map(|key| entry(key)).collect()) }
}

/// The nearest known key to a name that [`help`] does not know, as a hint that starts with `; `.
pub fn hint(name: &str) -> String {
    crate::suggest::hint(name)
}

/// Help on every key, group by group.
pub fn all_help() -> String {
    GROUPS
        .iter()
        .filter_map(|group| help(group).map(|text| format!("{group}\n{text}")))
        .collect::<Vec<_>>()
        .join("\n")
}

fn entry(key: &Key) -> String {
    let defaults = Config::default().to_value();
    let default = typed::to_yaml(&defaults[key.group()][key.name()]);
    let mut range = typed::expected(key);
    if let Kind::Int { .. } | Kind::Float(_) = key.kind {
        range += &format!(", {}", typed::allowed(key.kind));
    }
    let status = match key.status {
        Status::Active => String::new(),
        Status::NoEffect(why) => format!("    no effect: {why}\n"),
        Status::Engine => "    acts on GPUs only\n".into(),
        Status::Only(ready) => format!("    so far only: {}\n", ready.join(", ")),
    };
    format!("  {}: {range} (default {default})\n    {}\n{status}", key.path, key.help)
}
