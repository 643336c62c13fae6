//! Fused ops as a training step in mixed precision has them, at sizes that no tile divides.

use ocelli_ir::dropout::Dropout;
use ocelli_ir::op::{Fill, Sample};
use ocelli_ir::ops::{Add, DropoutOp, Fused, Gelu, GeluGrad, LayerNormGrad, MatMul};
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
    for [m, n, k] in
        [[8, 8, 8], [37, 96, 24], [4312, 120, 576], [257, 64, 40], [300, 128, 128], [4300, 128, 512]]
    {
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
        all.push(b.sample(&[dx]));
    }
    // Three samples, whose rows no tile holds together; the residual stream in 32 bits.
    let (batch, t, n, k) = (3, 43, 128, 96);
    let mut b = new();
    let h = b.product([batch * t, n, k], [false, true, true]);
    let rows = b.g.reshape(h, [batch, t, n]).unwrap();
    let keys = [b.input(DType::U32, &[2], Fill::Below(1 << 20)), b.input(DType::U32, &[], Fill::Below(99))];
    let samples = b.input(DType::U32, &[batch], Fill::Below(1 << 20));
    let dropout = Dropout { threshold: 20_000, site: 0x0123_4567_89ab_cdef };
    let kept = b.node(DropoutOp { dropout }, &[rows, keys[0], keys[1], samples]).unwrap();
    let x = b.half(&[batch, t, n]);
    let sum = b.node(Add, &[x, kept]).unwrap();
    all.push(b.sample(&[sum]));
    all.extend([128, 96, 40, 512].map(|width| norm(new(), width)));
    all
}

/// The gradient of a norm whose dx is added to another gradient and then dropped in part; both are results.
fn norm(mut b: Body, width: usize) -> Sample {
    let (batch, t) = (3, 43);
    let x = b.half(&[batch, t, width]);
    let gamma = b.input(DType::F32, &[width], Fill::Normal);
    let [mean, rstd] = [0, 1].map(|_| b.input(DType::F32, &[batch * t], Fill::Range(0.5, 1.0)));
    let dy = b.half(&[batch, t, width]);
    let half = b.half;
    let types =
        [TensorType::new(half, [batch, t, width]), TensorType::f32([width]), TensorType::f32([width])];
    let grads = b.g.typed(LayerNormGrad.into(), &[x, gamma, mean, rstd, dy], types.into()).unwrap();
    let other = b.half(&[batch, t, width]);
    let sum = b.node(Add, &[grads[0], other]).unwrap();
    let keys = [b.input(DType::U32, &[2], Fill::Below(1 << 20)), b.input(DType::U32, &[], Fill::Below(99))];
    let samples = b.input(DType::U32, &[batch], Fill::Below(1 << 20));
    let dropout = Dropout { threshold: 20_000, site: 0x0123_4567_89ab_cdef };
    let kept = b.node(DropoutOp { dropout }, &[sum, keys[0], keys[1], samples]).unwrap();
    b.sample(&[sum, grads[1], grads[2], kept])
}
