//! The text of a loop's parts.

use super::{Access, BLOCK, Loop, Place};
use crate::lower::c_type;
use std::fmt::Write;

impl Loop {
    /// Tells functions whether what is made of their results is stored in 16 bits.
    pub(super) fn precision(&self) -> &'static str {
        match self.writes.iter().filter(|w| w.dtype.is_float()).all(|w| w.dtype.size() == 2) {
            true => "constexpr bool HALF_RESULTS = true;\n",
            false => "constexpr bool HALF_RESULTS = false;\n",
        }
    }

    /// The coordinates of group number `i` of `width` elements.
    pub(super) fn coordinates(&self, c: &mut String, width: usize, index: &str) {
        let last = self.space.len() - 1;
        let mut rest = "i".to_string();
        for axis in (0..self.space.len()).rev() {
            let n = if axis == last { self.space[axis] / width } else { self.space[axis] };
            let value = if axis == 0 { rest.clone() } else { format!("{rest} % {n}u") };
            let times = if axis == last { format!("({value}) * {width}u") } else { value };
            let name = if axis == last { "first".to_string() } else { format!("c{axis}") };
            let _ = writeln!(c, "    const {index} {name} = {times};");
            rest = format!("({rest} / {n}u)");
        }
    }

    /// The type in which a thread has what it reads of an operand.
    pub(super) fn loaded(&self, a: &Access) -> String {
        let ty = c_type(a.dtype);
        if self.step(a) == Some(0) { ty.into() } else { format!("Pack<{ty}>") }
    }

    /// Reads a thread's elements of operand number `i` to `{to}a{i}`.
    pub(super) fn load(
        &self,
        c: &mut String,
        to: &str,
        i: usize,
        a: &Access,
        width: usize,
    ) -> std::fmt::Result {
        let (at, step) = self.at(a);
        let guard = guard(a).map(|g| format!("if ({g}) ")).unwrap_or_default();
        match step {
            0 => writeln!(c, "    {to}a{i} = {{}}; {guard}{to}a{i} = r{i}[{at}];"),
            1 if width > 1 => {
                let ty = c_type(a.dtype);
                writeln!(c, "    {to}a{i} = {{}}; {guard}{to}a{i} = *(const Pack<{ty}>*)(r{i} + {at});")
            }
            _ => writeln!(
                c,
                "    {to}a{i} = {{}};\n    {guard}for (int v = 0; v < {width}; v++) {to}a{i}.e[v] = r{i}[{at} + v * {step}u];"
            ),
        }
    }

    pub(super) fn params(&self) -> Vec<String> {
        let reads = self.reads.iter().enumerate().filter(|(_, a)| a.place != Place::Sums);
        let reads = reads.map(|(i, a)| format!("const {}* r{i}", c_type(a.dtype)));
        let writes = self.writes.iter().enumerate().map(|(i, a)| format!("{}* w{i}", c_type(a.dtype)));
        let extra = self.extra.iter().enumerate().map(|(i, e)| format!("const {}* q{i}", c_type(e.1)));
        let outs = (0..self.row_outs.len()).map(|i| format!("float* o{i}"));
        reads.chain(writes).chain(extra).chain(outs).collect()
    }

    pub(super) fn head(&self, c: &mut String, threads: usize, index: &str) -> std::fmt::Result {
        let params = self.params();
        writeln!(
            c,
            "extern \"C\" __global__ void __launch_bounds__({BLOCK}) elements({}) {{",
            params.join(", ")
        )?;
        writeln!(c, "    enter();")?;
        writeln!(c, "    const {index} i = ({index})blockIdx.x * {BLOCK}u + threadIdx.x;")?;
        writeln!(c, "    if (i >= {threads}u) return;")
    }

    /// What is done with what was read, up to the end of the function.
    pub(super) fn lanes(&self, c: &mut String, width: usize, last: usize) -> std::fmt::Result {
        // Two 16-bit floats are one instruction to convert, in both directions.
        let paired = |a: &Access| width > 1 && a.dtype.is_float() && a.dtype.size() == 2;
        for (i, a) in self.writes.iter().enumerate() {
            writeln!(c, "    Pack<{}> b{i};", c_type(a.dtype))?;
            if paired(a) {
                writeln!(c, "    float f{i}[{width}];")?;
            }
        }
        for (i, a) in self.reads.iter().enumerate().filter(|(_, a)| paired(a) && self.step(a) != Some(0)) {
            writeln!(
                c,
                "    float g{i}[{width}];\n#pragma unroll\n    for (int k = 0; k < {width} / 2; k++) {{"
            )?;
            writeln!(c, "        const float2 pair = unpack2<{}>(((const u32*)&a{i})[k]);", c_type(a.dtype))?;
            writeln!(c, "        g{i}[2 * k] = pair.x, g{i}[2 * k + 1] = pair.y;\n    }}")?;
        }
        c.push_str(&self.declared);
        let each = |c: &mut String, statements: &str| -> std::fmt::Result {
            writeln!(c, "#pragma unroll\n    for (u32 v = 0; v < {width}u; v++) {{")?;
            writeln!(c, "        const auto c{last} = first + v;")?;
            for (i, a) in self.reads.iter().enumerate() {
                let name = self.name;
                let element = match self.step(a) {
                    None => "t[v]".into(),
                    Some(0) => format!("a{i}"),
                    Some(_) if paired(a) => format!("g{i}[v]"),
                    Some(_) => format!("a{i}.e[v]"),
                };
                match a.dtype.is_float() {
                    true => writeln!(c, "        const float {name}{i} = to_f32({element});")?,
                    false => writeln!(c, "        const u32 {name}{i} = {element};")?,
                }
            }
            c.push_str(statements);
            Ok(())
        };
        for stage in &self.stages {
            each(c, &stage.each)?;
            c.push_str("    }\n");
            c.push_str(&stage.row);
        }
        each(c, &self.body)?;
        for (i, a) in self.writes.iter().enumerate() {
            match a.dtype.is_float() {
                true if paired(a) => writeln!(c, "        f{i}[v] = y{i};")?,
                true => writeln!(c, "        b{i}.e[v] = from_f32<{}>(y{i});", c_type(a.dtype))?,
                false => writeln!(c, "        b{i}.e[v] = y{i};")?,
            }
        }
        c.push_str("    }\n");
        for (i, a) in self.writes.iter().enumerate().filter(|(_, a)| paired(a)) {
            writeln!(c, "#pragma unroll\n    for (int k = 0; k < {width} / 2; k++)")?;
            let ty = c_type(a.dtype);
            writeln!(c, "        ((u32*)&b{i})[k] = pack2<{ty}>(f{i}[2 * k], f{i}[2 * k + 1]);")?;
        }
        for (i, a) in self.writes.iter().enumerate() {
            let (at, step) = self.at(a);
            let guard = guard(a).map(|g| format!("if ({g}) ")).unwrap_or_default();
            match step {
                1 if width > 1 => {
                    writeln!(c, "    {guard}*(Pack<{}>*)(w{i} + {at}) = b{i};", c_type(a.dtype))?
                }
                _ => writeln!(
                    c,
                    "    {guard}for (int v = 0; v < {width}; v++) w{i}[{at} + v * {step}u] = b{i}.e[v];"
                )?,
            }
        }
        c.push_str("}\n");
        Ok(())
    }
}

/// Neighbours that are moved at once.
pub(super) fn pack(width: usize) -> String {
    format!(
        "template <typename E> struct alignas(sizeof(E) * {width} > 16 ? 16 : sizeof(E) * {width}) Pack {{ E e[{width}]; }};\n"
    )
}

fn guard(a: &Access) -> Option<&str> {
    if let Place::At(_, _, Some(guard)) = &a.place { Some(guard) } else { None }
}
