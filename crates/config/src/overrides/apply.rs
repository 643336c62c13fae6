//! Overrides onto slots, in the order of the command line.

use super::quote::argument;
use super::{Operation, Override, parse};
use crate::error::{Problem, ProblemKind};
use crate::keys::{GROUPS, KEYS, index};
use crate::node::{Node, Origin, printable, shorten};
use crate::slots::{Slots, unknown_key};
use crate::typed;

/// Applies every override that can be applied; the others become problems.
///
/// Gives a line for each key that is set several times; the last is taken, as Hydra does.
pub(crate) fn apply(slots: &mut Slots, overrides: &[String], problems: &mut Vec<Problem>) -> Vec<String> {
    let mut set: Vec<(String, Vec<&str>)> = Vec::new();
    for (number, text) in overrides.iter().enumerate() {
        let parsed = match parse(number, text) {
            Ok(parsed) => parsed,
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        if parsed.operation != Operation::Delete {
            match set.iter_mut().find(|(key, _)| *key == parsed.key) {
                Some((_, texts)) => texts.push(text),
                None => set.push((parsed.key.clone(), vec![text])),
            }
        }
        problems.extend(one(slots, parsed).err());
    }
    set.iter().filter_map(|(key, texts)| twice(key, texts)).collect()
}

/// What is said of a key set by all of `texts`, if they differ.
fn twice(key: &str, texts: &[&str]) -> Option<String> {
    let (last, before) = texts.split_last()?;
    let mut other: Vec<String> = Vec::new();
    for text in before.iter().filter(|text| *text != last) {
        let text = printable(&shorten(text));
        if !other.contains(&text) {
            other.push(text);
        }
    }
    let last = printable(&shorten(last));
    (!other.is_empty()).then(|| {
        format!(
            "{key} is set more than once on the command line: {last} is taken, not {}",
            other.join(" or ")
        )
    })
}

fn one(slots: &mut Slots, parsed: Override) -> Result<(), Problem> {
    let Some(slot) = index(&parsed.key) else {
        return match GROUPS.contains(&parsed.key.as_str()) {
            true => whole_group(slots, parsed),
            false => Err(unknown_key(parsed.key, parsed.key_origin)),
        };
    };
    let value = single(&parsed)?;
    match (parsed.operation, value) {
        (Operation::Delete, value) => return delete(slots, slot, &parsed, value),
        (Operation::Add, _) if slots.set[slot].is_some() => {
            let what = format!("+ adds a key, but it is set already; write {0}=... or ++{0}=...", parsed.key);
            return Err(conflict(&parsed, what));
        }
        (_, value) => slots.set[slot] = value,
    }
    Ok(())
}

/// `~group` takes a whole group back to its defaults; nothing else can be done with a group.
fn whole_group(slots: &mut Slots, parsed: Override) -> Result<(), Problem> {
    if parsed.operation != Operation::Delete || !parsed.values.is_empty() {
        let what = "a group cannot be set as a whole; set its keys one by one (group.key=value)";
        let kind = ProblemKind::Unsupported(what.into());
        return Err(Problem { origin: parsed.key_origin, key: Some(parsed.key), kind });
    }
    for (slot, _) in KEYS.iter().enumerate().filter(|(_, key)| key.group() == parsed.key) {
        slots.take(slot, &parsed.key_origin);
    }
    Ok(())
}

/// The value of an override that is not a sweep.
fn single(parsed: &Override) -> Result<Option<Node>, Problem> {
    match parsed.values.as_slice() {
        [] => Ok(None),
        [(_, node)] => Ok(Some(node.clone())),
        several => {
            // As it was typed, blanks behind commas included.
            let typed = match &parsed.key_origin {
                Origin::Override { text, .. } => text.split_once('=').map_or("", |(_, value)| value.trim()),
                _ => "",
            };
            let what = format!(
                "{} values with commas between are a sweep: add --multirun (-m), \
                 or quote the text, as a shell needs it: {}",
                several.len(),
                argument(&parsed.key, typed)
            );
            Err(conflict(parsed, what))
        }
    }
}

fn delete(slots: &mut Slots, slot: usize, parsed: &Override, value: Option<Node>) -> Result<(), Problem> {
    let Some(set) = &slots.set[slot] else {
        let what = "~ takes back what the file sets, but nothing sets this key";
        return Err(conflict(parsed, what.into()));
    };
    if let Some(value) = value
        && !typed::same(&KEYS[slot], &value.data, &set.data)
    {
        let what = format!("~ with a value takes back that value only, but here {}", set.data.describe());
        return Err(conflict(parsed, what + " is set"));
    }
    slots.take(slot, &parsed.key_origin);
    Ok(())
}

fn conflict(parsed: &Override, what: String) -> Problem {
    Problem {
        origin: parsed.key_origin.clone(),
        key: Some(parsed.key.clone()),
        kind: ProblemKind::Conflict(what),
    }
}
