//! YAML text to nodes with positions. One document, a mapping at the top, plain data: tags and aliases are
//! refused, so that a value stands where it is written and a small file cannot grow into a large one.

use std::sync::Arc;

use granit_parser::{Event, Parser, ScalarStyle, Span, options};

use crate::error::{Problem, ProblemKind};
use crate::node::{Data, Node, Origin};

/// Deepest nesting; a configuration needs 2 levels.
const MAX_DEPTH: usize = 16;

/// A collection that is still open.
enum Open {
    List(Vec<Node>, Origin),
    /// The key whose value is still to come stands last.
    Map(Vec<(String, Origin, Node)>, Option<(String, Origin)>, Origin),
}

/// Reads `text`; `file` is its name in messages. An empty document is an empty mapping.
pub(crate) fn parse(file: &Arc<str>, text: &str) -> Result<Node, Problem> {
    let limits = options! { flow_nesting_limit: MAX_DEPTH, block_nesting_limit: MAX_DEPTH };
    let mut parser = Parser::new_from_str_with_options(text, limits);
    let mut builder = Builder { file: file.clone(), open: Vec::new(), root: None, documents: 0 };
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|e| {
            let origin = builder.place(e.marker().line(), e.marker().col());
            syntax(origin, format!("not valid YAML: {}", e.info()))
        })?;
        builder.event(event, span)?;
    }
    let empty = Node { data: Data::Map(Vec::new()), origin: builder.place(1, 0) };
    Ok(builder.root.filter(|root| !root.data.is_null()).unwrap_or(empty))
}

/// Turns events into a tree without recursion.
struct Builder {
    file: Arc<str>,
    open: Vec<Open>,
    root: Option<Node>,
    documents: usize,
}

impl Builder {
    /// `column` counts from 0, as the parser does.
    fn place(&self, line: usize, column: usize) -> Origin {
        Origin::File { file: self.file.clone(), line: line.max(1), column: column + 1 }
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Problem> {
        let origin = self.place(span.start.line(), span.start.col());
        if let Some(tag) = event.tag() {
            let what = format!("the tag {} is not supported; write the value alone", tag.original());
            let origin = span.tag_start().map_or(origin, |tag| self.place(tag.line(), tag.col()));
            return Err(unsupported(origin, what));
        }
        match event {
            Event::DocumentStart(..) => self.document(origin),
            Event::Alias(_) => {
                let what = "aliases (*name) are not supported; write ${group.key}";
                Err(unsupported(origin, what.into()))
            }
            Event::Scalar(text, style, ..) => {
                let quoted = style != ScalarStyle::Plain;
                self.finished(Node { data: Data::Scalar { text: text.into_owned(), quoted }, origin })
            }
            Event::SequenceStart(..) => {
                self.open.push(Open::List(Vec::new(), origin));
                Ok(())
            }
            Event::MappingStart(..) => {
                self.open.push(Open::Map(Vec::new(), None, origin));
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            _ => Ok(()),
        }
    }

    fn document(&mut self, origin: Origin) -> Result<(), Problem> {
        self.documents += 1;
        match self.documents {
            1 => Ok(()),
            _ => Err(unsupported(origin, "a second document (---) in one file is not supported".into())),
        }
    }

    fn close(&mut self) -> Result<(), Problem> {
        match self.open.pop() {
            Some(Open::List(items, origin)) => self.finished(Node { data: Data::List(items), origin }),
            Some(Open::Map(entries, _, origin)) => self.finished(Node { data: Data::Map(entries), origin }),
            None => Ok(()),
        }
    }

    /// Hands a whole node to the collection around it.
    fn finished(&mut self, node: Node) -> Result<(), Problem> {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List(items, _)) => items.push(node),
            Some(Open::Map(entries, pending, _)) => match (pending.take(), node.data) {
                (Some((key, origin)), data) => {
                    entries.push((key, origin, Node { data, origin: node.origin }));
                }
                (None, Data::Scalar { text, .. }) => *pending = Some((text, node.origin)),
                (None, _) => {
                    let what = "a key must be plain text, not a list or a mapping";
                    return Err(syntax(node.origin, what.into()));
                }
            },
        }
        Ok(())
    }
}

fn syntax(origin: Origin, what: String) -> Problem {
    Problem { origin, key: None, kind: ProblemKind::Syntax(what) }
}

fn unsupported(origin: Origin, what: String) -> Problem {
    Problem { origin, key: None, kind: ProblemKind::Unsupported(what) }
}
