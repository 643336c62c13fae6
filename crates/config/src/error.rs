//! What can be wrong with a configuration. Loading collects every [`Problem`] it finds, so that one look at
//! the message is enough to mend a file. A problem is one line: place, key, what, what to do.

use std::fmt;

use thiserror::Error;

use crate::node::{Origin, printable, shorten};

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it was written; [`Origin::Default`] if nowhere in particular.
    pub origin: Origin,
    /// Path of the key it is about, if it is about one.
    pub key: Option<String>,
    /// What is wrong.
    pub kind: ProblemKind,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.origin != Origin::Default {
            write!(f, "{}: ", self.origin)?;
        }
        if let Some(key) = &self.key {
            write!(f, "{}: ", printable(&shorten(key)))?;
        }
        write!(f, "{}", self.kind)
    }
}

/// The kinds of problems. The text of each says what was found and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProblemKind {
    /// No such key. `hint` is empty or starts with `; `.
    #[error("unknown key{hint}")]
    UnknownKey {
        /// The nearest key, or where to look.
        hint: String,
    },
    /// A value of another type.
    #[error("expected {expected}, found {found}")]
    WrongType {
        /// The declared type in words.
        expected: String,
        /// What stands there, with a remedy where one is known.
        found: String,
    },
    /// A value of the right type outside its range or its choices.
    #[error("must be {allowed}, found {found}")]
    OutOfRange {
        /// The range or the choices in words.
        allowed: String,
        /// What stands there.
        found: String,
    },
    /// The same key twice in one file.
    #[error("set twice; first at line {line}, column {column}")]
    Duplicate {
        /// Line of the first.
        line: usize,
        /// Column of the first.
        column: usize,
    },
    /// Two values that do not go together; both stand in the text.
    #[error("{0}")]
    Conflict(String),
    /// The value asks for something that this version lacks.
    #[error("{value} is not there yet; {remedy}")]
    NotYet {
        /// The value.
        value: String,
        /// Which values are.
        remedy: String,
    },
    /// Part of the grammar that is left out on purpose.
    #[error("{0}")]
    Unsupported(String),
    /// Not YAML, or not a `key=value`.
    #[error("{0}")]
    Syntax(String),
    /// `${...}` that leads nowhere, to itself, or to something that does not fit.
    #[error("{0}")]
    Interpolation(String),
    /// The file is missing, too large, or not text.
    #[error("{0}")]
    Unreadable(String),
}

/// Every problem that was found, in the order of the file and then of the overrides. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct ConfigErrors(pub Vec<Problem>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [one] => write!(f, "{one}"),
            many => {
                write!(f, "the configuration has {} problems:", many.len())?;
                many.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
            }
        }
    }
}

impl From<Problem> for ConfigErrors {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}
