//! From nodes to a checked [`Config`]: defaults below, interpolation, types and ranges, checks across keys,
//! and what to tell the user. Every stage runs as far as it can, so that all problems are found at once.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::error::{ConfigErrors, Problem, ProblemKind};
use crate::keys::{GROUPS, KEYS};
use crate::node::{Data, Node, Origin};
use crate::slots::Slots;
use crate::types::Config;
use crate::{capability, interpolate, limits, overrides, typed, unread, yaml};

/// A configuration that passed every check, and how it came about.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// Short name of the configuration, for run folders: the file's name without its ending.
    pub name: String,
    /// The values.
    pub config: Config,
    /// Lines for the user: keys without effect, and the like.
    pub notices: Vec<String>,
    /// Lines to be said if the CPU is what it runs on.
    pub cpu_notices: Vec<String>,
    /// Where each key's value came from, in the order of [`KEYS`].
    pub provenance: Vec<(&'static str, Origin)>,
    /// Values that ask for what is not there yet; see [`Resolved::for_training`].
    pub missing: Vec<Problem>,
}

impl Resolved {
    /// The configuration if this version can do all it asks for. A configuration that it cannot do may still
    /// be printed.
    ///
    /// # Errors
    /// One [`ProblemKind::NotYet`] for each value that asks for a capability that is not there yet.
    pub fn for_training(&self) -> Result<&Config, ConfigErrors> {
        if self.missing.is_empty() { Ok(&self.config) } else { Err(ConfigErrors(self.missing.clone())) }
    }
}

impl Config {
    /// The configuration as JSON with every key, as snapshots keep it. Reads back as an equal value.
    pub fn to_json(&self) -> String {
        self.to_value().to_string()
    }

    /// Reads what [`Config::to_json`] wrote, with every check of a configuration file. Keys that an older
    /// version did not know get their defaults.
    ///
    /// # Errors
    /// Every problem found: not JSON, an unknown key, a value out of range, sizes that do not fit.
    pub fn from_json(json: &str) -> Result<Self, ConfigErrors> {
        let file: Arc<str> = "stored configuration".into();
        let root = crate::json::parse(&file, json)?;
        let mut slots = Slots::new();
        let mut problems = Vec::new();
        slots.fill(root, &mut problems);
        // Stored text is final: `${` in it is itself.
        let nodes = with_defaults(slots);
        let data = nodes.iter().map(|node| Some(node.data.clone())).collect();
        checked(&nodes, data, Author::Program, &mut problems).ok_or(ConfigErrors(problems))
    }

    /// Checks a configuration that was built or changed by hand.
    ///
    /// # Errors
    /// Every problem found, as in [`Config::from_json`].
    pub fn validate(&self) -> Result<(), ConfigErrors> {
        Self::from_json(&self.to_json()).map(drop)
    }

    /// The groups as JSON objects.
    pub(crate) fn to_value(&self) -> Value {
        // Numbers, words and text under text keys always have a JSON form (infinity becomes null).
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// Who wrote the text below the overrides. What a user set and has no effect is worth a line; what a preset or
/// an earlier run holds is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Author {
    /// A file of the user's.
    User,
    /// A preset, or the configuration kept in a snapshot.
    Program,
}

impl Author {
    /// Whether the user set what came from `origin`.
    pub(crate) fn is_user(self, origin: &Origin) -> bool {
        match origin {
            Origin::Default => false,
            Origin::File { .. } => self == Self::User,
            Origin::Override { .. } => true,
        }
    }
}

/// Loads a configuration from a user's text; `file` is its name in messages.
///
/// # Errors
/// Every problem found.
pub fn load_text(file: &str, text: &str, overrides: &[String]) -> Result<Resolved, ConfigErrors> {
    load_from(file, text, overrides, Author::User)
}

/// As [`load_text`], from a text that this program wrote itself, as snapshots keep it: only overrides count as set
/// by the user.
///
/// # Errors
/// Every problem found.
pub fn load_stored(file: &str, text: &str, overrides: &[String]) -> Result<Resolved, ConfigErrors> {
    load_from(file, text, overrides, Author::Program)
}

/// Loads a configuration; `author` wrote the text.
pub(crate) fn load_from(
    file: &str,
    text: &str,
    overrides: &[String],
    author: Author,
) -> Result<Resolved, ConfigErrors> {
    let mut problems = Vec::new();
    let mut slots = Slots::new();
    let root = yaml::parse(&file.into(), text);
    let broken = root.is_err();
    match root {
        Ok(root) => slots.fill(root, &mut problems),
        Err(problem) => problems.push(problem),
    }
    let mut notices = overrides::apply(&mut slots, overrides, &mut problems);
    let nodes = with_defaults(slots);
    let data = interpolate::resolve(&nodes, &mut problems);
    let missing = capability::missing(&nodes, &data);
    let Some(config) = checked(&nodes, data, author, &mut problems) else {
        // What a broken file sets is unknown, so nothing can be said about how values go together.
        problems.retain(|problem| !(broken && matches!(problem.kind, ProblemKind::Conflict(_))));
        problems.extend(missing);
        problems.sort_by_key(|problem| problem.origin.rank());
        return Err(ConfigErrors(problems));
    };
    let provenance: Vec<_> =
        KEYS.iter().zip(&nodes).map(|(key, node)| (key.path, node.origin.clone())).collect();
    notices.extend(capability::notices(&config, &provenance, author));
    let cpu_notices = capability::cpu_notices(&config, &provenance, author);
    Ok(Resolved { name: short_name(file), config, notices, cpu_notices, provenance, missing })
}

/// One node per key: what was set, or the default. Whoever took a key back is where a message about it points.
fn with_defaults(slots: Slots) -> Vec<Node> {
    let defaults = Config::default().to_value();
    KEYS.iter()
        .zip(slots.set.into_iter().zip(slots.taken))
        .map(|(key, (set, taken))| {
            set.unwrap_or_else(|| Node {
                data: crate::json::data(&defaults[key.group()][key.name()]),
                origin: taken.unwrap_or(Origin::Default),
            })
        })
        .collect()
}

/// The configuration if `problems` is still empty after all checks.
fn checked(
    nodes: &[Node],
    data: Vec<Option<Data>>,
    author: Author,
    problems: &mut Vec<Problem>,
) -> Option<Config> {
    let mut groups: Map<String, Value> =
        GROUPS.iter().map(|group| ((*group).into(), Value::Object(Map::new()))).collect();
    // What was to be set is not known, so nothing more is said about it.
    let refused = |key: &&str| problems.iter().any(|problem| problem.key.as_deref() == Some(key));
    let mut bad: Vec<&str> = KEYS.iter().map(|key| key.path).filter(refused).collect();
    let defaults = Config::default().to_value();
    for ((key, node), data) in KEYS.iter().zip(nodes).zip(data) {
        let value = match data.map(|data| typed::check(key, &data)) {
            Some(Ok(value)) => value,
            failed => {
                if let Some(Err(kind)) = failed {
                    let origin = node.origin.clone();
                    problems.push(Problem { origin, key: Some(key.path.into()), kind });
                }
                bad.push(key.path);
                // The default stands in, so that checks of other keys can go on.
                defaults[key.group()][key.name()].clone()
            }
        };
        groups[key.group()][key.name()] = value;
    }
    match serde_json::from_value::<Config>(Value::Object(groups)) {
        Ok(config) => {
            for failure in limits::failures(&config, |key| bad.contains(&key)) {
                let origin = latest(nodes, failure.keys);
                let kind = ProblemKind::Conflict(with_places(nodes, &origin, &failure));
                problems.push(Problem { origin, key: failure.keys.first().map(|k| (*k).into()), kind });
            }
            problems.extend(unread::data_path(&config, nodes, author, |key| bad.contains(&key)));
            problems.is_empty().then_some(config)
        }
        // The table and the structs disagree; a test forbids it.
        Err(error) => {
            let kind = ProblemKind::Syntax(format!("the configuration does not fit its types: {error}"));
            problems.push(Problem { origin: Origin::Default, key: None, kind });
            None
        }
    }
}

/// Where the last set of some keys was set: the place to look at when they do not go together.
fn latest(nodes: &[Node], keys: &[&str]) -> Origin {
    KEYS.iter()
        .zip(nodes)
        .filter(|(key, _)| keys.contains(&key.path))
        .map(|(_, node)| node.origin.clone())
        .max_by_key(Origin::rank)
        .unwrap_or(Origin::Default)
}

/// A failure's message, with the places where the other keys that it names were set: the user may not know of them.
fn with_places(nodes: &[Node], shown: &Origin, failure: &limits::Failure) -> String {
    let mut message = failure.message.clone();
    for (key, node) in KEYS.iter().zip(nodes) {
        let file = matches!(node.origin, Origin::File { .. }) && node.origin != *shown;
        if file && failure.keys.contains(&key.path) && failure.message.contains(key.path) {
            message += &format!(" ({} is set at {})", key.path, node.origin);
        }
    }
    message
}

/// The name for run folders: letters, digits, `-` and `_` of the file's stem.
fn short_name(file: &str) -> String {
    let stem = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let stem = stem.strip_suffix(".yaml").or(stem.strip_suffix(".yml")).unwrap_or(stem);
    let name: String =
        stem.chars().take(64).map(|c| if c.is_alphanumeric() || c == '-' { c } else { '_' }).collect();
    if name.is_empty() { "config".into() } else { name }
}
