//! The one place with `unsafe` besides [`crate::buffer`]: turns the operands of a launch into slices and views.
//!
//! Soundness rests on what [`crate::check`] established when the plan was loaded, for every launch:
//! - each operand lies inside its place, at an address that is a multiple of its element's size;
//! - an output touches no element twice, shares none with another output, and its range of addresses meets no
//!   input's, except an in-place pair, whose input is marked absent and never handed out;
//! - program inputs are never written.
//!
//! Launches run one after the other, so operands of different launches never live at the same time.

mod dst;
mod gemm;
mod grid;
mod wide;

pub use dst::{Dst, Src};
pub use gemm::{Mat, gemm};
pub use grid::{Cut, par_parts, par_tiles};
pub use wide::{Wide, narrow, widen};

use crate::buffer::Buffer;
use crate::layout::Layout;
use bytemuck::Pod;
use ocelli_ir::DType;
use ocelli_ir::executor::{Element, Input};
use std::marker::PhantomData;

/// An element type that kernels work on.
pub trait Elem: Element + Pod + std::fmt::Debug {}
impl<T: Element + Pod + std::fmt::Debug> Elem for T {}

/// Which buffer an operand lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Scratch memory.
    Arena,
    /// A state slot.
    Slot(usize),
    /// A program input.
    Input(usize),
    /// Where 16-bit operands of the launch that runs lie in 32 bits.
    Wide,
}

/// An operand of a loaded launch.
#[derive(Clone, Copy, Debug)]
pub struct Loc {
    /// The buffer.
    pub room: Room,
    /// Byte of the first element.
    pub byte: usize,
    /// Type of an element.
    pub dtype: DType,
    /// Where the elements lie, from the first on.
    pub layout: Layout,
    /// The input of an in-place pair: reachable through its output alone.
    pub absent: bool,
}

/// The memory of one run. Borrowed mutably by whoever runs, so no one else touches any of it.
#[derive(Debug)]
pub struct Bases<'a> {
    arena: &'a Buffer,
    slots: &'a [Buffer],
    inputs: &'a [Input<'a>],
    staged: &'a [Option<Buffer>],
    wide: &'a Buffer,
    exclusive: PhantomData<&'a mut [u8]>,
}

impl<'a> Bases<'a> {
    /// Takes exclusive hold of the arena, the state and the memory for 16-bit operands in 32 bits; `staged` holds
    /// copies of the inputs that are not aligned.
    pub fn new(
        arena: &'a mut Buffer,
        slots: &'a mut [Buffer],
        inputs: &'a [Input<'a>],
        staged: &'a [Option<Buffer>],
        wide: &'a mut Buffer,
    ) -> Self {
        Self { arena, slots, inputs, staged, wide, exclusive: PhantomData }
    }

    /// The first element of an operand, checked to lie in its buffer with all the others. Never to be written
    /// through if the room is an input.
    fn start<T: Elem>(&self, loc: &Loc) -> *mut T {
        assert_eq!(T::DTYPE, loc.dtype, "a kernel asked for an operand in another dtype than it has");
        let (base, len) = match loc.room {
            Room::Arena => (self.arena.as_ptr(), self.arena.len()),
            Room::Wide => (self.wide.as_ptr(), self.wide.len()),
            Room::Slot(i) => (self.slots[i].as_ptr(), self.slots[i].len()),
            Room::Input(i) => match self.staged.get(i) {
                Some(Some(copy)) => (copy.as_ptr(), copy.len()),
                _ => {
                    // `stage` refused inputs that the host has not.
                    let bytes = self.inputs[i].bytes().unwrap_or_default();
                    (bytes.as_ptr().cast_mut(), bytes.len())
                }
            },
        };
        assert!(loc.byte + loc.layout.end() * size_of::<T>() <= len, "an operand ends outside its buffer");
        base.wrapping_add(loc.byte).cast()
    }
}

/// The inputs of a launch.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    bases: &'a Bases<'a>,
    locs: &'a [Loc],
}

impl<'a> Inputs<'a> {
    /// Number of inputs.
    pub fn len(&self) -> usize {
        self.locs.len()
    }

    /// Type of the elements of input `i`.
    pub fn dtype(&self, i: usize) -> DType {
        self.locs[i].dtype
    }

    /// True if input `i` is reachable only through its output.
    pub fn is_absent(&self, i: usize) -> bool {
        self.locs[i].absent
    }

    /// Input `i`; empty if it is the input of an in-place pair.
    pub fn get<T: Elem>(&self, i: usize) -> Src<'a, T> {
        let loc = &self.locs[i];
        if loc.absent {
            return Src::new(&[], Layout::dense(&[0]));
        }
        let start = self.bases.start::<T>(loc);
        // SAFETY: `start` checked that the range lies inside one live buffer, which `Bases` holds for 'a; the
        // address is aligned and no output of this launch meets the range (module invariant), so nobody writes
        // it while the slice lives. All bit patterns are valid for a `Pod`.
        Src::new(unsafe { std::slice::from_raw_parts(start, loc.layout.end()) }, loc.layout)
    }

    /// All elements of input `i`, which has no gaps.
    pub fn dense<T: Elem>(&self, i: usize) -> &'a [T] {
        self.get(i).dense()
    }

    /// The only element of input `i`.
    pub fn scalar<T: Elem>(&self, i: usize) -> T {
        self.get(i).first()
    }
}

/// The outputs of a launch. Made once per launch, so that each output is handed out once.
#[derive(Debug)]
pub struct Outputs<'a> {
    bases: &'a Bases<'a>,
    locs: &'a [Loc],
}

impl<'a> Outputs<'a> {
    /// Number of outputs.
    pub fn len(&self) -> usize {
        self.locs.len()
    }

    /// Output `i`, for as long as `self` is borrowed.
    pub fn get<T: Elem>(&mut self, i: usize) -> Dst<'_, T> {
        // SAFETY: the borrow of `self` keeps any other output from being handed out.
        unsafe { self.make(i) }
    }

    /// All outputs.
    ///
    /// # Panics
    /// If the launch has another number of them; the shape rules have seen to that.
    pub fn take<T: Elem, const N: usize>(self) -> [Dst<'a, T>; N] {
        assert_eq!(self.locs.len(), N, "number of outputs");
        // SAFETY: `self` is consumed, so each output is handed out once.
        std::array::from_fn(|i| unsafe { self.make(i) })
    }

    /// # Safety
    /// No two results for one `i` may live at the same time.
    unsafe fn make<T: Elem>(&self, i: usize) -> Dst<'a, T> {
        let loc = &self.locs[i];
        assert!(!matches!(loc.room, Room::Input(_)), "an output lies in a program input");
        // SAFETY: `start` checked the range; by the module invariant no element is touched twice or shared with
        // another operand that can be handed out, and `Bases` holds the buffer exclusively for 'a.
        unsafe { Dst::new(self.bases.start::<T>(loc), loc.layout) }
    }
}

/// The operands of one launch.
///
/// # Safety
/// `ins` and `outs` must be operands of one launch that `check` has accepted, and no operands of these bases may
/// be alive.
pub unsafe fn operands<'a>(
    bases: &'a Bases<'a>,
    ins: &'a [Loc],
    outs: &'a [Loc],
) -> (Inputs<'a>, Outputs<'a>) {
    (Inputs { bases, locs: ins }, Outputs { bases, locs: outs })
}
