//! `${group.key}`: a value that repeats another key's. Alone it takes over the value and its type; within text
//! it is put in as text. `\${` stands for `${` itself. Resolvers (`${oc.env:HOME}`) are refused by name.
//!
//! Each key is resolved once and kept, so chains cost what they are long; a circle is a problem.

use crate::error::{Problem, ProblemKind};
use crate::keys::{KEYS, index};
use crate::node::{Data, Node, shorten};
use crate::suggest;

/// Longest text that interpolation may build, in bytes.
const MAX_TEXT: usize = 65_536;

enum State {
    Untouched,
    Busy,
    /// `None`: a problem was reported.
    Done(Option<Data>),
}

/// A piece of text.
#[derive(Debug, PartialEq)]
enum Piece<'a> {
    Text(String),
    Reference(&'a str),
}

/// The final data of each key, by index into [`KEYS`]; `None` where a problem was found.
pub(crate) fn resolve(nodes: &[Node], problems: &mut Vec<Problem>) -> Vec<Option<Data>> {
    let states = nodes.iter().map(|_| State::Untouched).collect();
    let mut resolver = Resolver { nodes, states, problems };
    (0..nodes.len()).map(|slot| resolver.key(slot).ok().flatten()).collect()
}

struct Resolver<'a> {
    nodes: &'a [Node],
    states: Vec<State>,
    problems: &'a mut Vec<Problem>,
}

impl Resolver<'_> {
    /// The data of a key; `Ok(None)` if it has a problem that is reported, an error if it leads to itself.
    fn key(&mut self, slot: usize) -> Result<Option<Data>, ProblemKind> {
        match &self.states[slot] {
            State::Done(data) => return Ok(data.clone()),
            State::Busy => {
                let what = format!("${{{}}} leads back to itself", KEYS[slot].path);
                return Err(ProblemKind::Interpolation(what));
            }
            State::Untouched => self.states[slot] = State::Busy,
        }
        let nodes = self.nodes;
        let data = match self.data(&nodes[slot].data) {
            Ok(data) => data,
            Err(kind) => {
                let origin = nodes[slot].origin.clone();
                self.problems.push(Problem { origin, key: Some(KEYS[slot].path.into()), kind });
                None
            }
        };
        self.states[slot] = State::Done(data.clone());
        Ok(data)
    }

    fn data(&mut self, data: &Data) -> Result<Option<Data>, ProblemKind> {
        let Data::Scalar { text, quoted } = data else {
            // No key takes a list or a mapping: the type check names it as it stands.
            return Ok(Some(data.clone()));
        };
        if !text.contains("${") {
            return Ok(Some(data.clone()));
        }
        let pieces = pieces(text)?;
        if let [Piece::Reference(path)] = pieces.as_slice() {
            return self.reference(path);
        }
        // Only what is escaped: the text stays as it was written, plain or quoted.
        if let [Piece::Text(text)] = pieces.as_slice() {
            return Ok(Some(Data::Scalar { text: text.clone(), quoted: *quoted }));
        }
        self.joined(pieces)
    }

    fn joined(&mut self, pieces: Vec<Piece<'_>>) -> Result<Option<Data>, ProblemKind> {
        let mut whole = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => whole += &text,
                Piece::Reference(path) => match self.reference(path)? {
                    None => return Ok(None),
                    Some(Data::Scalar { text, quoted }) if quoted || !crate::node::is_null(&text) => {
                        whole += &text;
                    }
                    Some(other) => {
                        let what = format!("${{{path}}} is {}; it cannot stand in text", other.describe());
                        return Err(ProblemKind::Interpolation(what));
                    }
                },
            }
            if whole.len() > MAX_TEXT {
                return Err(ProblemKind::Interpolation("the text becomes too long".into()));
            }
        }
        Ok(Some(Data::quoted(whole)))
    }

    fn reference(&mut self, path: &str) -> Result<Option<Data>, ProblemKind> {
        let Some(slot) = index(path) else {
            let what = format!("${{{}}} is no key{}", shorten(path), suggest::hint(path));
            return Err(ProblemKind::Interpolation(what));
        };
        self.key(slot)
    }
}

/// Splits text at its references and takes away the backslashes that escape them.
fn pieces(text: &str) -> Result<Vec<Piece<'_>>, ProblemKind> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let before = rest[..at].trim_end_matches('\\');
        let slashes = at - before.len();
        plain += before;
        plain.extend(std::iter::repeat_n('\\', slashes / 2));
        if slashes % 2 == 1 {
            plain += "${";
            rest = &rest[at + 2..];
            continue;
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
        }
        let body = &rest[at + 2..];
        let Some(end) = body.find('}') else {
            let what = "an interpolation is not closed: `}` is missing (write \\${ for the characters)";
            return Err(ProblemKind::Interpolation(what.into()));
        };
        pieces.push(Piece::Reference(path(&body[..end])?));
        rest = &body[end + 1..];
    }
    plain += rest;
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    Ok(pieces)
}

/// The dotted path within `${...}`; other forms of Hydra's are refused by name.
fn path(body: &str) -> Result<&str, ProblemKind> {
    let body = body.trim();
    let what = if body.contains("${") {
        "an interpolation within an interpolation is not supported"
    } else if body.contains(':') {
        "resolvers such as ${oc.env:HOME} are not supported; only ${group.key} is"
    } else if body.starts_with('.') {
        "relative interpolations such as ${.key} are not supported; write ${group.key}"
    } else {
        return Ok(body);
    };
    Err(ProblemKind::Unsupported(what.into()))
}

/// The opposite of reading: text in which each `${` comes back as itself.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let before = rest[..at].trim_end_matches('\\');
        escaped += before;
        escaped.extend(std::iter::repeat_n('\\', 2 * (at - before.len()) + 1));
        escaped += "${";
        rest = &rest[at + 2..];
    }
    escaped + rest
}
