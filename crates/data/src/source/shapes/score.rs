//! How much of a predicted caption is right.

use super::{Object, Scene};

/// Attributes right, of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Attributes that are right.
    pub right: u32,
    /// Attributes that there are.
    pub total: u32,
}

impl Score {
    /// The share that is right, 0 to 1.
    pub fn share(&self) -> f64 {
        f64::from(self.right) / f64::from(self.total.max(1))
    }
}

impl std::ops::AddAssign for Score {
    fn add_assign(&mut self, other: Self) {
        self.right += other.right;
        self.total += other.total;
    }
}

/// Attributes of an object: place, size, colour, shape.
pub(super) const ATTRIBUTES: u32 = 4;

/// Counts the attributes of `truth` that the caption `predicted` gets right.
///
/// Objects are matched by place. A true object whose place is named gives 1 for that, and 1 each for its
/// size, colour and shape if what is said of that place agrees; one whose place is not named gives nothing.
/// `total` is 4 for each object, of the truth or of the prediction, whichever has more: objects made up cost
/// as much as objects left out.
///
/// The caption is read part by part between commas: a part that is not an object counts as one that is
/// wrong, and so does a second one in the same place. The order does not matter.
pub fn score(predicted: &str, truth: &Scene) -> Score {
    let parts: Vec<Option<Object>> = predicted.split(',').map(|part| Object::parse(part.trim())).collect();
    let said = if predicted.trim().is_empty() { 0 } else { parts.len() };
    let right = truth.objects.iter().map(|object| {
        let first = parts.iter().flatten().find(|said| said.place == object.place);
        first.map_or(0, |said| agreement(said, object))
    });
    Score { right: right.sum(), total: ATTRIBUTES * truth.objects.len().max(said) as u32 }
}

/// How many attributes of two objects agree.
pub(super) fn agreement(a: &Object, b: &Object) -> u32 {
    if a.place != b.place {
        return 0;
    }
    1 + u32::from(a.size == b.size) + u32::from(a.colour == b.colour) + u32::from(a.shape == b.shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_attributes() {
        let truth = Scene::parse("big red circle top left, small blue star bottom right").unwrap();
        for (predicted, right, total) in [
            ("big red circle top left, small blue star bottom right", 8, 8),
            ("small blue star bottom right, big red circle top left", 8, 8),
            ("big red circle top left", 4, 8),
            ("small red square top left, small blue star bottom right", 6, 8),
            ("big red circle top right, small blue star bottom right", 4, 8),
            // One object too many.
            ("big red circle top left, big pink star top right, small blue star bottom right", 8, 12),
            // The same place twice: the first counts, and the second costs.
            ("big red circle top left, big pink star top left, small blue star bottom right", 8, 12),
            // A part that is no object.
            ("big red circle top left, smal blue star bottom right", 4, 8),
            ("big red circle top left, small blue star bottom right, ", 8, 12),
            ("", 0, 8),
            ("nonsense", 0, 8),
        ] {
            assert_eq!(score(predicted, &truth), Score { right, total }, "{predicted:?}");
        }
    }
}
