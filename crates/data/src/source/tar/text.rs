//! The captions of a sample, out of its `.txt`, `.caption` or `.json`.

use serde_json::{Map, Value};

use crate::source::caption::BAD_ENCODING;
use crate::source::table::Wish;
use crate::text::printable;

/// A caption's file with more bytes is none.
pub(super) const MAX_BYTES: u64 = 1 << 20;

/// The captions of a sample, or the reason for having none and what is wrong.
pub(super) type Found = Result<Vec<String>, (&'static str, String)>;

/// What the bytes of a file of text say.
pub(super) fn plain(bytes: &[u8]) -> Found {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(vec![text.to_owned()]),
        Err(e) => {
            Err((BAD_ENCODING, format!("the caption is not UTF-8 from its byte {} on", e.valid_up_to() + 1)))
        }
    }
}

/// What the caption's field of an object in JSON says: a text, or a list of them.
pub(super) fn json(bytes: &[u8], given: Option<&str>) -> Found {
    let object: Map<String, Value> = serde_json::from_slice(bytes)
        .map_err(|e| ("bad_json", format!("no object in JSON ({e}): `{}`", printable(bytes, 60))))?;
    let keys: Vec<String> = object.keys().cloned().collect();
    let field = Wish::caption(given).find(&keys).map_err(|found| ("empty_caption", found))?;
    let name = &keys[field];
    match &object[name] {
        Value::String(text) => Ok(vec![text.clone()]),
        Value::Null => Ok(Vec::new()),
        Value::Array(all) if all.iter().all(Value::is_string) => {
            Ok(all.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        }
        _ => Err(("empty_caption", format!("`{name}` of the .json holds no text"))),
    }
}
