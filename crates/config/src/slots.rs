//! One slot per key of the table: the last value set for it. A file fills the slots, overrides change them.

use crate::error::{Problem, ProblemKind};
use crate::keys::{GROUPS, KEYS, index};
use crate::node::{Data, Node, Origin};
use crate::suggest;

/// What was set, by index into [`KEYS`].
pub(crate) struct Slots {
    /// Values; `None`: nobody set it.
    pub set: Vec<Option<Node>>,
    /// Who took a key back to its default.
    pub taken: Vec<Option<Origin>>,
}

impl Slots {
    pub(crate) fn new() -> Self {
        Self { set: vec![None; KEYS.len()], taken: vec![None; KEYS.len()] }
    }

    /// Takes a key back to its default.
    pub(crate) fn take(&mut self, slot: usize, origin: &Origin) {
        self.set[slot] = None;
        self.taken[slot] = Some(origin.clone());
    }

    /// Takes every known key of a file's root; what is unknown, double or misplaced becomes a problem.
    pub(crate) fn fill(&mut self, root: Node, problems: &mut Vec<Problem>) {
        let Data::Map(groups) = root.data else {
            let what = format!(
                "expected the groups {} with keys under them, found {}",
                GROUPS.join(", "),
                root.data.describe()
            );
            problems.push(Problem { origin: root.origin, key: None, kind: ProblemKind::Syntax(what) });
            return;
        };
        let mut seen: Vec<(String, Origin)> = Vec::new();
        for (group, origin, node) in groups {
            if let Some(kind) = duplicate(&seen, &group) {
                problems.push(Problem { origin, key: Some(group), kind });
                continue;
            }
            seen.push((group.clone(), origin.clone()));
            match GROUPS.iter().find(|known| **known == group) {
                Some(known) => self.fill_group(known, node, problems),
                None => problems.push(unknown_group(group, origin)),
            }
        }
    }

    fn fill_group(&mut self, group: &str, node: Node, problems: &mut Vec<Problem>) {
        let entries = match node.data {
            Data::Map(entries) => entries,
            ref data if data.is_null() => return,
            data => {
                let kind = ProblemKind::WrongType {
                    expected: "keys with values under it".into(),
                    found: data.describe(),
                };
                problems.push(Problem { origin: node.origin, key: Some(group.into()), kind });
                return;
            }
        };
        let mut seen: Vec<(String, Origin)> = Vec::new();
        for (name, origin, node) in entries {
            let path = format!("{group}.{name}");
            if let Some(kind) = duplicate(&seen, &path) {
                problems.push(Problem { origin, key: Some(path), kind });
                continue;
            }
            seen.push((path.clone(), origin.clone()));
            match index(&path) {
                // The name's place, not the value's: it is where a reader looks for the key.
                Some(slot) => self.set[slot] = Some(Node { data: node.data, origin }),
                None => problems.push(unknown_key(path, origin)),
            }
        }
    }
}

/// The problem of a key that is not in the table.
pub(crate) fn unknown_key(path: String, origin: Origin) -> Problem {
    let kind = ProblemKind::UnknownKey { hint: suggest::hint(&path) };
    Problem { origin, key: Some(path), kind }
}

/// A name at the top that is no group: Hydra's own are refused by name.
fn unknown_group(name: String, origin: Origin) -> Problem {
    let kind = match name.as_str() {
        "defaults" => ProblemKind::Unsupported(
            "defaults lists and config groups are not supported; write the values into one file".into(),
        ),
        "hydra" => ProblemKind::Unsupported("hydra.* settings are not supported".into()),
        _ => ProblemKind::UnknownKey { hint: suggest::hint(&name) },
    };
    Problem { origin, key: Some(name), kind }
}

fn duplicate(seen: &[(String, Origin)], name: &str) -> Option<ProblemKind> {
    seen.iter().find(|(first, _)| first == name).map(|(_, first)| match first {
        Origin::File { line, column, .. } => ProblemKind::Duplicate { line: *line, column: *column },
        _ => ProblemKind::Duplicate { line: 0, column: 0 },
    })
}
