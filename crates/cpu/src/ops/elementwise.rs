//! What the element-by-element ops share: walking their inputs in step with the output, in fixed chunks.

use crate::cx::Cx;
use crate::layout::Layout;
use crate::mem::{Cut, Elem, Inputs, Outputs, Src, par_tiles};
use crate::walk::Walk;

/// Elements of a chunk: 64 KB of output, so that a chunk and its inputs fit in a core's second-level cache.
pub const CHUNK: usize = 16 * 1024;

/// `out[i] = f(a[i])`; reads any view.
pub fn unary<T: Elem>(
    cx: &Cx<'_>,
    ins: Inputs<'_>,
    outs: Outputs<'_>,
    f: impl Fn(T) -> f32 + Copy + Sync + Send,
) {
    let a: Src<'_, T> = ins.get(0);
    let [out] = outs.take::<f32, 1>();
    let n = out.layout().numel();
    let walk = Walk::new([&a.layout]);
    let [step] = walk.inner();
    par_tiles(cx, n, [(out.reshape(&[n]), [Cut::new(0, CHUNK)])], |[chunk], [out]| {
        let (out, first) = (out.dense(), chunk * CHUNK);
        cx.simd(
            #[inline(always)]
            || {
                walk.runs(
                    first..first + out.len(),
                    #[inline(always)]
                    |at, len, [i]| {
                        let out = &mut out[at..at + len];
                        if step == 1 {
                            for (o, &x) in out.iter_mut().zip(&a.data[i..i + len]) {
                                *o = f(x);
                            }
                        } else {
                            for (j, o) in out.iter_mut().enumerate() {
                                *o = f(a.data[i + j * step]);
                            }
                        }
                    },
                );
            },
        );
    });
}

/// `out[i] = f(a[i], b[i])` with broadcasting; reads any views.
pub fn binary(
    cx: &Cx<'_>,
    ins: Inputs<'_>,
    outs: Outputs<'_>,
    f: impl Fn(f32, f32) -> f32 + Copy + Sync + Send,
) {
    let (a, b): (Src<'_, f32>, Src<'_, f32>) = (ins.get(0), ins.get(1));
    let [out] = outs.take::<f32, 1>();
    let n = out.layout().numel();
    let spread = |l: &Layout| l.broadcast(out.layout().shape());
    let walk = Walk::new([&spread(&a.layout), &spread(&b.layout)]);
    let steps = walk.inner();
    par_tiles(cx, n, [(out.reshape(&[n]), [Cut::new(0, CHUNK)])], |[chunk], [out]| {
        let (out, first) = (out.dense(), chunk * CHUNK);
        cx.simd(
            #[inline(always)]
            || {
                walk.runs(
                    first..first + out.len(),
                    #[inline(always)]
                    |at, len, [i, j]| run(&mut out[at..at + len], &a.data[i..], &b.data[j..], steps, f),
                );
            },
        );
    });
}

/// One run of a binary op.
#[inline(always)]
fn run(out: &mut [f32], a: &[f32], b: &[f32], steps: [usize; 2], f: impl Fn(f32, f32) -> f32) {
    match steps {
        [1, 1] => {
            for ((o, &x), &y) in out.iter_mut().zip(a).zip(b) {
                *o = f(x, y);
            }
        }
        [1, 0] => {
            let y = b[0];
            for (o, &x) in out.iter_mut().zip(a) {
                *o = f(x, y);
            }
        }
        [0, 1] => {
            let x = a[0];
            for (o, &y) in out.iter_mut().zip(b) {
                *o = f(x, y);
            }
        }
        [p, q] => {
            for (i, o) in out.iter_mut().enumerate() {
                *o = f(a[i * p], b[i * q]);
            }
        }
    }
}

/// Implements the kernel of an op of one or two floats from its formula.
macro_rules! formula {
    ($op:ident, |$a:ident, $b:ident| $body:expr) => {
        $crate::ops::elementwise::formula!(
            $op,
            binary,
            #[inline(always)]
            |$a: f32, $b: f32| $body
        );
    };
    ($op:ident, |$a:ident| $body:expr) => {
        $crate::ops::elementwise::formula!(
            $op,
            unary,
            #[inline(always)]
            |$a: f32| $body
        );
    };
    ($op:ident, $kind:ident, $f:expr) => {
        impl $crate::ops::Kernel for ocelli_ir::ops::$op {
            fn reads(&self, _: usize, _: &ocelli_ir::View) -> bool {
                true
            }

            fn run(
                &self,
                cx: &$crate::cx::Cx<'_>,
                _: &mut $crate::buffer::Buffer,
                ins: $crate::mem::Inputs<'_>,
                outs: $crate::mem::Outputs<'_>,
            ) {
                $crate::ops::elementwise::$kind(cx, ins, outs, $f);
            }
        }
    };
}
pub(super) use formula;
