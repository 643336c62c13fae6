//! The shapes of a file's tensors, from which a model reads off its sizes, and sizes that no model can have.

use std::collections::BTreeMap;
use std::fmt;

/// Shapes by name, as a state or a file of weights has them. Nothing is known of their sanity.
#[derive(Clone, Debug, Default)]
pub struct Shapes<'a>(BTreeMap<&'a str, &'a [usize]>);

impl<'a> FromIterator<(&'a str, &'a [usize])> for Shapes<'a> {
    fn from_iter<T: IntoIterator<Item = (&'a str, &'a [usize])>>(shapes: T) -> Self {
        Self(shapes.into_iter().collect())
    }
}

impl Shapes<'_> {
    /// The extent of an axis of a tensor, if there is such a one.
    pub fn extent(&self, name: &str, axis: usize) -> Option<usize> {
        self.0.get(name)?.get(axis).copied()
    }

    /// How many blocks are named `prefix0.`, `prefix1.` and so on, as far as names tell.
    pub fn blocks(&self, prefix: &str) -> Option<usize> {
        let number = |name: &str| name.strip_prefix(prefix)?.split('.').next()?.parse::<usize>().ok();
        self.0.keys().filter_map(|name| number(name)?.checked_add(1)).max()
    }

    /// The side of a square picture that `patches` patches of a side fill.
    pub fn side(patches: Option<usize>, patch: Option<usize>) -> Option<usize> {
        patches?.isqrt().checked_mul(patch?)
    }
}

/// Sizes of a model that are known, by the name of the setting.
pub type Sizes = Vec<(&'static str, usize)>;

/// Leaves out the sizes that are not known.
pub(crate) fn known(sizes: impl IntoIterator<Item = (&'static str, Option<usize>)>) -> Sizes {
    sizes.into_iter().filter_map(|(name, size)| Some((name, size?))).collect()
}

/// Sizes that no model can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeError(pub String);

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SizeError {}

impl SizeError {
    /// Each must be at least 1.
    pub(crate) fn unless_positive(sizes: &[(&str, usize)]) -> Result<(), Self> {
        match sizes.iter().find(|(_, n)| *n == 0) {
            Some((name, _)) => Err(Self(format!("{name} is 0, it must be at least 1"))),
            None => Ok(()),
        }
    }

    /// The first of each pair must be a multiple of the second, which is not 0.
    pub(crate) fn unless_multiples(pairs: &[[(&str, usize); 2]]) -> Result<(), Self> {
        match pairs.iter().find(|[whole, part]| !whole.1.is_multiple_of(part.1)) {
            Some([(whole, a), (part, b)]) => {
                Err(Self(format!("{whole} {a} is not a multiple of {part} {b}")))
            }
            None => Ok(()),
        }
    }

    /// A picture and at least one token must have a place.
    pub(crate) fn unless_room(max_positions: usize) -> Result<(), Self> {
        if max_positions >= 2 {
            return Ok(());
        }
        Err(Self(format!("max_positions {max_positions} leaves no room for a token behind the picture")))
    }
}
