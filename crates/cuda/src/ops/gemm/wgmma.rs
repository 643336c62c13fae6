//! The text of a matrix instruction of compute capability 9.0.

use crate::lower::c_type;
use ocelli_ir::DType;

/// `wgmma` for 64 rows, `n` columns and 16 along K, with sums in f32.
#[derive(Clone, Copy, Debug)]
pub struct Wgmma {
    /// Columns, a multiple of 8.
    pub n: usize,
    /// Type of both operands.
    pub dtype: DType,
    /// a is in registers, as the sums of another product lie.
    pub registers: bool,
    /// a is in memory column by column.
    pub a_turned: bool,
    /// b is in memory row by row.
    pub b_turned: bool,
}

impl Wgmma {
    /// 64 columns, a from rows and b from columns in memory.
    pub const fn new(dtype: DType) -> Self {
        Self { n: 64, dtype, registers: false, a_turned: false, b_turned: false }
    }

    /// A function `name(c, a, b)` that adds `a b` to `c`.
    pub fn function(self, name: &str) -> String {
        let Self { n, registers, .. } = self;
        let ty = if self.dtype == DType::F16 { "f16" } else { c_type(DType::Bf16) };
        let count = n / 2;
        let list = |f: &dyn Fn(usize) -> String| (0..count).map(f).collect::<Vec<_>>().join(", ");
        let words = if registers { 4 } else { 1 };
        let a = (count..count + words).map(|i| format!("%{i}")).collect::<Vec<_>>().join(", ");
        let a = if registers { format!("{{{a}}}") } else { a };
        let b = count + words;
        let turned = match registers {
            true => format!("{}", u8::from(self.b_turned)),
            false => format!("{}, {}", u8::from(self.a_turned), u8::from(self.b_turned)),
        };
        let given = match registers {
            true => "\"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3])",
            false => "\"l\"(a)",
        };
        let left = if registers { "const u32 (&a)[4]" } else { "u64 a" };
        format!(
            "__device__ __forceinline__ void {name}(float (&c)[{}][4], {left}, u64 b) {{\n    asm volatile(\"{{ .reg \
             .pred p; setp.eq.b32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{ty}.{ty} {{{}}}, {a}, %{b}, p, 1, \
             1, {turned}; }}\"\n        : {}\n        : {given}, \"l\"(b));\n}}\n",
            n / 8,
            list(&|i| format!("%{i}")),
            list(&|i| format!("\"+f\"(c[{}][{}])", i / 4, i % 4)),
        )
    }
}
