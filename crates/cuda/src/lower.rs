//! What a launch of a plan becomes on this device: calls of kernels and of the library of matrix products.
//!
//! Lowering is a pure function of ops, types and views: it needs no GPU, so that continuous integration can compile every
//! kernel, and two launches with equal sources share one kernel.

use ocelli_ir::{DType, TensorType, View};

/// Bytes at which every buffer starts.
pub const ALIGNMENT: usize = 256;

/// An operand as a lowering sees it.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// Type of an element.
    pub dtype: DType,
    /// Which elements; the offset is in the address already and does not count.
    pub view: View,
    /// A power of two that the address of the first element is a multiple of.
    pub align: usize,
}

impl Tensor {
    /// A tensor without gaps at the start of a buffer.
    pub fn dense(ty: &TensorType) -> Self {
        Self { dtype: ty.dtype, view: View::contiguous(ty.shape.clone()), align: ALIGNMENT }
    }

    /// Its shape.
    pub fn shape(&self) -> &[usize] {
        &self.view.shape
    }

    /// Its shape and dtype.
    pub fn ty(&self) -> TensorType {
        TensorType::new(self.dtype, self.view.shape.clone())
    }
}

/// What kernels are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Multiprocessors: how many blocks fill the device.
    pub processors: usize,
    /// Most dynamic shared memory of a block, in bytes.
    pub shared: usize,
    /// Products of f32 may round their operands to TF32.
    pub tf32: bool,
    /// There are the matrix instructions of compute capability 9.0.
    pub wgmma: bool,
}

impl Machine {
    /// A GPU with this many multiprocessors and the shared memory that every supported GPU has.
    pub const fn new(processors: usize) -> Self {
        Self { processors, shared: 99 * 1024, tf32: false, wgmma: false }
    }
}

/// What a lowering works with.
#[derive(Clone, Debug)]
pub struct Lowering {
    /// Arguments of the op.
    pub ins: Vec<Tensor>,
    /// Results of the op.
    pub outs: Vec<Tensor>,
    /// The pairs of inputs and outputs that the op may have in one memory are in one memory.
    pub in_place: bool,
    /// The device.
    pub machine: Machine,
}

/// An address, when the program is bound to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg {
    /// The first element of an input, this many bytes further.
    In(usize, usize),
    /// The first element of an output, this many bytes further.
    Out(usize, usize),
    /// This many bytes into the launch's workspace.
    Work(usize),
    /// This many bytes into what the launch keeps until its late sums are made.
    Kept(usize),
    /// A list of the launch's own: the address and the count of each [`Lowered::table`] entry, as pairs of 64-bit words.
    Table,
}

impl Arg {
    /// The address this many bytes further.
    pub fn further(self, bytes: usize) -> Self {
        match self {
            Self::In(i, at) => Self::In(i, at + bytes),
            Self::Out(i, at) => Self::Out(i, at + bytes),
            Self::Work(at) => Self::Work(at + bytes),
            Self::Kept(at) => Self::Kept(at + bytes),
            Self::Table => Self::Table,
        }
    }
}

/// What the address `bytes` behind a multiple of `align` is a multiple of; both are powers of two.
pub fn align_at(align: usize, bytes: usize) -> usize {
    if bytes == 0 { align } else { align.min(1 << bytes.trailing_zeros()) }
}

/// A call of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelCall {
    /// Name of the function.
    pub entry: &'static str,
    /// Text behind the prelude.
    pub source: String,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: u32,
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Addresses that it takes.
    pub args: Vec<Arg>,
}

/// A matrix as the product's library sees it: `rows x cols`, element (r, c) at `r * row + c * col`, one of which is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// First element.
    pub arg: Arg,
    /// Type of an element.
    pub dtype: DType,
    /// Power of two that the address is a multiple of.
    pub align: usize,
    /// Distance of rows.
    pub row: usize,
    /// Distance of columns.
    pub col: usize,
    /// Distance of one product's matrix to the next one's.
    pub batch: usize,
}

/// `d = a b + bias`, or added to `d`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GemmCall {
    /// Independent products.
    pub batch: usize,
    /// Rows of `d`.
    pub m: usize,
    /// Columns of `d`.
    pub n: usize,
    /// Length of a dot product.
    pub k: usize,
    /// `m x k`.
    pub a: Matrix,
    /// `k x n`.
    pub b: Matrix,
    /// `m x n`, rows without gaps between elements.
    pub d: Matrix,
    /// A row of `n` elements of `d`'s type.
    pub bias: Option<Arg>,
    /// What is in `d` before stays in the sum.
    pub accumulate: bool,
}

/// One thing that the device is asked to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// A kernel of ours.
    Kernel(KernelCall),
    /// A matrix product of the library.
    Gemm(GemmCall),
    /// Zero bytes.
    Zero(Arg, usize),
}

/// Sums of columns that need not be made before somebody reads them: those of many launches are made at once.
#[derive(Clone, Debug, PartialEq)]
pub struct LateSums {
    /// f32 `[rows, to.len(), cols]`.
    pub from: Arg,
    /// Terms of a sum.
    pub rows: usize,
    /// Sums for each place.
    pub cols: usize,
    /// Where they go, in f32.
    pub to: Vec<Arg>,
}

/// What a launch becomes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lowered {
    /// In order.
    pub calls: Vec<Call>,
    /// Bytes of workspace.
    pub work: usize,
    /// What [`Arg::Table`] lists: addresses and counts.
    pub table: Vec<(Arg, u64)>,
    /// Bytes of its own that live until its late sums are made.
    pub kept: usize,
    /// What is left to be done.
    pub late: Vec<LateSums>,
}

impl Lowered {
    /// One kernel, nothing else.
    pub fn kernel(call: KernelCall) -> Self {
        Self { calls: vec![Call::Kernel(call)], ..Self::default() }
    }

    /// Reserves `bytes` of workspace.
    pub fn reserve(&mut self, bytes: usize) -> Arg {
        let at = self.work;
        self.work = (at + bytes).next_multiple_of(ALIGNMENT);
        Arg::Work(at)
    }
}

/// The name of an element type in kernel sources.
pub const fn c_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "float",
        DType::Bf16 => "bf16",
        DType::F16 => "f16",
        DType::U32 => "u32",
        DType::U8 => "u8",
    }
}

/// Lines of `#define name value`.
#[derive(Clone, Debug, Default)]
pub struct Defines(String);

impl Defines {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.0.push_str(&format!("#define {name} {value}\n"));
        self
    }

    /// In front of a kernel's text.
    pub fn source(&self, text: &str) -> String {
        format!("{}{text}", self.0)
    }
}

/// An f32 as C++ reads it back to the bit.
pub fn c_float(x: f64) -> String {
    let x = x as f32;
    if x.is_finite() { format!("{x:e}f") } else { format!("__int_as_float({:#x})", x.to_bits()) }
}
