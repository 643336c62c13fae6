//! Rows that lie together on disk, as a source tells them: what is worth reading one after another.

use super::Groups;

/// The rows of a source, cut into blocks. Each block is a run of rows that is read at one go, or nearly so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// First row of each block, ascending from 0, and then the number of rows.
    starts: Vec<usize>,
}

impl Blocks {
    /// From the first rows of runs of rows: runs are joined until a block has at least `least` rows; `border` says of a
    /// run that it may not be joined to the one before. `rows` is where the last one ends.
    pub(crate) fn join(runs: impl Iterator<Item = (usize, bool)>, rows: usize, least: usize) -> Self {
        let mut starts = vec![0];
        for (start, border) in runs {
            let last = starts[starts.len() - 1];
            if start > last && start < rows && (border || start - last >= least) {
                starts.push(start);
            }
        }
        starts.push(rows);
        Self { starts }
    }

    /// The same blocks of pictures, where a row is one of a picture's captions.
    pub(crate) fn of_pictures(&self, groups: &Groups) -> Self {
        let rows = self.starts.last().copied().unwrap_or(0);
        let picture = |row: &usize| if *row < rows { groups.picture_of(*row) } else { groups.pictures() };
        let mut starts: Vec<usize> = self.starts.iter().map(picture).collect();
        starts.dedup();
        Self { starts }
    }

    /// First row of each block, ascending, and at last the number of rows.
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }
}
