//! JSON as a snapshot keeps it, to nodes: one set of checks serves files and snapshots.

use std::sync::Arc;

use serde_json::Value;

use crate::error::{Problem, ProblemKind};
use crate::node::{Data, Node, Origin};

/// Reads `text`; every node's origin is the start of `file`.
pub(crate) fn parse(file: &Arc<str>, text: &str) -> Result<Node, Problem> {
    let place = |line, column| Origin::File { file: file.clone(), line, column };
    let value: Value = serde_json::from_str(text).map_err(|e| Problem {
        origin: place(e.line().max(1), e.column().max(1)),
        key: None,
        kind: ProblemKind::Syntax(format!("not valid JSON: {e}")),
    })?;
    Ok(Node { data: at(&value, &place(1, 1)), origin: place(1, 1) })
}

/// The data of a scalar: the default of a key.
pub(crate) fn data(value: &Value) -> Data {
    at(value, &Origin::Default)
}

/// serde_json bounds the depth, so the recursion ends.
fn at(value: &Value, origin: &Origin) -> Data {
    let node = |value| Node { data: at(value, origin), origin: origin.clone() };
    match value {
        Value::String(text) => Data::quoted(text.as_str()),
        Value::Array(items) => Data::List(items.iter().map(node).collect()),
        Value::Object(entries) => {
            Data::Map(entries.iter().map(|(key, value)| (key.clone(), origin.clone(), node(value))).collect())
        }
        scalar => Data::plain(scalar.to_string()),
    }
}
