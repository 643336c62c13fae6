//! Element types. What a value *means* is float, byte or index; how wide a float is stored is a policy of the
//! precision pass, never of a model.

use std::fmt;

/// The type of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// IEEE binary32: parameters, moments, statistics, losses.
    F32,
    /// bfloat16 storage; every computation on it accumulates in f32.
    Bf16,
    /// IEEE binary16 storage; every computation on it accumulates in f32.
    F16,
    /// Bytes: pixels as they cross the bus.
    U8,
    /// Indices and counters: token ids, steps, seeds, lengths.
    U32,
}

impl DType {
    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            Self::F32 | Self::U32 => 4,
            Self::Bf16 | Self::F16 => 2,
            Self::U8 => 1,
        }
    }

    /// True for the types a gradient can flow through.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::Bf16 | Self::F16)
    }

    /// The nearest number that this type stores (identity for integers and f32 given an f32).
    pub fn round(self, x: f64) -> f64 {
        match self {
            Self::Bf16 => half::bf16::from_f64(x).to_f64(),
            Self::F16 => half::f16::from_f64(x).to_f64(),
            _ => x,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
            Self::U8 => "u8",
            Self::U32 => "u32",
        })
    }
}
