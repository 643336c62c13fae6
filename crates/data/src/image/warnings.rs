//! What a picture that was accepted still gives reason to report.

/// Remarks about a file whose picture is used. Several can hold at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Warnings {
    /// Every pixel is there, only the mark that ends the file is missing.
    pub no_end_marker: bool,
    /// The file holds more than one frame; the first was taken.
    pub animated: bool,
    /// Parts are missing that the format goes on without: the scans of a progressive JPEG file that bring its finest detail,
    /// or data between two restart markers. What other programs show of it was taken.
    pub incomplete: bool,
}

impl Warnings {
    /// The stable words of the remarks that hold, in a fixed order.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        let remarks = [
            (self.no_end_marker, "no_end_marker"),
            (self.animated, "animated"),
            (self.incomplete, "incomplete"),
        ];
        remarks.into_iter().filter_map(|(holds, word)| holds.then_some(word))
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
        let both = Warnings { no_end_marker: true, animated: true, incomplete: false };
        assert!(!both.is_empty());
        assert_eq!(both.words().collect::<Vec<_>>(), ["no_end_marker", "animated"]);
        let one = Warnings { incomplete: true, ..Warnings::default() };
        assert_eq!(one.words().collect::<Vec<_>>(), ["incomplete"]);
    }
}
