//! Kernels that run over the elements of a space, made from the expression that computes one: copies, arithmetic, casts,
//! everything where each element of the result is found by itself.
//!
//! A thread takes `V` neighbours along the last axis, loaded and stored at once where they lie side by side at an address
//! that allows it. All arithmetic is in f32 whatever is stored. In an expression `x0, x1, ..` are the elements read, `y0,
//! y1, ..` those to be written, `c0, c1, ..` the coordinates, the last one included.

mod epilogue;
mod space;
mod text;

use crate::lower::{Arg, KernelCall};
use ocelli_ir::DType;
use std::fmt::Write;
use text::pack;

/// Threads of a block.
const BLOCK: usize = 256;

/// How the elements of an operand are found.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// Distance of neighbours along each axis of the space.
    Strides(Vec<usize>),
    /// The index of the first of a thread's elements, an expression of coordinates and of what the prologue declares; the
    /// distance along the last axis; and a condition, without which 0 is read and nothing is written.
    At(String, usize, Option<String>),
    /// Read only: what a kernel hands to its epilogue.
    Sums,
}

/// An operand.
#[derive(Clone, Debug)]
pub struct Access {
    /// First element.
    pub arg: Arg,
    /// Type of an element.
    pub dtype: DType,
    /// Power of two that the address is a multiple of.
    pub align: usize,
    /// Where its elements are.
    pub place: Place,
}

impl Access {
    /// What a kernel hands to its epilogue.
    pub const fn sums() -> Self {
        Self { arg: Arg::Work(0), dtype: DType::F32, align: 16, place: Place::Sums }
    }
}

/// What the elements that a kernel reads are called in its statements: `x0, x1, ..` or `e0, e1, ..`.
#[derive(Clone, Copy, Debug, Default)]
pub enum ReadName {
    /// `x`: statements of one op.
    #[default]
    X,
    /// `e`: statements of several ops, whose own `x` are declared in blocks.
    E,
}

impl std::fmt::Display for ReadName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Self::X) { "x" } else { "e" })
    }
}

/// What is done before the last statements of an epilogue: statements for each neighbour, then once with all of a row's
/// lanes. Values that go from one to the next are arrays that [`Loop::declared`] declares.
#[derive(Clone, Debug)]
pub struct Stage {
    /// As [`Loop::body`].
    pub each: String,
    /// Statements outside of the loop over neighbours.
    pub row: String,
}

/// A kernel in the making.
#[derive(Clone, Debug, Default)]
pub struct Loop {
    /// Extents.
    pub space: Vec<usize>,
    /// What is read: `x0, x1, ..`.
    pub reads: Vec<Access>,
    /// What is written: `y0, y1, ..`.
    pub writes: Vec<Access>,
    /// Addresses that only the prologue reads: `q0, q1, ..`, with their types.
    pub extra: Vec<(Arg, DType)>,
    /// Addresses of f32 that statements of rows write: `o0, o1, ..`.
    pub row_outs: Vec<Arg>,
    /// Of an epilogue: what comes before `body`.
    pub stages: Vec<Stage>,
    /// Of an epilogue: declarations of what lives longer than a stage; `width` neighbours are `WIDTH`.
    pub declared: String,
    /// Of an epilogue: how many sums of columns it adds to, as `columns[sum][v]`.
    pub columns: usize,
    /// Statements before anything is read.
    pub prologue: String,
    /// Statements that declare every `y`.
    pub body: String,
    /// True if a statement names a coordinate.
    pub coordinates: bool,
    /// What the elements read are called.
    pub name: ReadName,
}

impl Loop {
    /// Each element of a space from one operand to another, converted if they differ in type.
    pub fn copy(space: Vec<usize>, from: Access, to: Access) -> Self {
        let body =
            format!("        const {} y0 = x0;\n", if from.dtype.is_float() { "float" } else { "u32" });
        Self { space, reads: vec![from], writes: vec![to], body, ..Self::default() }
    }

    /// The kernel. An empty space gives one that does nothing.
    pub fn kernel(mut self) -> KernelCall {
        if !self.coordinates {
            self.collapse(false);
        }
        self.scalar();
        let width = self.width();
        let threads = self.space.iter().product::<usize>() / width;
        let index = if self.numel_reach() < 1 << 31 { "u32" } else { "u64" };
        let mut text = pack(width) + self.precision();
        // Writing to a string cannot fail.
        let _ = self.head(&mut text, threads, index);
        self.coordinates(&mut text, width, index);
        text.push_str(&self.prologue);
        for (i, a) in self.reads.iter().enumerate() {
            let _ = writeln!(text, "    {} a{i};", self.loaded(a));
            let _ = self.load(&mut text, "", i, a, width);
        }
        let _ = self.lanes(&mut text, width, self.space.len() - 1);
        KernelCall {
            entry: "elements",
            source: text,
            grid: [threads.div_ceil(BLOCK).max(1) as u32, 1, 1],
            block: BLOCK as u32,
            shared: 0,
            args: self.args(),
        }
    }

    fn args(&self) -> Vec<Arg> {
        let operands =
            self.reads.iter().chain(&self.writes).filter(|a| a.place != Place::Sums).map(|a| a.arg);
        operands.chain(self.extra.iter().map(|e| e.0)).chain(self.row_outs.iter().copied()).collect()
    }
}
