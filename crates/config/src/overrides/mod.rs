//! Overrides of the command line in Hydra's grammar: `key=value` sets, `+key=value` adds, `++key=value` sets
//! or adds, `~key` and `~key=value` take back. What of the grammar is left out (config groups, packages,
//! `hydra.*`, dictionaries, functions) is refused by name.

mod apply;
mod quote;
mod sweep;
mod value;

use std::sync::Arc;

pub(crate) use apply::apply;
pub(crate) use quote::argument;
pub use quote::literal;
pub use sweep::sweep;

use crate::error::{Problem, ProblemKind};
use crate::keys;
use crate::node::{Node, Origin};

/// What an override does with its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// `k=v`
    Set,
    /// `+k=v`
    Add,
    /// `++k=v`
    Force,
    /// `~k` or `~k=v`
    Delete,
}

/// One override, taken apart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Override {
    pub operation: Operation,
    pub key: String,
    pub key_origin: Origin,
    /// One value; several mean a sweep; none stands for a bare `~key`. Each with its text.
    pub values: Vec<(String, Node)>,
}

/// What is wrong at which character (from 0) of an override.
type Fault = (usize, ProblemKind);

/// Makes origins within one override.
struct Place {
    index: usize,
    text: Arc<str>,
}

impl Place {
    /// `at` counts bytes from 0 and lies on a character's start.
    fn origin(&self, at: usize) -> Origin {
        let column = self.text.get(..at).unwrap_or(&self.text).chars().count() + 1;
        Origin::Override { index: self.index, text: self.text.clone(), column }
    }
}

/// Takes apart the override with number `index`.
pub(crate) fn parse(index: usize, text: &str) -> Result<Override, Problem> {
    let place = Place { index, text: text.into() };
    parse_at(&place).map_err(|(at, kind)| {
        // A key that is known is not spoken of again because it has no value.
        let key = text.split('=').next().unwrap_or_default().trim_start_matches(['+', '~']);
        let key = keys::index(key).map(|_| key.to_owned());
        Problem { origin: place.origin(at), key, kind }
    })
}

fn parse_at(place: &Place) -> Result<Override, Fault> {
    let text = &*place.text;
    let (operation, start) = match text {
        t if t.starts_with("++") => (Operation::Force, 2),
        t if t.starts_with('+') => (Operation::Add, 1),
        t if t.starts_with('~') => (Operation::Delete, 1),
        _ => (Operation::Set, 0),
    };
    let end = text.find('=').unwrap_or(text.len());
    let key = &text[start.min(end)..end];
    let bare = key.trim_matches([' ', '\t']);
    if bare.len() < key.len() && check_key(bare).is_ok() {
        let what = format!("a blank stands beside the key `{bare}`: write {bare}=value without blanks");
        return Err((start, ProblemKind::Syntax(what)));
    }
    check_key(key).map_err(|kind| (start, kind))?;
    let values = if end < text.len() {
        value::parse(place, end + 1)?
    } else if operation == Operation::Delete {
        Vec::new()
    } else {
        return Err((end, ProblemKind::Syntax("expected `=` and a value: write key=value".into())));
    };
    Ok(Override { operation, key: key.to_owned(), key_origin: place.origin(start), values })
}

/// Refuses what is not a dotted key, by name where Hydra gives it a meaning.
fn check_key(key: &str) -> Result<(), ProblemKind> {
    let unsupported = |what: &str| Err(ProblemKind::Unsupported(what.into()));
    if key == "hydra" || key.starts_with("hydra.") || key.starts_with("hydra/") {
        return unsupported("hydra.* settings are not supported");
    }
    if key.contains('/') {
        return unsupported("config groups (group/option=name) are not supported; set keys one by one");
    }
    if key.contains('@') {
        return unsupported("packages (key@package) are not supported; set keys one by one");
    }
    let is_name =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    if key.split('.').all(is_name) {
        return Ok(());
    }
    Err(ProblemKind::Syntax("expected a dotted key such as trainer_config.lr before `=`".into()))
}
