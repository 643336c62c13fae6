//! `attention`: scaled dot-product attention with causal mask, valid lengths, grouped heads and dropout inside.
//!
//! Executors lower it without ever storing a T x T tensor; the reference evaluation below is its plain
//! definition. The gradient recomputes the weights from the row sums it stored (Dao et al. 2022).

use super::common::float;
use super::dropout::{check_keys, sample_keys};
use crate::dropout::Dropout;
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::ops::AttentionGrad;
use crate::tensor::{Real, Tensor};
use crate::{Cut, TensorType, Value};

/// Inputs q `[B, Tq, H, D]`, k and v `[B, Tk, G, D]` with H a multiple of G (query head h reads key head
/// `h / (H / G)`); then, if `kv_len`, the number of valid keys u32 `[B]`; then, if `dropout`, seed u32 `[2]`,
/// step u32 `[]`, sample u32 `[B]`.
///
/// Outputs o like q, and f32 `[B, H, Tq]`: the logarithm of each row's sum of exponentials.
///
/// Query i sees key j if `j < kv_len` and, when `causal`, `j <= i`. Weights are `softmax(scale q k)`; dropout
/// acts on the weights with plane = head, row = query, column = key. A row that sees no key gives 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Attention {
    /// Query i sees keys up to i; needs Tq = Tk.
    pub causal: bool,
    /// Factor on `q k`, usually `1 / sqrt(D)`.
    pub scale: f64,
    /// An input gives the number of valid keys.
    pub kv_len: bool,
    /// Dropout on the weights.
    pub dropout: Option<Dropout>,
}

/// Extents of an attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttentionExtents {
    /// Batch.
    pub b: usize,
    /// Queries.
    pub tq: usize,
    /// Keys.
    pub tk: usize,
    /// Query heads.
    pub h: usize,
    /// Key and value heads.
    pub g: usize,
    /// Width of a head.
    pub d: usize,
}

impl Attention {
    /// Number of inputs behind q, k, v.
    pub fn extras(&self) -> usize {
        usize::from(self.kv_len) + if self.dropout.is_some() { 3 } else { 0 }
    }

    /// Checks q, k, v and returns the extents.
    ///
    /// # Errors
    /// If they do not fit together.
    pub fn extents(&self, q: &[usize], k: &[usize], v: &[usize]) -> Result<AttentionExtents, String> {
        let fail = |why: &str| Err(format!("{why}: q {q:?}, k {k:?}, v {v:?}"));
        let (&[b, tq, h, d], &[kb, tk, g, kd]) = (q, k) else { return fail("q, k and v must have 4 axes") };
        if k != v || kb != b || kd != d {
            return fail("q, k and v do not fit together");
        }
        if g == 0 || h % g != 0 {
            return fail("the query heads are not a multiple of the key heads");
        }
        if self.causal && tq != tk {
            return fail("a causal mask needs as many queries as keys");
        }
        Ok(AttentionExtents { b, tq, tk, h, g, d })
    }

    /// Checks the inputs behind q, k, v.
    pub(super) fn check_extras(&self, extras: &[&TensorType], b: usize) -> Result<(), String> {
        if extras.len() != self.extras() {
            return Err(format!("needs {} inputs behind its tensors, found {}", self.extras(), extras.len()));
        }
        if self.kv_len {
            super::common::exact(extras[0], &TensorType::u32([b]), "the valid lengths")?;
        }
        check_keys(&extras[usize::from(self.kv_len)..], if self.dropout.is_some() { b } else { 0 })
    }

    /// Number of keys that query `i` sees, given the valid length; keys are seen in order from 0.
    pub fn visible(&self, i: usize, valid: usize) -> usize {
        if self.causal { valid.min(i + 1) } else { valid }
    }

    /// A random attention: the op, q k v, and the inputs behind them.
    pub(super) fn random(g: &mut Gen) -> (Self, Inputs, Inputs) {
        let (b, groups, per, d) = (g.dim(1, 3), g.dim(1, 2), g.dim(1, 3), g.dim(1, 9));
        let causal = g.one_in(2);
        let tq = g.dim(1, 20);
        let tk = if causal { tq } else { g.dim(1, 20) };
        let dropout = g.one_in(2).then_some(Dropout { threshold: 20_000, site: 77 });
        let op = Self { causal, scale: 0.7, kv_len: g.one_in(2), dropout };
        let kv = TensorType::f32([b, tk, groups, d]);
        let tensors = vec![
            (TensorType::f32([b, tq, groups * per, d]), Fill::Normal),
            (kv.clone(), Fill::Normal),
            (kv, Fill::Normal),
        ];
        let mut extras = vec![];
        if op.kv_len {
            extras.push((TensorType::u32([b]), Fill::Below(tk as u32 + 1)));
        }
        if op.dropout.is_some() {
            extras.extend(sample_keys(b));
        }
        (op, tensors, extras)
    }
}

/// Inputs of a sample.
type Inputs = Vec<(TensorType, Fill)>;

/// The weights of one row before dropout, with the logarithm of the sum of exponentials, and the factor that
/// dropout puts on each. Shared by forward and gradient, so both see one definition.
pub(super) struct Rows<'a, R> {
    op: &'a Attention,
    pub e: AttentionExtents,
    q: &'a [R],
    k: &'a [R],
    lens: Option<&'a [u32]>,
    keys: Option<(&'a [u32], u32, &'a [u32])>,
}

impl<'a, R: Real> Rows<'a, R> {
    pub fn new(op: &'a Attention, q: &'a Tensor<R>, k: &'a Tensor<R>, extras: &[&'a Tensor<R>]) -> Self {
        let e = op.extents(&q.shape, &k.shape, &k.shape).unwrap_or_else(|m| unreachable!("checked before: {m}"));
        let lens = op.kv_len.then(|| extras[0].as_u32());
        let keys = &extras[usize::from(op.kv_len)..];
        let keys = op.dropout.map(|_| (keys[0].as_u32(), keys[1].as_u32()[0], keys[2].as_u32()));
        Self { op, e, q: q.as_real(), k: k.as_real(), lens, keys }
    }

    /// Index of (b, t, head, 0) in a `[B, T, heads, D]` tensor.
    pub fn at(&self, b: usize, t: usize, head: usize, queries: bool) -> usize {
        let (len, heads) = if queries { (self.e.tq, self.e.h) } else { (self.e.tk, self.e.g) };
        ((b * len + t) * heads + head) * self.e.d
    }

    /// Scaled scores of the keys that query (b, h, i) sees.
    pub fn scores(&self, b: usize, h: usize, i: usize) -> Vec<R> {
        let valid = self.lens.map_or(self.e.tk, |l| (l[b] as usize).min(self.e.tk));
        let (qi, g) = (self.at(b, i, h, true), h / (self.e.h / self.e.g));
        (0..self.op.visible(i, valid))
            .map(|j| {
                let kj = self.at(b, j, g, false);
                (0..self.e.d).map(|c| self.q[qi + c] * self.k[kj + c]).sum::<R>() * R::of(self.op.scale)
            })
            .collect()
    }

    /// 0 where dropout drops the weight, its scale where it keeps it.
    pub fn factor(&self, b: usize, h: usize, i: usize, j: usize) -> R {
        match (self.op.dropout, self.keys) {
            (Some(d), Some((seed, step, samples))) if !d.keeps_in_tile([seed[0], seed[1]], step, samples[b], h, i, j) => R::zero(),
            (Some(d), _) => R::of(d.scale()),
            _ => R::one(),
        }
    }
}

impl OpDef for Attention {
    const NAME: &'static str = "attention";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        let [q, k, v, extras @ ..] = inputs else { return Err("takes q, k and v".into()) };
        float(q, "q")?;
        if q.dtype != k.dtype || q.dtype != v.dtype {
            return Err(format!("q, k and v must have one dtype, found {q}, {k}, {v}"));
        }
        let e = self.extents(&q.shape, &k.shape, &v.shape)?;
        self.check_extras(extras, e.b)?;
        Ok(vec![TensorType::f32(q.shape.clone()), TensorType::f32([e.b, e.h, e.tq])])
    }

    fn storage(&self, output: usize) -> Storage {
        if output == 0 { Storage::Half } else { Storage::Wide }
    }

    fn operands(&self) -> &'static [usize] {
        &[0, 1, 2]
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let rows = Rows::new(self, inputs[0], inputs[1], &inputs[3..]);
        let (e, v) = (rows.e, inputs[2].as_real());
        let mut o = vec![R::zero(); e.b * e.tq * e.h * e.d];
        let mut lse = Vec::with_capacity(e.b * e.h * e.tq);
        for (b, h, i) in (0..e.b).flat_map(|b| (0..e.h).flat_map(move |h| (0..e.tq).map(move |i| (b, h, i)))) {
            let s = rows.scores(b, h, i);
            let max = s.iter().copied().fold(R::neg_infinity(), R::max);
            let sum: R = s.iter().map(|&s| (s - max).exp()).sum();
            lse.push(if s.is_empty() { R::zero() } else { max + sum.ln() });
            for (j, &s) in s.iter().enumerate() {
                let w = (s - max).exp() / sum * rows.factor(b, h, i, j);
                let (oi, vj) = (rows.at(b, i, h, true), rows.at(b, j, h / (e.h / e.g), false));
                (0..e.d).for_each(|c| o[oi + c] += w * v[vj + c]);
            }
        }
        vec![Tensor::real(inputs[0].shape.clone(), o), Tensor::real([e.b, e.h, e.tq], lse)]
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        let dy = cx.only(0)?;
        let qkv = &cx.inputs[..3];
        let inputs: Vec<Value> = [qkv, cx.outputs, &[dy], &cx.inputs[3..]].concat();
        let grads = cx.g.many(AttentionGrad { forward: self.clone() }, &inputs)?;
        Ok(grads.into_iter().map(Some).chain(vec![None; self.extras()]).collect())
    }

    fn sample(g: &mut Gen) -> Sample {
        let (op, tensors, extras) = Self::random(g);
        Sample::new(op, [tensors, extras].concat())
    }

    fn flops(&self, inputs: &[&TensorType], _: &[&TensorType]) -> u64 {
        self.extents(&inputs[0].shape, &inputs[1].shape, &inputs[2].shape).map_or(0, |e| {
            let pairs = (e.b * e.h * e.tq * e.tk) as u64 / if self.causal { 2 } else { 1 };
            pairs * (4 * e.d as u64 + 12)
        })
    }

    fn narrow(&self, cut: &Cut, inputs: &[&TensorType], output: &TensorType) -> Option<Vec<Option<Cut>>> {
        // Queries do not see each other. A causal mask and dropout count them from 0.
        let queries = cut.axis(&output.shape) == Some(1) && !self.causal;
        let mut parts = vec![None; inputs.len()];
        parts[0] = Some(*cut);
        (queries && (cut.start == 0 || self.dropout.is_none())).then_some(parts)
    }
}
