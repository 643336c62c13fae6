//! Inputs as they cross the bus: indices in one byte or two where the largest of a batch fits, and on the device in four again.
//! So the widths are a batch's own; the plan knows nothing of them, and the program reads what the host gave.

use crate::driver::PinnedBuffer;
use crate::store::CudaStore;
use ocelli_ir::DType;
use ocelli_ir::executor::{HostBytes, Input, Store};
use std::any::Any;

/// The kernel that brings inputs to where programs read them.
pub const SOURCE: &str = include_str!("kernels/unpack.cu");
/// Its name.
pub const ENTRY: &str = "unpack";
/// The name of the one beside it, which brings rows of a store.
pub const GATHER: &str = "gather";
/// The shortest rows of a store: their numbers must take no more room than they do.
pub const SHORTEST: usize = 4;
/// Inputs that it takes at once.
pub const PARTS: usize = 6;

/// Where an input goes, and the type of its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goal {
    /// Bytes from the start of the program's memory, a multiple of [`PIECE`].
    pub start: usize,
    /// Indices may be narrowed.
    pub dtype: DType,
}

/// An input on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Bytes from the start of what crosses the bus, a multiple of [`PIECE`].
    pub from: usize,
    /// Bytes from the start of the program's memory.
    pub to: usize,
    /// Elements of `width` bytes.
    pub count: usize,
    /// 1 or 2 for indices that become u32; [`PIECE`] for pieces of anything else.
    pub width: usize,
}

/// Bytes that are copied at once. What is behind the last of an input's bytes up to a multiple of it is nobody's, in its memory.
pub const PIECE: usize = 16;

/// The memory of an input, if the device can copy it by itself.
fn apart(given: Input<'_>) -> Option<&HostBytes> {
    match given {
        Input::Shared(memory) if memory.is::<PinnedBuffer>() => Some(memory),
        _ => None,
    }
}

/// The store of an input, if it is of a GPU.
pub fn store_of(given: Input<'_>) -> Option<(&CudaStore, &[u32])> {
    let Input::Rows { store, rows } = given else { return None };
    let store: &dyn Any = store;
    Some((store.downcast_ref()?, rows))
}

/// Rows of a store on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The device address of the store.
    store: u64,
    /// Bytes from the start of what crosses the bus to their numbers.
    from: usize,
    /// Bytes from the start of the program's memory.
    to: usize,
    /// How many.
    rows: usize,
    /// Pieces of a row, of `width` bytes.
    count: usize,
    width: usize,
}

impl Rows {
    fn new(store: &CudaStore, rows: usize, from: usize, to: usize) -> Self {
        let bytes = store.row_bytes();
        let width = [PIECE, 4].into_iter().find(|width| bytes.is_multiple_of(*width)).unwrap_or(1);
        Self { store: store.address(), from, to, rows, count: bytes / width, width }
    }

    /// The arguments of a launch that takes their numbers from the address `from` and writes them to the address `to`; and its grid,
    /// with `threads` a block.
    pub fn launch(&self, from: u64, to: u64, threads: usize) -> ([u64; 6], [u32; 3]) {
        let (from, to) = (from + self.from as u64, to + self.to as u64);
        let words = [self.store, from, to, self.rows as u64, self.count as u64, self.width as u64];
        let across = self.count.div_ceil(threads).clamp(1, 64) as u32;
        (words, [across, self.rows.clamp(1, 1024) as u32, 1])
    }
}

/// What crosses the bus for a batch.
#[derive(Debug, PartialEq, Eq)]
pub struct Packed {
    /// Bytes that were written to the host memory.
    pub written: usize,
    /// Bytes in all.
    pub bytes: usize,
}

/// Writes inputs to `host` one behind the other, each as narrow as it can be, and lists them in `parts`; of rows of a store, their
/// numbers, and lists those in `gathered`. Those that the device
/// copies by itself are listed last, behind all that is written. All take no more than the inputs with each rounded up to a
/// multiple of [`PIECE`].
///
/// # Panics
/// If they do not fit.
pub fn pack(
    host: &mut [u8],
    goals: &[Goal],
    given: &[Input<'_>],
    parts: &mut Vec<Part>,
    gathered: &mut Vec<Rows>,
) -> Packed {
    parts.clear();
    gathered.clear();
    let mut at = 0;
    for (goal, given) in goals.iter().zip(given).filter(|(_, given)| apart(**given).is_none()) {
        if let Some((store, rows)) = store_of(*given) {
            let size = rows.len() * 4;
            let numbers = host[at..][..size].chunks_exact_mut(4).zip(rows);
            numbers.for_each(|(to, row)| to.copy_from_slice(&row.to_le_bytes()));
            gathered.push(Rows::new(store, rows.len(), at, goal.start));
            at += size.next_multiple_of(PIECE);
            continue;
        }
        let bytes = given.bytes().unwrap_or_default();
        let words = || bytes.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]));
        let largest = if goal.dtype == DType::U32 { words().fold(0, u32::max) } else { u32::MAX };
        let (width, size) = match largest {
            0..=0xff => (1, bytes.len() / 4),
            0x100..=0xffff => (2, bytes.len() / 2),
            _ => (PIECE, bytes.len()),
        };
        let to = &mut host[at..][..size];
        match width {
            1 => to.iter_mut().zip(words()).for_each(|(to, x)| *to = x as u8),
            2 => to
                .chunks_exact_mut(2)
                .zip(words())
                .for_each(|(to, x)| to.copy_from_slice(&(x as u16).to_le_bytes())),
            _ => to.copy_from_slice(bytes),
        }
        parts.push(Part { from: at, to: goal.start, count: size.div_ceil(width), width });
        at += size.next_multiple_of(PIECE);
    }
    let written = at;
    for (goal, memory) in goals.iter().zip(given).filter_map(|(goal, given)| Some((goal, apart(*given)?))) {
        parts.push(Part { from: at, to: goal.start, count: memory.len().div_ceil(PIECE), width: PIECE });
        at += memory.len().next_multiple_of(PIECE);
    }
    Packed { written, bytes: at }
}

/// What the device copies by itself, in the order of [`pack`], and where each starts in what crosses the bus.
pub fn shared<'a>(packed: &Packed, given: &'a [Input<'a>]) -> impl Iterator<Item = (usize, &'a HostBytes)> {
    let mut at = packed.written;
    given.iter().filter_map(|given| apart(*given)).map(move |memory| {
        let from = at;
        at += memory.len().next_multiple_of(PIECE);
        (from, memory)
    })
}

/// The arguments of launches that take `parts` from the address `from` to the address `to`, and the largest number of elements of each.
pub fn launches(parts: &[Part], from: u64, to: u64) -> impl Iterator<Item = (Vec<u64>, usize)> {
    parts.chunks(PARTS).map(move |parts| {
        let words = |p: &Part| [from + p.from as u64, to + p.to as u64, p.count as u64, p.width as u64];
        let mut all: Vec<u64> = parts.iter().flat_map(words).collect();
        all.resize(4 * PARTS, 0);
        (all, parts.iter().map(|p| p.count).max().unwrap_or(0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel does.
    fn unpacked(host: &[u8], parts: &[Part], memory: &mut [u8]) {
        for p in parts {
            for i in 0..p.count {
                let from = &host[p.from + i * p.width..][..p.width];
                if p.width == PIECE {
                    memory[p.to + i * PIECE..][..PIECE].copy_from_slice(from);
                } else {
                    let mut word = [0; 4];
                    word[..p.width].copy_from_slice(from);
                    memory[p.to + i * 4..][..4].copy_from_slice(&word);
                }
            }
        }
    }

    #[test]
    fn every_input_arrives_as_it_was_given() {
        let u32s = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
        let given = [
            (DType::U8, (0..37).map(|i| i * 7).collect::<Vec<u8>>()),
            (DType::U32, u32s(&[0, 255, 3, 7, 9])),
            (DType::U32, u32s(&[0, 256, 65_535])),
            (DType::U32, u32s(&[65_536, 1, u32::MAX])),
            (DType::F32, u32s(&[0, 1, 2])),
            (DType::U32, vec![]),
            (DType::U32, u32s(&[5])),
        ];
        let mut end = 0;
        let mut goals = Vec::new();
        for (dtype, bytes) in &given {
            goals.push(Goal { start: end, dtype: *dtype });
            end = (end + bytes.len()).next_multiple_of(256);
        }
        let shared = HostBytes::from(given[0].1.clone());
        let mut bytes: Vec<Input<'_>> = given.iter().map(|(_, bytes)| bytes.into()).collect();
        // Shared, but not page-locked: the device cannot copy it by itself.
        bytes[0] = Input::Shared(&shared);
        let (mut host, mut parts) = (vec![0xaa; end], Vec::new());
        // The second time over what the first one left.
        for _ in 0..2 {
            let packed = pack(&mut host, &goals, &bytes, &mut parts, &mut vec![]);
            assert_eq!(packed, Packed { written: 128, bytes: 128 });
            assert_eq!(super::shared(&packed, &bytes).count(), 0);
            let widths: Vec<usize> = parts.iter().map(|p| p.width).collect();
            assert_eq!(widths, [16, 1, 2, 16, 16, 1, 1]);
            assert!(parts.iter().all(|p| p.from % PIECE == 0 && p.to % PIECE == 0));
            let mut memory = vec![0x55; end];
            unpacked(&host, &parts, &mut memory);
            for (goal, given) in goals.iter().zip(&bytes) {
                assert_eq!(&memory[goal.start..][..given.size()], given.bytes().unwrap());
            }
        }
        let all: Vec<_> = launches(&parts, 1000, 2000).collect();
        assert_eq!(all.len(), 2);
        assert!(all.iter().all(|(words, _)| words.len() == 4 * PARTS));
        assert_eq!((&all[0].0[..4], all[0].1), (&[1000, 2000, 3, 16][..], 5));
        assert_eq!(all[1].0[4..], [0; 20]);
    }

    #[test]
    fn the_kernel_takes_as_many_inputs_as_it_is_given() {
        assert_eq!(SOURCE.matches("    take(from").count(), PARTS);
        assert_eq!(SOURCE.matches("u64 from").count() - 1, PARTS);
    }
}
