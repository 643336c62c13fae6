//! Ops whose result is, element by element, an expression of the elements of their inputs.

use crate::elements::{Access, Loop, Place};
use crate::lower::{Arg, Lowered, Lowering, Tensor, c_float};
use ocelli_ir::ops::LossScale;
use ocelli_ir::{DType, Op, Shape};

/// True if this file lowers the op.
pub fn is(op: &Op) -> bool {
    statements(op, 0).is_some()
}

/// Statements that declare `y0, ..` from `x0, ..`; `inputs` is how many there are. `c_last` is the last coordinate.
pub fn statements(op: &Op, inputs: usize) -> Option<String> {
    let one = |e: &str| Some(format!("        const float y0 = {e};\n"));
    match op {
        Op::Add(_) => one("x0 + x1"),
        Op::Sub(_) => one("x0 - x1"),
        Op::Mul(_) => one("x0 * x1"),
        Op::Div(_) => one("x0 / x1"),
        // As on the CPU, a number that is none is handed on.
        Op::Minimum(_) => one("x0 < x1 || x0 != x0 ? x0 : x1"),
        Op::Maximum(_) => one("x0 > x1 || x0 != x0 ? x0 : x1"),
        Op::Sqrt(_) => one("sqrtf(x0)"),
        Op::Exp(_) => one("expf(x0)"),
        Op::Cos(_) => one("cosf(x0)"),
        Op::Cast(_) => one("float(x0)"),
        Op::Gelu(_) => one("x0 * normal_cdf<HALF_RESULTS>(x0, normal_bell(x0))"),
        Op::GeluGrad(_) => Some(
            "        const float bell = normal_bell(x0);\n        \
             const float y0 = x1 * (normal_cdf<HALF_RESULTS>(x0, bell) + x0 * 0.39894228f * bell);\n"
                .into(),
        ),
        Op::GeluTanh(_) => one("0.5f * x0 * (1.0f + tanhf(0.79788456f * (x0 + 0.044715f * x0 * x0 * x0)))"),
        Op::GeluTanhGrad(_) => Some(
            "        const float t = tanhf(0.79788456f * (x0 + 0.044715f * x0 * x0 * x0));\n        \
             const float slope = 0.79788456f * (1.0f + 0.134145f * x0 * x0);\n        \
             const float y0 = x1 * 0.5f * (1.0f + t + x0 * (1.0f - t * t) * slope);\n"
                .into(),
        ),
        Op::Swiglu(_) => one("x0 / (1.0f + expf(-x0)) * x1"),
        Op::SwigluGrad(_) => Some(
            "        const float open = 1.0f / (1.0f + expf(-x0));\n        \
             const float y0 = x2 * x1 * open * (1.0f + x0 * (1.0f - open));\n        \
             const float y1 = x2 * x0 * open;\n"
                .into(),
        ),
        Op::NormalizePixels(op) => {
            let pick = |v: [f32; 3]| {
                let [a, b, c] = v.map(|x| c_float(f64::from(x)));
                format!("(channel == 0 ? {a} : channel == 1 ? {b} : {c})")
            };
            let (mean, std) = (pick(op.mean), pick(op.std));
            let channel = "        const u32 channel = c_last;\n";
            Some(format!("{channel}        const float y0 = (float(x0) / 255.0f - {mean}) / {std};\n"))
        }
        Op::Increment(_) if inputs == 1 => Some("        const u32 y0 = x0 + 1u;\n".into()),
        Op::Increment(_) => Some("        const u32 y0 = x0 + x1;\n".into()),
        Op::StepGate(_) => {
            Some("        const u32 y0 = fabsf(x0) < INF && fabsf(x2) < INF && x1 > 0.0f ? 1u : 0u;\n".into())
        }
        Op::LossScale(op) => {
            let [low, high] = LossScale::RANGE.map(c_float);
            let patience = op.interval;
            Some(format!(
                "        const bool finite = fabsf(x2) < INF, full = finite && x3 != 0u && x1 + 1u >= {patience}u;\n        \
                 const float y0 = !finite ? fmaxf(x0 * 0.5f, {low}) : full ? fminf(x0 * 2.0f, {high}) : x0;\n        \
                 const u32 y1 = !finite || full ? 0u : x3 != 0u ? x1 + 1u : x1;\n"
            ))
        }
        Op::Constant(op) => Some(match op.ty.dtype {
            DType::U32 | DType::U8 => format!("        const u32 y0 = {}u;\n", op.value as u32),
            _ => format!("        const float y0 = {};\n", c_float(op.value)),
        }),
        Op::Positions(_) => Some("        const u32 y0 = x0 + u32(c_last);\n".into()),
        _ => None,
    }
}

/// Element by element over the shape of the outputs, which the inputs are broadcast to.
pub fn lower(op: &Op, cx: &Lowering) -> Option<Lowered> {
    let body = statements(op, cx.ins.len())?;
    let space = cx.outs[0].view.shape.clone();
    let reads =
        cx.ins.iter().enumerate().map(|(i, t)| broadcast(Arg::In(i, 0), t, &space)).collect::<Option<_>>()?;
    let writes = cx
        .outs
        .iter()
        .enumerate()
        .map(|(i, t)| broadcast(Arg::Out(i, 0), t, &space))
        .collect::<Option<_>>()?;
    let coordinates = body.contains("c_last");
    let body = body.replace("c_last", &format!("c{}", space.len().max(1) - 1));
    let space = space.0;
    Some(Lowered::kernel(Loop { space, reads, writes, body, coordinates, ..Loop::default() }.kernel()))
}

/// An operand over a space that its shape broadcasts to.
pub fn broadcast(arg: Arg, t: &Tensor, space: &Shape) -> Option<Access> {
    let view = t.view.broadcast(space)?;
    Some(Access { arg, dtype: t.dtype, align: t.align, place: Place::Strides(view.strides) })
}
