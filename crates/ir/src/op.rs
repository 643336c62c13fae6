//! The contract of an op: one file in `ops/` implements [`OpDef`] for one struct, and that is all that a graph,
//! a pass or a test needs to know of it.

use crate::ops::Op;
use crate::rng::Stream;
use crate::tensor::{Data, Real, Tensor};
use crate::{Cut, DType, Graph, GraphError, TensorType, Value, View};
use std::fmt::Debug;

/// Types of the outputs, or why the inputs do not fit (with the shapes found).
pub type Inferred = Result<Vec<TensorType>, String>;
/// The gradient of each input, `None` where none flows.
pub type Gradients = Result<Vec<Option<Value>>, GraphError>;

/// What every op says about itself.
pub trait OpDef: Clone + Debug + PartialEq {
    /// Name in messages, traces and plans.
    const NAME: &'static str;

    /// Shape and dtype rule.
    ///
    /// # Errors
    /// If the inputs do not fit; the message gives the shapes found.
    fn infer(&self, inputs: &[&TensorType]) -> Inferred;

    /// The slow, obviously right evaluation. Inputs have passed [`infer`](OpDef::infer).
    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>>;

    /// Vector-Jacobian product: adds nodes that compute the gradients of the inputs from those of the outputs.
    /// An op without one answers with [`Vjp::none`], an error: a gradient is never cut in silence.
    ///
    /// # Errors
    /// If the op has no gradient.
    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients;

    /// A random valid use of the op, for the tests that walk the registry.
    fn sample(g: &mut Gen) -> Sample;

    /// Floating-point operations, a multiply-add counted as two.
    fn flops(&self, inputs: &[&TensorType], outputs: &[&TensorType]) -> u64;

    /// Bytes moved if each input is read once and each output written once.
    fn bytes(&self, inputs: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        inputs.iter().chain(outputs).map(|t| t.bytes() as u64).sum()
    }

    /// If the outputs are views of the first input: where their elements lie. No launch is made then.
    fn alias(&self, _input: &View) -> Option<Vec<View>> {
        None
    }

    /// If only the part `cut` of the first output is needed: the part of each input that is needed then, where
    /// `None` is all of it. The same op, given those parts, computes that part. No answer: all of every input.
    fn narrow(&self, _cut: &Cut, _inputs: &[&TensorType], _output: &TensorType) -> Option<Vec<Option<Cut>>> {
        None
    }

    /// Pairs (output, input) that may lie in the same memory: element i of the output needs element i alone.
    fn in_place(&self) -> &'static [(usize, usize)] {
        &[]
    }

    /// How wide a float output is stored in mixed precision. Whatever the answer, it is computed in f32.
    fn storage(&self, _output: usize) -> Storage {
        Storage::Wide
    }

    /// The inputs that are multiplied with each other: in mixed precision all of them are stored in 16 bits.
    fn operands(&self) -> &'static [usize] {
        &[]
    }

    /// True if float inputs may be stored in 16 bits. An op that makes 32 bits needs them, unless it says otherwise:
    /// what an optimiser reads must not lose digits.
    fn reads_half(&self) -> bool {
        self.storage(0) != Storage::Wide
    }
}

/// How wide a float value is stored in mixed precision, as the op that makes it knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// 32 bits: statistics, long sums, weights.
    Wide,
    /// 16 bits: what products make, and what lies between them.
    Half,
    /// As the policy for the residual stream says.
    Stream,
    /// As the float inputs, all of one dtype: the same numbers at other places, or some of them.
    Moves,
}

/// What an op's vector-Jacobian product works with.
pub struct Vjp<'a> {
    /// The graph to add to.
    pub g: &'a mut Graph,
    /// Inputs of the node.
    pub inputs: &'a [Value],
    /// Outputs of the node.
    pub outputs: &'a [Value],
    /// Gradient of each output, where one flows.
    pub grads: &'a [Option<Value>],
    /// Name of the op, for errors.
    pub op: &'static str,
}

impl Vjp<'_> {
    /// The gradient of the only differentiable output.
    ///
    /// # Errors
    /// If a gradient flows into any other output, or none into this one.
    #[track_caller]
    pub fn only(&self, output: usize) -> Result<Value, GraphError> {
        if self.grads.iter().enumerate().any(|(i, g)| i != output && g.is_some()) {
            return Err(self.g.error(self.op, format!("only output {output} has a gradient")));
        }
        self.grads[output].ok_or_else(|| self.g.error(self.op, "no gradient arrived"))
    }

    /// The answer of an op that has no gradient.
    ///
    /// # Errors
    /// Always.
    #[track_caller]
    pub fn none(&self, why: &str) -> Gradients {
        Err(self.g.error(self.op, format!("a gradient reaches it, and it has none: {why}")))
    }

    /// Shape of an input.
    pub fn shape(&self, input: usize) -> Vec<usize> {
        self.g.shape(self.inputs[input])
    }
}

/// How to fill an input of a [`Sample`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fill {
    /// Normal numbers with mean 0, variance 1.
    Normal,
    /// Uniform numbers in a range.
    Range(f64, f64),
    /// Integers `0..n`.
    Below(u32),
}

/// A random valid use of an op.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The op with its attributes.
    pub op: Op,
    /// Type and contents of each input.
    pub inputs: Vec<(TensorType, Fill)>,
    /// Only these outputs can receive a gradient.
    pub differentiable: Vec<usize>,
}

impl Sample {
    /// A sample whose first output is the differentiable one.
    pub fn new(op: impl Into<Op>, inputs: Vec<(TensorType, Fill)>) -> Self {
        Self { op: op.into(), inputs, differentiable: vec![0] }
    }

    /// A sample of an op without gradient.
    pub fn no_gradient(op: impl Into<Op>, inputs: Vec<(TensorType, Fill)>) -> Self {
        Self { op: op.into(), inputs, differentiable: vec![] }
    }

    /// Inputs drawn from `g`; floats are exact in f32.
    pub fn draw<R: Real>(&self, g: &mut Gen) -> Vec<Tensor<R>> {
        self.inputs.iter().map(|(ty, fill)| g.tensor(ty, *fill)).collect()
    }
}

/// Draws shapes and numbers for [`Sample`]s; the same seed gives the same sample.
#[derive(Clone, Debug)]
pub struct Gen {
    stream: Stream,
}

impl Gen {
    /// A generator of a seed.
    pub fn new(seed: u64) -> Self {
        Self { stream: Stream::new(seed, "sample") }
    }

    /// An extent in `lo..=hi`.
    pub fn dim(&mut self, lo: usize, hi: usize) -> usize {
        lo + self.stream.below((hi - lo + 1) as u64) as usize
    }

    /// A shape of rank `lo..=hi` with extents 1 to 5.
    pub fn shape(&mut self, lo: usize, hi: usize) -> Vec<usize> {
        let rank = self.dim(lo, hi);
        (0..rank).map(|_| self.dim(1, 5)).collect()
    }

    /// True once in `n`.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.stream.below(n) == 0
    }

    /// A shape that broadcasts to `full`: some leading axes gone, some extents 1.
    pub fn broadcastable(&mut self, full: &[usize]) -> Vec<usize> {
        let skip = self.dim(0, full.len());
        full[skip..].iter().map(|&n| if self.one_in(3) { 1 } else { n }).collect()
    }

    /// A tensor of a type; floats are exact in f32.
    pub fn tensor<R: Real>(&mut self, ty: &TensorType, fill: Fill) -> Tensor<R> {
        let n = ty.shape.numel();
        let s = Stream::keyed(self.stream.next_u64());
        let real = |i: usize| match fill {
            Fill::Normal => f64::from(s.normal_at(i as u64, 1.0)),
            Fill::Range(lo, hi) => {
                let (mid, half) = ((lo + hi) / 2.0, (hi - lo) / 2.0);
                (mid + f64::from(s.uniform_at(i as u64, half))) as f32 as f64
            }
            Fill::Below(n) => (s.block(i as u64)[0] % n) as f64,
        };
        let data = match ty.dtype {
            DType::U8 => Data::U8((0..n).map(|i| real(i) as u8).collect()),
            DType::U32 => Data::U32((0..n).map(|i| real(i) as u32).collect()),
            d => Data::Real((0..n).map(|i| R::of(d.round(real(i)))).collect()),
        };
        Tensor { shape: ty.shape.clone(), data }
    }
}
