//! Values before they have a type, each with the place it came from. Scalars keep their text: the declared
//! type of the key decides how it is read, never a guess of the parser's.

use std::fmt;
use std::sync::Arc;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// A place in a file; line and column count from 1, the column in characters.
    File {
        /// The file, as the user named it.
        file: Arc<str>,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// An override of the command line.
    Override {
        /// Which one, from 0.
        index: usize,
        /// The whole override.
        text: Arc<str>,
        /// Column in characters, from 1.
        column: usize,
    },
}

impl Origin {
    /// Overrides after files after defaults; later ones after earlier ones.
    pub(crate) fn rank(&self) -> (usize, usize) {
        match self {
            Self::Default => (0, 0),
            Self::File { line, .. } => (1, *line),
            Self::Override { index, .. } => (2, *index),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { file, line, column } => write!(f, "{}:{line}:{column}", printable(file)),
            Self::Override { text, column, .. } => {
                write!(f, "override '{}', column {column}", printable(text))
            }
        }
    }
}

/// One value of a file or an override.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub data: Data,
    pub origin: Origin,
}

/// What a node holds. Maps keep double keys: whoever reads the map reports them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Data {
    /// `quoted` text is text; plain text may be null, a boolean or a number.
    Scalar {
        text: String,
        quoted: bool,
    },
    List(Vec<Node>),
    Map(Vec<(String, Origin, Node)>),
}

impl Data {
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::Scalar { text: text.into(), quoted: false }
    }

    pub(crate) fn quoted(text: impl Into<String>) -> Self {
        Self::Scalar { text: text.into(), quoted: true }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Scalar { text, quoted: false } if is_null(text))
    }

    /// The value in words, for a message: `the text "x"`, `a list`.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::List(_) => "a list".into(),
            Self::Map(_) => "a mapping".into(),
            _ if self.is_null() => "null".into(),
            Self::Scalar { text, quoted: false } if boolean(text).is_some() => {
                format!("the boolean {text}")
            }
            Self::Scalar { text, quoted: false } if text.parse::<f64>().is_ok() => {
                format!("the number {}", shorten(text))
            }
            Self::Scalar { text, .. } => format!("the text {:?}", shorten(text)),
        }
    }
}

/// YAML's plain words for null, and a plain nothing.
pub(crate) fn is_null(plain: &str) -> bool {
    plain.is_empty() || plain == "~" || plain.eq_ignore_ascii_case("null")
}

/// `true` and `false` in any case (people come from Python); never `yes`, `on` and the like.
pub(crate) fn boolean(plain: &str) -> Option<bool> {
    match plain {
        p if p.eq_ignore_ascii_case("true") => Some(true),
        p if p.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// At most 60 characters of `text`: messages stay one line however large the input is.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// `text` on one line, without control characters that could steer a terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let escape = c.is_control().then(|| c.escape_default());
            let plain = escape.is_none().then_some(c);
            escape.into_iter().flatten().chain(plain)
        })
        .collect()
}
