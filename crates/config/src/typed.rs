//! A value against its key's declared type and range. The text of a plain scalar is read as the type says:
//! `1e-3` is a number, `12` may be the name of a folder, `yes` is never a boolean.

use serde_json::Value;

use crate::error::ProblemKind;
use crate::keys::{Interval, Key, Kind};
use crate::node::{Data, boolean, is_null, shorten};
use crate::overrides::argument;
use crate::suggest;

/// Longest text value, in characters.
const MAX_TEXT: usize = 4096;

/// The value as JSON if it fits the key.
pub(crate) fn check(key: &Key, data: &Data) -> Result<Value, ProblemKind> {
    if data.is_null() {
        return if key.nullable { Ok(Value::Null) } else { Err(wrong(key, data)) };
    }
    let Data::Scalar { text, quoted } = data else {
        return Err(wrong(key, data));
    };
    match key.kind {
        Kind::Text | Kind::AnyText => check_text(key, text, *quoted, data),
        Kind::Choice(words) => choice(words, text, data),
        Kind::LatestOrEpoch if text == "latest" => Ok(text.clone().into()),
        Kind::Switch | Kind::AutoOrInt { .. } if text == "auto" => Ok(text.clone().into()),
        _ if *quoted => Err(wrong(key, data)),
        Kind::Bool | Kind::Switch => boolean(text).map(Value::Bool).ok_or_else(|| wrong(key, data)),
        Kind::Int { min, max } => integer(key, text, min, max, data),
        Kind::AutoOrInt { max } => integer(key, text, 0, max, data),
        Kind::LatestOrEpoch => integer(key, text, 0, u64::MAX, data),
        Kind::Float(interval) => float(key, text, interval, data),
    }
}

/// Whether two values mean the same to `key`.
pub(crate) fn same(key: &Key, a: &Data, b: &Data) -> bool {
    matches!((check(key, a), check(key, b)), (Ok(a), Ok(b)) if a == b)
}

fn check_text(key: &Key, text: &str, quoted: bool, data: &Data) -> Result<Value, ProblemKind> {
    let allowed = if !quoted && boolean(text).is_some() {
        return Err(wrong(key, data));
    } else if text.is_empty() {
        "not empty"
    } else if key.kind == Kind::Text && text.chars().any(char::is_control) {
        "without control characters such as line breaks"
    } else if text.chars().count() > MAX_TEXT {
        "at most 4096 characters long"
    } else {
        return Ok(text.into());
    };
    Err(ProblemKind::OutOfRange { allowed: allowed.into(), found: data.describe() })
}

fn choice(words: &[&'static str], text: &str, data: &Data) -> Result<Value, ProblemKind> {
    if words.contains(&text) {
        return Ok(text.into());
    }
    let mut found = data.describe();
    // What some call by another word.
    let near = if text == "gpu" {
        words.iter().find(|w| **w == "cuda").copied()
    } else {
        suggest::word(text, words)
    };
    if let Some(near) = near {
        found += &format!("; did you mean {near}?");
    }
    Err(ProblemKind::OutOfRange { allowed: list(words, "or"), found })
}

fn integer(key: &Key, text: &str, min: u64, max: u64, data: &Data) -> Result<Value, ProblemKind> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let grouped = digits.split('_').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    if !grouped {
        return Err(wrong(key, data));
    }
    // Too many digits for an i128 is out of range as well.
    match text.replace('_', "").parse::<i128>() {
        Ok(value) if (i128::from(min)..=i128::from(max)).contains(&value) => {
            Ok(u64::try_from(value).map_or(Value::Null, Value::from))
        }
        _ => Err(ProblemKind::OutOfRange { allowed: allowed(key.kind), found: shorten(text) }),
    }
}

fn float(key: &Key, text: &str, interval: Interval, data: &Data) -> Result<Value, ProblemKind> {
    // YAML writes infinity as `.inf`; Rust reads `inf`. Both end as "not finite".
    let plain = text.replace(".inf", "inf").replace(".nan", "nan").replace('_', "");
    let value: f64 = plain.parse().map_err(|_| wrong(key, data))?;
    if value.is_finite() && inside(interval, value) {
        // Minus zero would print as such; it is zero.
        return Ok((value + 0.0).into());
    }
    let found = shorten(text) + in_32_bits(interval, value);
    Err(ProblemKind::OutOfRange { allowed: allowed(key.kind), found })
}

/// What becomes of a number that was in its range until it was rounded.
fn in_32_bits(interval: Interval, x: f64) -> &'static str {
    match x as f32 {
        _ if interval != Interval::Positive || !x.is_finite() || x <= 0.0 => "",
        0.0 => ", which is 0 when rounded to 32 bits: make it larger",
        _ => ", which is infinite when rounded to 32 bits: make it smaller",
    }
}

fn inside(interval: Interval, x: f64) -> bool {
    match interval {
        // Programs compute in 32 bits: what is 0 or infinite there is no such number.
        Interval::Positive => x as f32 > 0.0 && (x as f32).is_finite(),
        Interval::NotNegative => x >= 0.0,
        Interval::ZeroToBelowOne => (0.0..1.0).contains(&x),
        Interval::AboveZeroToOne => x > 0.0 && x <= 1.0,
        Interval::ZeroToOne => (0.0..=1.0).contains(&x),
    }
}

fn wrong(key: &Key, data: &Data) -> ProblemKind {
    let mut found = data.describe();
    match (key.kind, data) {
        (Kind::Bool | Kind::Switch, Data::Scalar { text, .. }) => {
            let as_boolean = match text.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" | "y" | "1" => Some("true"),
                "false" | "no" | "off" | "n" | "0" => Some("false"),
                _ => None,
            };
            if let Some(word) = as_boolean {
                found += &format!("; write {word}");
            }
        }
        (Kind::Text | Kind::AnyText, Data::Scalar { text, .. }) if !data.is_null() => {
            found += &format!("; put it in quotes, on the command line as {}", argument(key.path, text));
        }
        (_, Data::Scalar { text, quoted: true }) if text.parse::<f64>().is_ok() => {
            found += "; take the quotes away";
        }
        _ => {}
    }
    ProblemKind::WrongType { expected: expected(key), found }
}

/// The declared type in words: `an integer`, `text or null`.
pub(crate) fn expected(key: &Key) -> String {
    let mut words = match key.kind {
        Kind::Bool => "true or false".into(),
        Kind::Switch => "true, false or auto".into(),
        Kind::Int { .. } => "an integer".into(),
        Kind::AutoOrInt { .. } => "an integer or auto".into(),
        Kind::Float(_) => "a number".into(),
        Kind::Text | Kind::AnyText => "text".into(),
        Kind::Choice(words) => list(words, "or"),
        Kind::LatestOrEpoch => "latest or an epoch number".to_owned(),
    };
    if key.nullable {
        words += " or null";
    }
    words
}

/// The range in words: `between 1 and 1024`, `above 0`.
pub(crate) fn allowed(kind: Kind) -> String {
    match kind {
        Kind::Int { min, max } => format!("between {min} and {max}"),
        Kind::AutoOrInt { max } => format!("between 0 and {max}, or auto"),
        Kind::LatestOrEpoch => "latest or an epoch number from 0".into(),
        Kind::Choice(words) => list(words, "or"),
        Kind::Float(interval) => match interval {
            Interval::Positive => "finite and above 0",
            Interval::NotNegative => "finite and not below 0",
            Interval::ZeroToBelowOne => "at least 0 and below 1",
            Interval::AboveZeroToOne => "above 0 and at most 1",
            Interval::ZeroToOne => "between 0 and 1",
        }
        .into(),
        Kind::Bool | Kind::Switch | Kind::Text | Kind::AnyText => String::new(),
    }
}

/// `a, b or c`, with `or` for `link`.
pub(crate) fn list(words: &[&str], link: &str) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [head @ .., last] => format!("{} {link} {last}", head.join(", ")),
    }
}

/// A checked value in YAML: plain where it reads back as the same, else in double quotes.
pub(crate) fn to_yaml(value: &Value) -> String {
    match value {
        Value::String(text) => text_to_yaml(text),
        Value::Number(number) => match number.as_u64() {
            Some(whole) => whole.to_string(),
            None => format!("{:?}", number.as_f64().unwrap_or_default()),
        },
        other => other.to_string(),
    }
}

fn text_to_yaml(text: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let letter = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '/');
    let word = letter && text.chars().all(safe);
    if word && !is_null(text) && boolean(text).is_none() && text.parse::<f64>().is_err() {
        return text.to_owned();
    }
    let mut quoted = String::from('"');
    for c in crate::interpolate::escape(text).chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c == ' ' || c.is_ascii_graphic() || c.is_alphanumeric() => quoted.push(c),
            c => quoted += &format!("\\U{:08X}", u32::from(c)),
        }
    }
    quoted + "\""
}
