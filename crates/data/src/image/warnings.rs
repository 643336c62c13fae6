//! What a picture that was accepted still gives reason to report.

/// Remarks about a file that cost the picture no pixel. Several can hold at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Warnings {
    /// Every pixel is there, only the mark that ends the file is missing.
    pub no_end_marker: bool,
    /// The file holds more than one frame; the first was taken.
    pub animated: bool,
}

impl Warnings {
    /// The stable words of the remarks that hold, in a fixed order.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        [(self.no_end_marker, "no_end_marker"), (self.animated, "animated")]
            .into_iter()
            .filter_map(|(holds, word)| holds.then_some(word))
    }

    /// Whether there is nothing to report.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_that_hold() {
        assert!(Warnings::default().is_empty());
        assert_eq!(Warnings::default().words().count(), 0);
        let both = Warnings { no_end_marker: true, animated: true };
        assert!(!both.is_empty());
        assert_eq!(both.words().collect::<Vec<_>>(), ["no_end_marker", "animated"]);
        let one = Warnings { animated: true, ..Warnings::default() };
        assert_eq!(one.words().collect::<Vec<_>>(), ["animated"]);
    }
}
