//! `adam`: parameter and moments in place, one pass over memory.

use super::Kernel;
use super::elementwise::CHUNK;
use crate::buffer::Buffer;
use crate::cx::Cx;
use crate::mem::{Cut, Inputs, Outputs, par_tiles};
use ocelli_ir::DType;
use ocelli_ir::TensorType;
use ocelli_ir::ops::Adam;

/// The numbers of a step, in the precision of the elements.
#[derive(Clone, Copy)]
struct Step {
    b1: f32,
    b2: f32,
    eps: f32,
    /// Factor on the gradient.
    scale: f32,
    add_decay: f32,
    shrink: f32,
    size: f32,
    root_scale: f32,
}

impl Step {
    #[inline(always)]
    fn apply(&self, p: &mut f32, m: &mut f32, v: &mut f32, g: f32) {
        let g = g * self.scale + self.add_decay * *p;
        *m = self.b1 * *m + (1.0 - self.b1) * g;
        *v = self.b2 * *v + (1.0 - self.b2) * g * g;
        *p = *p * self.shrink - self.size * *m / (v.sqrt() * self.root_scale + self.eps);
    }
}

impl Kernel for Adam {
    fn supports(&self, inputs: &[TensorType]) -> bool {
        inputs[0].dtype == DType::F32
    }

    fn run(&self, cx: &Cx<'_>, _: &mut Buffer, ins: Inputs<'_>, outs: Outputs<'_>) {
        // The outputs hold the old contents: a skipped step leaves them.
        if ins.scalar::<u32>(7) == 0 {
            return;
        }
        let s = self.scalars(f64::from(ins.scalar::<f32>(5)), ins.scalar(6));
        let step = Step {
            b1: self.beta1 as f32,
            b2: self.beta2 as f32,
            eps: self.eps as f32,
            scale: ins.scalar(4),
            add_decay: s.add_decay as f32,
            shrink: s.shrink as f32,
            size: s.step_size as f32,
            root_scale: s.root_scale as f32,
        };
        let g = ins.dense::<f32>(3);
        let flat = outs.take::<f32, 3>().map(|out| (out.reshape(&[g.len()]), [Cut::new(0, CHUNK)]));
        par_tiles(cx, g.len(), flat, |[chunk], tiles| {
            let [p, m, v] = tiles.map(|t| t.dense());
            let g = &g[chunk * CHUNK..][..p.len()];
            cx.simd(
                #[inline(always)]
                || {
                    for (((p, m), v), &g) in p.iter_mut().zip(m.iter_mut()).zip(v.iter_mut()).zip(g) {
                        step.apply(p, m, v, g);
                    }
                },
            );
        });
    }
}
