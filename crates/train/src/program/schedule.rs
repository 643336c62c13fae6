//! The learning rate as a function of the optimiser step, computed in the graph from the step counter: a skipped
//! step does not advance it (rule 5), and a replay needs no new constant.

use ocelli_ir::ops::Constant;
use ocelli_ir::{DType, Graph, GraphError, TensorType, Value};

/// What happens to the rate after warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decay {
    /// It stays.
    Constant,
    /// Half a cosine down to 0 (Loshchilov and Hutter 2017).
    Cosine,
    /// A straight line down to 0.
    Linear,
}

/// Warm-up and decay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// Steps over which the rate rises linearly; step 0 already has 1 / warmup of it.
    pub warmup: u64,
    /// Steps until the rate reaches 0; only used by decays.
    pub total: u64,
    /// The decay.
    pub decay: Decay,
}

impl Schedule {
    /// The same rate at every step.
    pub const CONSTANT: Self = Self { warmup: 0, total: 0, decay: Decay::Constant };

    /// The rate f32 `[]` for the base rate f32 `[]` at `step`, u32 `[]`, counted from 0.
    pub(super) fn rate(&self, g: &mut Graph, base: Value, step: Value) -> Result<Value, GraphError> {
        let number = |g: &mut Graph, x: f64| g.one(Constant { value: x, ty: TensorType::f32([]) }, &[]);
        let (zero, one) = (number(g, 0.0)?, number(g, 1.0)?);
        let mut rate = base;
        let step = g.cast(step, DType::F32)?;
        if self.warmup > 0 {
            let (next, per) = (g.add(step, one)?, number(g, 1.0 / self.warmup as f64)?);
            let rising = g.mul(next, per)?;
            let factor = g.minimum(rising, one)?;
            rate = g.mul(rate, factor)?;
        }
        if self.decay == Decay::Constant {
            return Ok(rate);
        }
        let span = self.total.saturating_sub(self.warmup).max(1);
        let (start, per) = (number(g, self.warmup as f64)?, number(g, 1.0 / span as f64)?);
        let behind = g.sub(step, start)?;
        let behind = g.maximum(behind, zero)?;
        let part = g.mul(behind, per)?;
        let part = g.minimum(part, one)?;
        let factor = if self.decay == Decay::Linear {
            g.sub(one, part)?
        } else {
            let (pi, half) = (number(g, std::f64::consts::PI)?, number(g, 0.5)?);
            let angle = g.mul(part, pi)?;
            let cos = g.cos(angle)?;
            let up = g.add(cos, one)?;
            g.mul(up, half)?
        };
        g.mul(rate, factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocelli_ir::reference::evaluate;
    use ocelli_ir::tensor::Tensor;
    use std::collections::HashMap;

    fn rate(schedule: Schedule, step: u32) -> f64 {
        let mut g = Graph::new();
        let base = g.input("lr", TensorType::f32([]));
        let at = g.input("step", TensorType::u32([]));
        let rate = schedule.rate(&mut g, base, at).unwrap();
        g.output("rate", rate);
        let lr = Tensor::<f64>::real([], vec![2.0]);
        let inputs = HashMap::from([("lr".into(), lr), ("step".into(), Tensor::u32([], vec![step]))]);
        evaluate(&g, &inputs, &mut HashMap::new()).unwrap()[0].as_real()[0]
    }

    #[test]
    fn warm_up_and_decays() {
        let of = |decay| Schedule { warmup: 10, total: 110, decay };
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} {b}");
        close(rate(Schedule::CONSTANT, 1_000_000), 2.0);
        close(rate(of(Decay::Constant), 0), 0.2);
        close(rate(of(Decay::Constant), 9), 2.0);
        close(rate(of(Decay::Cosine), 10), 2.0);
        close(rate(of(Decay::Cosine), 60), 1.0);
        close(rate(of(Decay::Linear), 85), 0.5);
        close(rate(of(Decay::Linear), 110), 0.0);
        close(rate(of(Decay::Cosine), 500), 0.0);
    }
}
