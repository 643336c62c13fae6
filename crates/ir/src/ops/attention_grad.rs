//! `attention_grad`: the gradients of an attention, its weights recomputed from the stored row sums.

use super::attention::{Attention, Rows};
use super::common::{exact, shaped};
use crate::TensorType;
use crate::op::{Fill, Gen, Gradients, Inferred, OpDef, Sample, Storage, Vjp};
use crate::tensor::{Real, Tensor};

/// Inputs q, k, v, o, lse, do, then the extra inputs of the forward op. Outputs dq, dk, dv.
///
/// With p the weights before dropout, f the dropout factor, and delta_i = sum(do_i o_i):
/// dv_j += p f do_i; ds = p (f (do_i v_j) - delta_i); dq_i += scale ds k_j; dk_j += scale ds q_i.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionGrad {
    /// The op whose gradient this is.
    pub forward: Attention,
}

impl OpDef for AttentionGrad {
    const NAME: &'static str = "attention_grad";

    fn infer(&self, inputs: &[&TensorType]) -> Inferred {
        let [q, k, v, o, lse, dy, extras @ ..] = inputs else { return Err("takes q, k, v, o, lse and do".into()) };
        let e = self.forward.extents(&q.shape, &k.shape, &v.shape)?;
        shaped(o, &q.shape, "o")?;
        shaped(dy, &q.shape, "do")?;
        exact(lse, &TensorType::f32([e.b, e.h, e.tq]), "lse")?;
        self.forward.check_extras(extras, e.b)?;
        Ok([q, k, v].map(|ty| TensorType::f32(ty.shape.clone())).into())
    }

    fn storage(&self, _: usize) -> Storage {
        Storage::Half
    }

    fn operands(&self) -> &'static [usize] {
        &[0, 1, 2, 3, 5]
    }

    fn eval<R: Real>(&self, inputs: &[&Tensor<R>]) -> Vec<Tensor<R>> {
        let rows = Rows::new(&self.forward, inputs[0], inputs[1], &inputs[6..]);
        let e = rows.e;
        let [q, k, v, o, lse, dy] = [0, 1, 2, 3, 4, 5].map(|i| inputs[i].as_real());
        let mut grads = [0, 1, 2].map(|i| vec![R::zero(); inputs[i].shape.numel()]);
        let [dq, dk, dv] = &mut grads;
        let scale = R::of(self.forward.scale);
        for (b, h, i) in (0..e.b).flat_map(|b| (0..e.h).flat_map(move |h| (0..e.tq).map(move |i| (b, h, i)))) {
            let qi = rows.at(b, i, h, true);
            let delta: R = (0..e.d).map(|c| dy[qi + c] * o[qi + c]).sum();
            for (j, s) in rows.scores(b, h, i).into_iter().enumerate() {
                let kj = rows.at(b, j, h / (e.h / e.g), false);
                let p = (s - lse[(b * e.h + h) * e.tq + i]).exp();
                let f = rows.factor(b, h, i, j);
                let dyv: R = (0..e.d).map(|c| dy[qi + c] * v[kj + c]).sum();
                let ds = p * (f * dyv - delta) * scale;
                for c in 0..e.d {
                    dv[kj + c] += p * f * dy[qi + c];
                    dq[qi + c] += ds * k[kj + c];
                    dk[kj + c] += ds * q[qi + c];
                }
            }
        }
        grads.into_iter().enumerate().map(|(i, d)| Tensor::real(inputs[i].shape.clone(), d)).collect()
    }

    fn vjp(&self, cx: &mut Vjp<'_>) -> Gradients {
        cx.none("second derivatives are not offered")
    }

    fn sample(g: &mut Gen) -> Sample {
        let (forward, qkv, extras) = Attention::random(g);
        let (q, lse) = (qkv[0].0.clone(), TensorType::f32([qkv[0].0.shape[0], qkv[0].0.shape[2], qkv[0].0.shape[1]]));
        // Any lse above the scores keeps the weights bounded; the formulas do not need it to be the true one.
        let more = vec![(q.clone(), Fill::Normal), (lse, Fill::Range(2.0, 4.0)), (q, Fill::Normal)];
        Sample::no_gradient(Self { forward }, [qkv, more, extras].concat())
    }

    fn flops(&self, inputs: &[&TensorType], outputs: &[&TensorType]) -> u64 {
        self.forward.flops(&inputs[..3], outputs) / 2 * 5
    }
}
