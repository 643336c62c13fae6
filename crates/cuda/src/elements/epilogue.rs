//! A loop as a function of another kernel, which hands over what it computed.

use super::text::pack;
use super::{Access, Loop, Place};
use crate::lower::Arg;
use std::fmt::Write;

impl Loop {
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
}
