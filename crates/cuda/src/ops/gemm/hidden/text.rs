//! The text of a hidden layer's own functions.

use super::super::Wgmma;
use super::{HALF, Last, Layer, Loads, SLICE, Slice, sizes};
use crate::lower::c_type;
use ocelli_ir::DType;
use std::fmt::Write;

impl Layer {
    /// Parameters, loads, the first products and what is made of them, for tiles of `high` rows.
    pub(super) fn text(&self, loads: &Loads, high: usize) -> String {
        let mut text = String::new();
        let _ = self.write_text(&mut text, loads, high);
        text
    }

    fn write_text(&self, c: &mut String, loads: &Loads, high: usize) -> std::fmt::Result {
        let dtype = self.firsts[0].a.dtype;
        let mut params: Vec<(String, String)> = Vec::new();
        let mut param = |ty: &str, name: String| params.push((format!("const {ty}* {name}"), name));
        (0..loads.rows.len()).for_each(|i| param("T", format!("rows{i}")));
        (0..loads.slices.len()).for_each(|i| param("T", format!("weights{i}")));
        for (i, first) in self.firsts.iter().enumerate() {
            if let Some((_, ty)) = first.bias {
                param(c_type(ty), format!("bias{i}"));
            }
        }
        let list = |f: fn(&(String, String)) -> &str| params.iter().map(f).collect::<Vec<_>>().join(", ");
        writeln!(c, "#define OPERANDS {}\n#define GIVEN {}", list(|p| &p.0), list(|p| &p.1))?;
        let [rows, weights] = sizes(loads, high);
        writeln!(
            c,
            "constexpr int FIRSTS = {}, MADE = {}, A_ELEMENTS = {rows}, W_ELEMENTS = {weights};",
            self.firsts.len(),
            self.made
        )?;
        c.push_str(include_str!("../warpgroup.cuh"));
        writeln!(
            c,
            "template <int BY> __device__ __forceinline__ void load_operands(T* to, u32 row, u32 thread, OPERANDS) {{"
        )?;
        let mut at = 0;
        for (i, (m, k)) in loads.rows.iter().enumerate() {
            let (pitch, whole) = (m.row, self.m.is_multiple_of(high));
            writeln!(
                c,
                "    load_tile<{high}, {k}, {pitch}, BY, {whole}>(to + {at}, rows{i} + u64(row) * {pitch}, M - row, thread);"
            )?;
            at += high * k;
        }
        c.push_str("}\n__device__ __forceinline__ void load_weights(T* to, int slice, OPERANDS) {\n");
        let mut at = 0;
        for (i, s) in loads.slices.iter().enumerate() {
            let pitch = s.matrix.row;
            let (high, wide, step) =
                if s.rows { (SLICE, s.other, SLICE * pitch) } else { (s.other, SLICE, SLICE) };
            writeln!(
                c,
                "    load_tile<{high}, {wide}, {pitch}, THREADS, true>(to + {at}, weights{i} + slice * {step}, {high}, threadIdx.x);"
            )?;
            at += SLICE * s.other;
        }
        c.push_str("}\n");
        self.write_bias(c)?;
        for turned in [false, true] {
            let name = if turned { "wgmma_turned" } else { "wgmma_plain" };
            c.push_str(&Wgmma { n: HALF, b_turned: turned, ..Wgmma::new(dtype) }.function(name));
        }
        c.push_str("__device__ __forceinline__ void first_products(float (&s)[FIRSTS][4][4], u32 rows, u32 weights, u32 half) {\n");
        for (i, first) in self.firsts.iter().enumerate() {
            let a = loads
                .rows
                .iter()
                .take_while(|r| **r != (first.a, first.k))
                .map(|(_, k)| high * k)
                .sum::<usize>();
            let slice = Slice::new(&first.b, first.k, false);
            let b = before(loads, &slice);
            // Columns of the layer are rows of the tile, 8 units each, or lie side by side in its rows.
            let (name, step) = if slice.rows {
                ("wgmma_plain", format!("half * {} + k / 4 * {} + k % 4 * 2", HALF * 8, SLICE * 8))
            } else {
                ("wgmma_turned", format!("half * {} + k * 128", HALF / 8))
            };
            writeln!(
                c,
                "#pragma unroll\n    for (int k = 0; k < {}; k++)\n        {name}(s[{i}], descriptor(rows + {} + k / 4 * {} + k % 4 * 2, \
                 1), descriptor(weights + {} + {step}, 1));",
                first.k / 16,
                a / 8,
                high * 8,
                b / 8,
            )?;
        }
        writeln!(
            c,
            "}}\n__device__ __forceinline__ void hidden(const float (&t)[FIRSTS], float (&u)[MADE]) {{\n{}}}",
            self.statements
        )
    }

    /// Copies of biases, and what is read of them: two neighbours.
    fn write_bias(&self, c: &mut String) -> std::fmt::Result {
        c.push_str("// COUNT elements of each bias from number `from` on, behind each other.\n");
        c.push_str("template <int COUNT> __device__ __forceinline__ void load_bias(unsigned char* to, u32 from, OPERANDS) {\n");
        let biases = || self.firsts.iter().enumerate().filter_map(|(i, f)| f.bias.map(|b| (i, b.1)));
        let mut at = 0;
        for (i, ty) in biases() {
            let each = 16 / ty.size();
            writeln!(
                c,
                "    for (int n = threadIdx.x; n < COUNT / {each}; n += THREADS)\n        cp_async16(to + {at} * COUNT + n * 16, bias{i} \
                 + from + n * {each});"
            )?;
            at += ty.size();
        }
        c.push_str("}\ntemplate <int COUNT> __device__ __forceinline__ float2 bias_pair(const unsigned char* bias, int first, int col) {\n");
        let mut at = 0;
        for (i, ty) in biases() {
            let pair = match ty {
                DType::F32 => "*(const float2*)from".to_string(),
                ty => format!("unpack2<{}>(*(const u32*)from)", c_type(ty)),
            };
            let size = ty.size();
            writeln!(
                c,
                "    if (first == {i}) {{\n        const unsigned char* from = bias + {at} * COUNT + col * {size};\n        return {pair};\n    }}"
            )?;
            at += size;
        }
        c.push_str("    return make_float2(0.0f, 0.0f);\n}\n");
        Ok(())
    }
}

impl Last {
    /// The last product of what was made of a slice.
    pub(super) fn text(&self, loads: &Loads, dtype: DType) -> String {
        let slice = Slice::new(&self.b, self.n, true);
        let turned = slice.rows;
        let instruction = Wgmma { n: self.n, registers: true, b_turned: turned, ..Wgmma::new(dtype) };
        let (apart, step) = if turned { (SLICE * 8, 128) } else { (1, 2) };
        format!(
            "{}__device__ __forceinline__ void last_product(float (&sums)[TN][4], const u32 (&u)[2][4], u32 weights, u32 half) \
             {{\n#pragma unroll\n    for (int k = 0; k < 2; k++)\n        wgmma_last(sums, u[k], descriptor(weights + {} + (half * 2 + k) * \
             {step}, {apart}));\n}}\n",
            instruction.function("wgmma_last"),
            before(loads, &slice) / 8,
        )
    }
}

/// Elements of the slices before one.
fn before(loads: &Loads, slice: &Slice) -> usize {
    loads.slices.iter().take_while(|s| *s != slice).map(|s| SLICE * s.other).sum()
}
