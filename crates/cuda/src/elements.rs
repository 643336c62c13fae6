//! Kernels that run over the elements of a space, made from the expression that computes one: copies, arithmetic, casts,
//! everything where each element of the result is found by itself.
//!
//! A thread takes `V` neighbours along the last axis, loaded and stored at once where they lie side by side at an address
//! that allows it. All arithmetic is in f32 whatever is stored. In an expression `x0, x1, ..` are the elements read, `y0,
//! y1, ..` those to be written, `c0, c1, ..` the coordinates, the last one included.

use crate::lower::{Arg, KernelCall, c_type};
use ocelli_ir::DType;
use std::fmt::Write;

/// Threads of a block.
const BLOCK: usize = 256;

/// How the elements of an operand are found.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// Distance of neighbours along each axis of the space.
    Strides(Vec<usize>),
    /// The index of the first of a thread's elements, an expression of coordinates and of what the prologue declares; the
    /// distance along the last axis; and a condition, without which 0 is read and nothing is written.
    At(String, usize, Option<String>),
    /// Read only: what a kernel hands to its epilogue.
    Sums,
}

/// An operand.
#[derive(Clone, Debug)]
pub struct Access {
    /// First element.
    pub arg: Arg,
    /// Type of an element.
    pub dtype: DType,
    /// Power of two that the address is a multiple of.
    pub align: usize,
    /// Where its elements are.
    pub place: Place,
}

impl Access {
    /// What a kernel hands to its epilogue.
    pub const fn sums() -> Self {
        Self { arg: Arg::Work(0), dtype: DType::F32, align: 16, place: Place::Sums }
    }
}

/// What the elements that a kernel reads are called in its statements: `x0, x1, ..` or `e0, e1, ..`.
#[derive(Clone, Copy, Debug, Default)]
pub enum ReadName {
    /// `x`: statements of one op.
    #[default]
    X,
    /// `e`: statements of several ops, whose own `x` are declared in blocks.
    E,
}

impl std::fmt::Display for ReadName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Self::X) { "x" } else { "e" })
    }
}

/// What is done before the last statements of an epilogue: statements for each neighbour, then once with all of a row's
/// lanes. Values that go from one to the next are arrays that [`Loop::declared`] declares.
#[derive(Clone, Debug)]
pub struct Stage {
    /// As [`Loop::body`].
    pub each: String,
    /// Statements outside of the loop over neighbours.
    pub row: String,
}

/// A kernel in the making.
#[derive(Clone, Debug, Default)]
pub struct Loop {
    /// Extents.
    pub space: Vec<usize>,
    /// What is read: `x0, x1, ..`.
    pub reads: Vec<Access>,
    /// What is written: `y0, y1, ..`.
    pub writes: Vec<Access>,
    /// Addresses that only the prologue reads: `q0, q1, ..`, with their types.
    pub extra: Vec<(Arg, DType)>,
    /// Addresses of f32 that statements of rows write: `o0, o1, ..`.
    pub row_outs: Vec<Arg>,
    /// Of an epilogue: what comes before `body`.
    pub stages: Vec<Stage>,
    /// Of an epilogue: declarations of what lives longer than a stage; `width` neighbours are `WIDTH`.
    pub declared: String,
    /// Of an epilogue: how many sums of columns it adds to, as `columns[sum][v]`.
    pub columns: usize,
    /// Statements before anything is read.
    pub prologue: String,
    /// Statements that declare every `y`.
    pub body: String,
    /// True if a statement names a coordinate.
    pub coordinates: bool,
    /// What the elements read are called.
    pub name: ReadName,
}

impl Loop {
    /// Each element of a space from one operand to another, converted if they differ in type.
    pub fn copy(space: Vec<usize>, from: Access, to: Access) -> Self {
        let body =
            format!("        const {} y0 = x0;\n", if from.dtype.is_float() { "float" } else { "u32" });
        Self { space, reads: vec![from], writes: vec![to], body, ..Self::default() }
    }

    /// The kernel. An empty space gives one that does nothing.
    pub fn kernel(mut self) -> KernelCall {
        if !self.coordinates {
            self.collapse(false);
        }
        self.scalar();
        let width = self.width();
        let threads = self.space.iter().product::<usize>() / width;
        let index = if self.numel_reach() < 1 << 31 { "u32" } else { "u64" };
        let mut text = pack(width) + self.precision();
        // Writing to a string cannot fail.
        let _ = self.head(&mut text, threads, index);
        self.coordinates(&mut text, width, index);
        text.push_str(&self.prologue);
        for (i, a) in self.reads.iter().enumerate() {
            let _ = writeln!(text, "    {} a{i};", self.loaded(a));
            let _ = self.load(&mut text, "", i, a, width);
        }
        let _ = self.lanes(&mut text, width, self.space.len() - 1);
        KernelCall {
            entry: "elements",
            source: text,
            grid: [threads.div_ceil(BLOCK).max(1) as u32, 1, 1],
            block: BLOCK as u32,
            shared: 0,
            args: self.args(),
        }
    }

    /// A function of another kernel instead, which is given `width` neighbours of what that computes at a time: its text,
    /// which defines the kernel's further parameters and arguments, and their addresses. What it reads is loaded by functions
    /// of their own, so that the kernel can do it long before: `fixed_reads` what is the same in all rows, `epilogue_reads`
    /// the rest. If there are stages, a row's lanes must call it together. None if some operand does not lie so that as many
    /// neighbours can be moved at once.
    pub fn epilogue(mut self, width: usize) -> Option<(String, Vec<Arg>)> {
        self.scalar();
        if !self.coordinates {
            self.collapse(true);
        }
        let last = self.space.len() - 1;
        let fits = self.space[last].is_multiple_of(width)
            && self.all_take(width, last)
            && self.numel_reach() < 1 << 31;
        if !fits {
            return None;
        }
        let params = self.params();
        let mut text = pack(width) + self.precision();
        let names: Vec<&str> = params.iter().filter_map(|p| p.rsplit([' ', '*']).next()).collect();
        let _ = writeln!(text, "#define EPILOGUE_PARAMS , {}", params.join(", "));
        let _ = writeln!(text, "#define EPILOGUE_ARGS , {}", names.join(", "));
        let lanes = self.space[last] / width;
        let _ =
            writeln!(text, "#define WIDTH {width}\n#define LANES {lanes}\n#define COLUMNS {}", self.columns);
        let columns = if self.columns > 0 { ", float (&columns)[COLUMNS][WIDTH]" } else { "" };
        let _ =
            writeln!(text, "#define EPILOGUE_COLUMNS {}", if self.columns > 0 { ", columns" } else { "" });
        let fixed = |a: &Access| match &a.place {
            Place::Strides(s) => (0..last).all(|axis| s[axis] == 0 || self.space[axis] == 1),
            _ => false,
        };
        let read = || self.reads.iter().enumerate().filter(|(_, a)| a.place != Place::Sums);
        for (ty, name, wanted) in [("Fixed", "fixed_reads", true), ("Reads", "epilogue_reads", false)] {
            let these: Vec<_> = read().filter(|(_, a)| fixed(a) == wanted).collect();
            let _ = writeln!(text, "struct {ty} {{");
            for (i, a) in &these {
                let _ = writeln!(text, "    {} a{i};", self.loaded(a));
            }
            let _ =
                writeln!(text, "}};\n__device__ __forceinline__ {ty} {name}(const u32 i EPILOGUE_PARAMS) {{");
            self.coordinates(&mut text, width, "u32");
            let _ = writeln!(text, "    {ty} to;");
            for (i, a) in &these {
                let _ = self.load(&mut text, "to.", *i, a, width);
            }
            text.push_str("    return to;\n}\n");
        }
        let _ = writeln!(
            text,
            "__device__ __forceinline__ void epilogue(const u32 i, const float (&t)[WIDTH], const Fixed& fixed, const Reads& \
             reads{columns} EPILOGUE_PARAMS) {{"
        );
        self.coordinates(&mut text, width, "u32");
        for (i, a) in read() {
            let from = if fixed(a) { "fixed" } else { "reads" };
            let _ = writeln!(text, "    const auto a{i} = {from}.a{i};");
        }
        text.push_str(&self.prologue);
        let _ = self.lanes(&mut text, width, last);
        Some((text, self.args()))
    }

    /// Tells functions whether what is made of their results is stored in 16 bits.
    fn precision(&self) -> &'static str {
        match self.writes.iter().filter(|w| w.dtype.is_float()).all(|w| w.dtype.size() == 2) {
            true => "constexpr bool HALF_RESULTS = true;\n",
            false => "constexpr bool HALF_RESULTS = false;\n",
        }
    }

    /// A space of no axes is one of one element.
    fn scalar(&mut self) {
        if self.space.is_empty() {
            self.space.push(1);
            for access in self.reads.iter_mut().chain(&mut self.writes) {
                if let Place::Strides(strides) = &mut access.place {
                    strides.push(0);
                }
            }
        }
    }

    fn args(&self) -> Vec<Arg> {
        let operands =
            self.reads.iter().chain(&self.writes).filter(|a| a.place != Place::Sums).map(|a| a.arg);
        operands.chain(self.extra.iter().map(|e| e.0)).chain(self.row_outs.iter().copied()).collect()
    }

    /// The coordinates of group number `i` of `width` elements.
    fn coordinates(&self, c: &mut String, width: usize, index: &str) {
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
    fn loaded(&self, a: &Access) -> String {
        let ty = c_type(a.dtype);
        if self.step(a) == Some(0) { ty.into() } else { format!("Pack<{ty}>") }
    }

    /// Reads a thread's elements of operand number `i` to `{to}a{i}`.
    fn load(&self, c: &mut String, to: &str, i: usize, a: &Access, width: usize) -> std::fmt::Result {
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

    fn params(&self) -> Vec<String> {
        let reads = self.reads.iter().enumerate().filter(|(_, a)| a.place != Place::Sums);
        let reads = reads.map(|(i, a)| format!("const {}* r{i}", c_type(a.dtype)));
        let writes = self.writes.iter().enumerate().map(|(i, a)| format!("{}* w{i}", c_type(a.dtype)));
        let extra = self.extra.iter().enumerate().map(|(i, e)| format!("const {}* q{i}", c_type(e.1)));
        let outs = (0..self.row_outs.len()).map(|i| format!("float* o{i}"));
        reads.chain(writes).chain(extra).chain(outs).collect()
    }

    fn head(&self, c: &mut String, threads: usize, index: &str) -> std::fmt::Result {
        let params = self.params();
        writeln!(
            c,
            "extern \"C\" __global__ void __launch_bounds__({BLOCK}) elements({}) {{",
            params.join(", ")
        )?;
        writeln!(c, "    const {index} i = ({index})blockIdx.x * {BLOCK}u + threadIdx.x;")?;
        writeln!(c, "    if (i >= {threads}u) return;")
    }

    /// What is done with what was read, up to the end of the function.
    fn lanes(&self, c: &mut String, width: usize, last: usize) -> std::fmt::Result {
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

    /// Distance of a thread's elements; none for what is handed over.
    fn step(&self, a: &Access) -> Option<usize> {
        (a.place != Place::Sums).then(|| self.at(a).1)
    }

    /// Index of a thread's first element, and the distance of its elements.
    fn at(&self, a: &Access) -> (String, usize) {
        let last = self.space.len() - 1;
        match &a.place {
            Place::At(at, step, _) => (format!("({at})"), *step),
            Place::Sums => unreachable!("sums are handed over, not found"),
            Place::Strides(s) => {
                let term = |axis: usize| {
                    let name = if axis == last { "first".into() } else { format!("c{axis}") };
                    if s[axis] == 1 { name } else { format!("{name} * {}u", s[axis]) }
                };
                let terms: Vec<String> =
                    (0..=last).filter(|&i| s[i] != 0 && self.space[i] > 1).map(term).collect();
                let at = if terms.is_empty() { "0".into() } else { terms.join(" + ") };
                // An axis of one element has no neighbours: it is as good as side by side.
                (format!("({at})"), if self.space[last] == 1 { 1 } else { s[last] })
            }
        }
    }

    /// How many neighbours a thread takes.
    fn width(&self) -> usize {
        let most = if self.reads.iter().chain(&self.writes).any(|a| a.dtype.size() == 2) { 8 } else { 4 };
        let last = self.space.len() - 1;
        let mut width = most;
        while width > 1 && !(self.space[last].is_multiple_of(width) && self.all_take(width, last)) {
            width /= 2;
        }
        width
    }

    fn all_take(&self, width: usize, last: usize) -> bool {
        self.reads.iter().chain(&self.writes).all(|a| {
            let unit = (a.dtype.size() * width).min(16);
            match &a.place {
                Place::Strides(s) => {
                    let whole =
                        (0..last).all(|i| self.space[i] == 1 || (s[i] * a.dtype.size()).is_multiple_of(unit));
                    s[last] == 0 || (s[last] == 1 && whole && a.align.is_multiple_of(unit))
                }
                // Rows of one width: whoever writes such a place gives rows that start where the width allows it.
                Place::At(_, step, _) => *step == 0 || (*step == 1 && a.align.is_multiple_of(unit)),
                Place::Sums => true,
            }
        })
    }

    /// Joins axes that follow each other without a gap in every operand, perhaps all but the last.
    fn collapse(&mut self, keep_last: bool) {
        let found = || self.reads.iter().chain(&self.writes).filter(|a| a.place != Place::Sums);
        let all = |a: &Access| if let Place::Strides(s) = &a.place { Some(s.clone()) } else { None };
        let Some(mut strides) = found().map(all).collect::<Option<Vec<_>>>() else {
            return;
        };
        let mut space: Vec<usize> = Vec::new();
        let mut kept: Vec<Vec<usize>> = vec![Vec::new(); strides.len()];
        for (axis, &n) in self.space.iter().enumerate() {
            let last = keep_last && axis + 1 == self.space.len();
            if n == 1 && !last {
                continue;
            }
            let joins = !last
                && !space.is_empty()
                && kept
                    .iter()
                    .zip(&strides)
                    .all(|(k, s)| k.last().is_some_and(|&before| before == n * s[axis]));
            match space.last_mut() {
                Some(have) if joins => {
                    *have *= n;
                    kept.iter_mut()
                        .zip(&strides)
                        .for_each(|(k, s)| *k.last_mut().unwrap_or(&mut 0) = s[axis]);
                }
                _ => {
                    space.push(n);
                    kept.iter_mut().zip(&strides).for_each(|(k, s)| k.push(s[axis]));
                }
            }
        }
        strides = kept;
        self.space = space;
        let found = self.reads.iter_mut().chain(&mut self.writes).filter(|a| a.place != Place::Sums);
        for (access, strides) in found.zip(strides) {
            access.place = Place::Strides(strides);
        }
    }

    /// The largest index that any operand or the space reaches.
    fn numel_reach(&self) -> usize {
        let reach = |a: &Access| match &a.place {
            Place::Strides(s) => s.iter().zip(&self.space).map(|(s, n)| s * n.saturating_sub(1)).sum(),
            Place::At(..) | Place::Sums => 0,
        };
        let operands = self.reads.iter().chain(&self.writes).map(reach).max().unwrap_or(0);
        operands.max(self.space.iter().product())
    }
}

/// Neighbours that are moved at once.
fn pack(width: usize) -> String {
    format!(
        "template <typename E> struct alignas(sizeof(E) * {width} > 16 ? 16 : sizeof(E) * {width}) Pack {{ E e[{width}]; }};\n"
    )
}

fn guard(a: &Access) -> Option<&str> {
    if let Place::At(_, _, Some(guard)) = &a.place { Some(guard) } else { None }
}
