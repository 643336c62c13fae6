//! `adam`: one step of Adam (Kingma and Ba 2015) or AdamW (Loshchilov and Hutter 2019) on one parameter, with
//! the bias corrections and the placing of eps that PyTorch uses.

use super::common::{arity, exact};
use crate::TensorType;
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Vjp};
use crate::tensor::{Real, Tensor};

/// Inputs p, m, v, g (one f32 type), then f32 scalars scale and lr, the step u32 `[]`, counted from 1, and apply
/// u32 `[]`. Outputs the new p, m, v; the old ones if apply is 0 (rule 5: a skipped step leaves them untouched).
///
/// g is multiplied by scale first (1 / weight of the batch, times the clip factor). Then
/// m' = b1 m + (1 - b1) g; v' = b2 v + (1 - b2) g^2;
/// p' = p - lr / (1 - b1^t) m' / (sqrt(v') / sqrt(1 - b2^t) + eps).
/// Weight decay: `decoupled` multiplies p by 1 - lr wd first (AdamW), else wd p is added to g (Adam).
#[derive(Clone, Debug, PartialEq)]
pub struct Adam {
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub eps: f64,
    /// Weight decay, 0 for none.
    pub weight_decay: f64,
    /// Decay acts on the weight directly (AdamW), not through the gradient.
    pub decoupled: bool,
}

/// The numbers of a step that are the same for all elements.
#[derive(Clone, Copy, Debug)]
pub struct AdamScalars {
    /// `lr / (1 - b1^t)`.
    pub step_size: f64,
    /// `1 / sqrt(1 - b2^t)`.
    pub root_scale: f64,
    /// Factor on the weight before the step.
    pub shrink: f64,
    /// Factor on the weight that is added to the gradient.
    pub add_decay: f64,
}

impl Adam {
    /// The scalars of step `t >= 1` at learning rate `lr`.
    pub fn scalars(&self, lr: f64, t: u32) -> AdamScalars {
        let correction = |beta: f64| 1.0 - beta.powf(f64::from(t));
        AdamScalars {
            step_size: lr / correction(self.beta1),
            root_scale: correction(self.beta2).sqrt().recip(),
            shrink: if self.decoupled { 1.0 - lr * self.weight_decay } else { 1.0 },
            add_decay: if self.decoupled { 0.0 } else { self.weight_decay },
        }
    }
}

impl OpDef for Adam {
    const NAME: &'static str = "adam";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        arity(inputs, 8)?;
        let p = TensorType::f32(inputs[0].shape.clone());
        for (i, what) in ["p", "m", "v", "g"].into_iter().enumerate() {
            exact(inputs[i], &p, what)?;
        }
        exact(inputs[4], &TensorType::f32([]), "the gradient's scale")?;
        exact(inputs[5], &TensorType::f32([]), "the learning rate")?;
        exact(inputs[6], &TensorType::u32([]), "the step")?;
        exact(inputs[7], &TensorType::u32([]), "apply")?;
        Ok(vec![p.clone(), p.clone(), p])
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let [p, m, v, g, scale, lr] = [0, 1, 2, 3, 4, 5].map(|i| inputs[i].as_real());
        let s = self.scalars(lr[0].f64(), inputs[6].as_u32()[0]);
        let [b1, b2, eps] = [self.beta1, self.beta2, self.eps].map(R::of);
        let one = R::one();
        let mut out = [p.to_vec(), m.to_vec(), v.to_vec()];
        let applied = if inputs[7].as_u32()[0] == 0 { 0 } else { p.len() };
        for i in 0..applied {
            let g = g[i] * scale[0] + R::of(s.add_decay) * p[i];
            let m = b1 * m[i] + (one - b1) * g;
            let v = b2 * v[i] + (one - b2) * g * g;
            let step = R::of(s.step_size) * m / (v.sqrt() * R::of(s.root_scale) + eps);
            (out[0][i], out[1][i], out[2][i]) = (p[i] * R::of(s.shrink) - step, m, v);
        }
        out.into_iter().map(|d| Tensor::real(inputs[0].shape.clone(), d)).collect()
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        cx.none("the optimiser ends a step")
    }

    fn sample(g: &mut Gen) -> Sample {
        let p = TensorType::f32(g.shape(0, 3));
        let op = Self { beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.1, decoupled: g.one_in(2) };
        let scalar = TensorType::f32([]);
        let inputs = vec![
            (p.clone(), Fill::Normal),
            (p.clone(), Fill::Normal),
            (p.clone(), Fill::Range(0.1, 2.0)),
            (p, Fill::Normal),
            (scalar.clone(), Fill::Range(0.5, 1.0)),
            (scalar, Fill::Range(0.001, 0.1)),
            (TensorType::u32([]), Fill::Range(1.0, 100.0)),
            (TensorType::u32([]), Fill::Below(3)),
        ];
        Sample::no_gradient(op, inputs)
    }

    fn flops(&self, inputs: &[&TensorType], _: &[&TensorType]) -> u64 {
        inputs[0].shape.numel() as u64 * 16
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        &[(0, 0), (1, 1), (2, 2)]
    }
}
