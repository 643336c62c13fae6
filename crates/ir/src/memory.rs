//! What programs take of a device's memory, and what there is: so that what does not fit is known from plans alone,
//! before anything is allocated.

/// Memory of a device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Free, for whoever asks first.
    pub free: usize,
    /// All of it.
    pub total: usize,
}

/// Device memory of a plan beside its state, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Scratch memory, which programs share: the largest counts.
    pub arena: usize,
    /// Workspaces of kernels, which programs share: the largest counts.
    pub work: usize,
    /// The program's own: its inputs, copies of its results.
    pub own: usize,
}

impl Footprint {
    /// That of both programs loaded.
    #[must_use]
    pub fn beside(self, other: Self) -> Self {
        Self {
            arena: self.arena.max(other.arena),
            work: self.work.max(other.work),
            own: self.own + other.own,
        }
    }

    /// Bytes in all.
    pub fn bytes(self) -> usize {
        self.arena + self.work + self.own
    }
}

#[cfg(test)]
mod tests {
    use super::Footprint;

    #[test]
    fn programs_share_all_but_their_own() {
        let [a, b] = [[10, 2, 3], [4, 5, 6]].map(|[arena, work, own]| Footprint { arena, work, own });
        assert_eq!(a.beside(b), Footprint { arena: 10, work: 5, own: 9 });
        assert_eq!((a.beside(b).bytes(), a.beside(b)), (24, b.beside(a)));
    }
}
