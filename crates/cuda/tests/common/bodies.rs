//! Fused ops as a training step in mixed precision has them, at sizes that no tile divides.

use ocelli_ir::dropout::Dropout;
use ocelli_ir::op::{Fill, Sample};
use ocelli_ir::ops::{
    Add, DropoutOp, Fused, Gelu, GeluGrad, LayerNorm, LayerNormGrad, MatMul, NormalizePixels, Patchify,
    ReduceSum, RmsNormGrad,
};
use ocelli_ir::{DType, Graph, GraphError, TensorType, Value};

/// A body with what fills its inputs.
struct Body {
    g: Graph,
    fills: Vec<Fill>,
    half: DType,
}

impl Body {
    fn input(&mut self, dtype: DType, shape: &[usize], fill: Fill) -> Value {
        self.fills.push(fill);
        self.g.input(&self.fills.len().to_string(), TensorType::new(dtype, shape.to_vec()))
    }

    fn half(&mut self, shape: &[usize]) -> Value {
        self.input(self.half, shape, Fill::Normal)
    }

    /// A node with its first output stored in 16 bits.
    fn node(&mut self, op: impl Into<ocelli_ir::Op>, inputs: &[Value]) -> Result<Value, GraphError> {
        let op = op.into();
        let types: Vec<&TensorType> = inputs.iter().map(|&v| self.g.ty(v)).collect();
        let mut ty = op.infer(&types).unwrap().remove(0);
        ty.dtype = self.half;
        Ok(self.g.typed(op, inputs, vec![ty])?[0])
    }

    fn product(&mut self, [m, n, k]: [usize; 3], [ta, tb, bias]: [bool; 3]) -> Value {
        let [a, b] =
            [if ta { [k, m] } else { [m, k] }, if tb { [n, k] } else { [k, n] }].map(|s| self.half(&s));
        let mut inputs = vec![a, b];
        if bias {
            inputs.push(self.half(&[n]));
        }
        self.node(MatMul { ta, tb, bias }, &inputs).unwrap()
    }

    fn sample(self, outputs: &[Value]) -> Sample {
        let mut g = self.g;
        outputs.iter().enumerate().for_each(|(i, v)| g.output(&i.to_string(), *v));
        let op = Fused::new(g);
        let inputs = op.inputs().zip(self.fills).map(|(i, fill)| (i.ty.clone(), fill)).collect();
        Sample::no_gradient(op, inputs)
    }
}

pub fn bodies(half: DType) -> Vec<Sample> {
    let new = || Body { g: Graph::new(), fills: vec![], half };
    let mut all = Vec::new();
    for [m, n, k] in [
        [8, 8, 8],
        [37, 96, 24],
        [4312, 120, 576],
        [257, 64, 40],
        [300, 128, 128],
        [4300, 128, 512],
        [4300, 320, 136],
    ] {
        for turned in [[false, true], [false, false], [true, false]] {
            if turned[0] && m % 8 != 0 {
                continue;
            }
            let mut b = new();
            let h = b.product([m, n, k], [turned[0], turned[1], true]);
            let y = b.node(Gelu, &[h]).unwrap();
            all.push(b.sample(&[h, y]));
        }
        let mut b = new();
        let dh = b.product([m, n, k], [false, false, false]);
        let h = b.half(&[m, n]);
        let dx = b.node(GeluGrad, &[h, dh]).unwrap();
        let sum =
            b.g.typed(ReduceSum { axes: vec![0] }.into(), &[dx], vec![TensorType::f32([1, n])]).unwrap();
        all.push(b.sample(&[dx, sum[0]]));
    }
    for (width, inner) in [(128, 96), (64, 248), (16, 40), (96, 72)] {
        all.push(residual(new(), width, inner));
        // Norms only where a tile holds whole rows.
        if width != 96 {
            all.push(norm_behind(new(), width, inner));
            all.extend([true, false].map(|centred| norm_gradient_behind(new(), width, inner, centred)));
        }
    }
    all.extend([128, 96, 40, 512].map(|width| norm_gradient(new(), width)));
    all.extend([16, 6].map(|patch| pixels(new(), patch)));
    all
}

/// Hidden layers of `[rows, width, hidden]`, which only some GPUs have kernels for: forward, and the two parts of backward.
pub fn layers(half: DType) -> Vec<Sample> {
    let new = || Body { g: Graph::new(), fills: vec![], half };
    // Tiles of 64 and of 128 rows, full and not; one slice and several.
    let sizes = [[2149, 128, 192], [12_700, 64, 64], [16_448, 64, 64]];
    let all =
        |size| [layer(new(), size), layer_gradient(new(), size, true), layer_gradient(new(), size, false)];
    sizes.into_iter().flat_map(all).collect()
}

/// `x + gelu(x w^T + b) v^T + c` and its norm.
fn layer(mut b: Body, [m, width, hidden]: [usize; 3]) -> Sample {
    let (x, w, v) = (b.half(&[m, width]), b.half(&[hidden, width]), b.half(&[width, hidden]));
    let (bias, last) = (b.half(&[hidden]), b.half(&[width]));
    let linear = MatMul { ta: false, tb: true, bias: true };
    let h = b.node(linear.clone(), &[x, w, bias]).unwrap();
    let a = b.node(Gelu, &[h]).unwrap();
    let y = b.node(linear, &[a, v, last]).unwrap();
    let sum = b.node(Add, &[x, y]).unwrap();
    let (gamma, beta) = (b.vector(width), b.vector(width));
    let stats = TensorType::f32([m]);
    let types = vec![TensorType::new(b.half, [m, width]), stats.clone(), stats];
    let normed = b.g.typed(LayerNorm { eps: 1e-5 }.into(), &[sum, gamma, beta], types).unwrap();
    b.sample(&[&[sum], &normed[..]].concat())
}

/// The gradients of such a layer, given dy: of both weights and the bias between, or of what it reads, with another gradient of
/// that and the sum of the two.
fn layer_gradient(mut b: Body, [m, width, hidden]: [usize; 3], weights: bool) -> Sample {
    let (x, w, v) = (b.half(&[m, width]), b.half(&[hidden, width]), b.half(&[width, hidden]));
    let (bias, dy) = (b.half(&[hidden]), b.half(&[m, width]));
    let h = b.node(MatMul { ta: false, tb: true, bias: true }, &[x, w, bias]).unwrap();
    let plain = MatMul { ta: false, tb: false, bias: false };
    let turned = MatMul { ta: true, ..plain.clone() };
    let sum = |b: &mut Body, x: Value, wide: usize| {
        b.g.typed(ReduceSum { axes: vec![0] }.into(), &[x], vec![TensorType::f32([1, wide])]).unwrap()[0]
    };
    let a = weights.then(|| b.node(Gelu, &[h]).unwrap());
    let da = b.node(plain.clone(), &[dy, v]).unwrap();
    let dh = b.node(GeluGrad, &[h, da]).unwrap();
    if let Some(a) = a {
        let ends = [(dy, a), (dh, x)].map(|(p, q)| b.g.one(turned.clone(), &[p, q]).unwrap());
        let bias = sum(&mut b, dh, hidden);
        return b.sample(&[&ends[..], &[bias]].concat());
    }
    let dx = b.node(plain, &[dh, w]).unwrap();
    let other = b.half(&[m, width]);
    let both = b.node(Add, &[dx, other]).unwrap();
    let bias = sum(&mut b, both, width);
    b.sample(&[both, bias])
}

/// Patches of normalised pixels.
fn pixels(mut b: Body, patch: usize) -> Sample {
    let x = b.input(DType::U8, &[BATCH, 3 * patch, 2 * patch, 3], Fill::Below(256));
    let x = b.node(NormalizePixels::IMAGENET, &[x]).unwrap();
    let y = b.node(Patchify { patch }, &[x]).unwrap();
    b.sample(&[y])
}

/// Three samples, whose rows no tile holds together.
const BATCH: usize = 3;
const LENGTH: usize = 43;
const ROWS: usize = BATCH * LENGTH;

impl Body {
    fn ints(&mut self, shape: &[usize], below: u32) -> Value {
        self.input(DType::U32, shape, Fill::Below(below))
    }

    fn dropped(&mut self, x: Value) -> Value {
        let keys = [self.ints(&[2], 1 << 20), self.ints(&[], 99), self.ints(&[BATCH], 1 << 20)];
        let dropout = Dropout { threshold: 20_000, site: 0x0123_4567_89ab_cdef };
        self.node(DropoutOp { dropout }, &[x, keys[0], keys[1], keys[2]]).unwrap()
    }

    fn vector(&mut self, width: usize) -> Value {
        self.input(DType::F32, &[width], Fill::Normal)
    }

    /// A product seen as the rows of samples.
    fn rows(&mut self, width: usize, inner: usize, turned: bool) -> Value {
        let h = self.product([ROWS, width, inner], [false, turned, turned]);
        self.g.reshape(h, [BATCH, LENGTH, width]).unwrap()
    }

    /// The gradient of a norm, with a mean or without: dx and the gradients of scale and shift.
    fn norm_gradient(&mut self, x: Value, dy: Value, centred: bool) -> Vec<Value> {
        let width = self.g.ty(x).shape[2];
        let gamma = self.vector(width);
        let statistics: Vec<Value> = (0..1 + usize::from(centred))
            .map(|_| self.input(DType::F32, &[ROWS], Fill::Range(0.5, 1.0)))
            .collect();
        let inputs = [&[x, gamma], &statistics[..], &[dy]].concat();
        let like = TensorType::new(self.half, [BATCH, LENGTH, width]);
        let sums = vec![TensorType::f32([width]); statistics.len()];
        let op: ocelli_ir::Op = if centred { LayerNormGrad.into() } else { RmsNormGrad.into() };
        self.g.typed(op, &inputs, [vec![like], sums].concat()).unwrap()
    }

    /// The sum of all rows: the gradient of a bias.
    fn bias_gradient(&mut self, x: Value) -> Value {
        let width = self.g.ty(x).shape[2];
        let ty = TensorType::f32([1, 1, width]);
        self.g.typed(ReduceSum { axes: vec![0, 1] }.into(), &[x], vec![ty]).unwrap()[0]
    }
}

/// `x + dropout(a b)`.
fn residual(mut b: Body, width: usize, inner: usize) -> Sample {
    let rows = b.rows(width, inner, true);
    let kept = b.dropped(rows);
    let x = b.half(&[BATCH, LENGTH, width]);
    let sum = b.node(Add, &[x, kept]).unwrap();
    b.sample(&[sum])
}

/// `y = x + a b` and its norm, of which all is given out.
fn norm_behind(mut b: Body, width: usize, inner: usize) -> Sample {
    let rows = b.rows(width, inner, true);
    let x = b.half(&[BATCH, LENGTH, width]);
    let sum = b.node(Add, &[x, rows]).unwrap();
    let (gamma, beta) = (b.vector(width), b.vector(width));
    let types = vec![
        TensorType::new(b.half, [BATCH, LENGTH, width]),
        TensorType::f32([ROWS]),
        TensorType::f32([ROWS]),
    ];
    let normed = b.g.typed(LayerNorm { eps: 1e-5 }.into(), &[sum, gamma, beta], types).unwrap();
    b.sample(&[&[sum], &normed[..]].concat())
}

/// The gradient of a norm whose dy is a product and a residual; dx is dropped in part, and summed for a bias.
fn norm_gradient_behind(mut b: Body, width: usize, inner: usize, centred: bool) -> Sample {
    let rows = b.rows(width, inner, false);
    let other = b.half(&[BATCH, LENGTH, width]);
    let dy = b.node(Add, &[rows, other]).unwrap();
    let x = b.half(&[BATCH, LENGTH, width]);
    let grads = b.norm_gradient(x, dy, centred);
    let kept = b.dropped(grads[0]);
    let bias = b.bias_gradient(kept);
    b.sample(&[&grads[..], &[kept, bias]].concat())
}

/// The gradient of a norm whose dx is added to another gradient and then dropped in part; both are results, and a bias's.
fn norm_gradient(mut b: Body, width: usize) -> Sample {
    let [x, dy] = [0, 1].map(|_| b.half(&[BATCH, LENGTH, width]));
    let grads = b.norm_gradient(x, dy, true);
    let other = b.half(&[BATCH, LENGTH, width]);
    let sum = b.node(Add, &[grads[0], other]).unwrap();
    let kept = b.dropped(sum);
    let bias = b.bias_gradient(kept);
    b.sample(&[sum, grads[1], grads[2], kept, bias])
}
