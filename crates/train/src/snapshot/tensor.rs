//! A named tensor inside a snapshot: dtype, shape and little-endian bytes in row-major order.
//!
//! Invariant: `bytes.len()` is the product of `shape` times the dtype's size; [`super::save`] and [`super::load`]
//! both check it.
use std::{borrow::Cow, collections::BTreeMap};

use safetensors::Dtype;

// The format is little-endian and so are the bytes that we borrow from memory.
const _: () = assert!(cfg!(target_endian = "little"), "snapshots need a little-endian machine");

/// The element types that a snapshot may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum DType {
    U8,
    U16,
    U32,
    U64,
    I32,
    I64,
    F16,
    BF16,
    F32,
    F64,
}

impl DType {
    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            DType::U8 => 1,
            DType::U16 | DType::F16 | DType::BF16 => 2,
            DType::U32 | DType::I32 | DType::F32 => 4,
            DType::U64 | DType::I64 | DType::F64 => 8,
        }
    }

    /// The same type in the safetensors format.
    pub(super) fn to_file(self) -> Dtype {
        match self {
            DType::U8 => Dtype::U8,
            DType::U16 => Dtype::U16,
            DType::U32 => Dtype::U32,
            DType::U64 => Dtype::U64,
            DType::I32 => Dtype::I32,
            DType::I64 => Dtype::I64,
            DType::F16 => Dtype::F16,
            DType::BF16 => Dtype::BF16,
            DType::F32 => Dtype::F32,
            DType::F64 => Dtype::F64,
        }
    }

    /// `None` for the types of the format that no snapshot holds.
    pub(super) fn from_file(dtype: Dtype) -> Option<Self> {
        Some(match dtype {
            Dtype::U8 => DType::U8,
            Dtype::U16 => DType::U16,
            Dtype::U32 => DType::U32,
            Dtype::U64 => DType::U64,
            Dtype::I32 => DType::I32,
            Dtype::I64 => DType::I64,
            Dtype::F16 => DType::F16,
            Dtype::BF16 => DType::BF16,
            Dtype::F32 => DType::F32,
            Dtype::F64 => DType::F64,
            _ => return None,
        })
    }
}

/// What a tensor must look like: see [`super::Snapshot::check_layout`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The tensor's full name.
    pub name: String,
    /// Its element type.
    pub dtype: DType,
    /// Its extents, outermost first.
    pub shape: Vec<usize>,
}

/// One tensor; its bytes are borrowed when saving and owned after loading.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor<'a> {
    /// Full name, for weights that of the published state dict.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Extents, outermost first; empty for a scalar.
    pub shape: Vec<usize>,
    /// Elements in row-major order, little-endian.
    pub bytes: Cow<'a, [u8]>,
}

impl<'a> Tensor<'a> {
    /// A float32 tensor over borrowed elements; no copy is made.
    pub fn from_f32(name: impl Into<String>, shape: &[usize], data: &'a [f32]) -> Self {
        Self::borrowed(name, DType::F32, shape, bytemuck::cast_slice(data))
    }

    /// A u32 tensor over borrowed elements; no copy is made.
    pub fn from_u32(name: impl Into<String>, shape: &[usize], data: &'a [u32]) -> Self {
        Self::borrowed(name, DType::U32, shape, bytemuck::cast_slice(data))
    }

    /// A tensor of any type over borrowed little-endian bytes.
    pub fn borrowed(name: impl Into<String>, dtype: DType, shape: &[usize], bytes: &'a [u8]) -> Self {
        Tensor { name: name.into(), dtype, shape: shape.to_vec(), bytes: Cow::Borrowed(bytes) }
    }

    /// The elements as float32; `None` if the tensor has another type.
    pub fn to_f32(&self) -> Option<Vec<f32>> {
        (self.dtype == DType::F32).then(|| bytemuck::pod_collect_to_vec(&self.bytes))
    }

    /// The elements as u32; `None` if the tensor has another type.
    pub fn to_u32(&self) -> Option<Vec<u32>> {
        (self.dtype == DType::U32).then(|| bytemuck::pod_collect_to_vec(&self.bytes))
    }

    /// Bytes that the shape and the dtype ask for; `None` on overflow.
    pub(super) fn expected_len(&self) -> Option<usize> {
        self.shape.iter().try_fold(self.dtype.size(), |n, &d| n.checked_mul(d))
    }
}

/// Differences that are listed in one message.
const LISTED: usize = 12;

/// Compares by name; `Err` lists every difference, one a line.
pub(super) fn compare(found: &[Tensor<'_>], wanted: &[Spec]) -> Result<(), String> {
    let mut left: BTreeMap<&str, &Tensor<'_>> = found.iter().map(|t| (t.name.as_str(), t)).collect();
    let mut lines = Vec::new();
    for spec in wanted {
        match left.remove(spec.name.as_str()) {
            None => lines.push(format!("`{}` is missing", spec.name)),
            Some(t) if t.dtype != spec.dtype || t.shape != spec.shape => lines.push(format!(
                "`{}` is {:?} {:?} in the file, {:?} {:?} in the model",
                spec.name, t.dtype, t.shape, spec.dtype, spec.shape
            )),
            Some(_) => {}
        }
    }
    lines.extend(left.keys().map(|name| format!("`{name}` is in the file but not in the model")));
    let more = lines.len().saturating_sub(LISTED);
    if more > 0 {
        lines.truncate(LISTED);
        lines.push(format!("and {more} more"));
    }
    if lines.is_empty() { Ok(()) } else { Err(lines.join("\n  ")) }
}

/// The first element that is not finite: its index and `NaN` or `Inf`. Types without such values give `None`.
///
/// `bytes` must start at an element's border.
pub(super) fn first_non_finite(dtype: Dtype, bytes: &[u8]) -> Option<(usize, &'static str)> {
    match dtype {
        Dtype::F32 => scan(bytes, u32::from_le_bytes, 0x7f80_0000, 0x007f_ffff),
        Dtype::F64 => scan(bytes, u64::from_le_bytes, 0x7ff0 << 48, (1 << 52) - 1),
        Dtype::F16 => scan(bytes, u16::from_le_bytes, 0x7c00, 0x03ff),
        Dtype::BF16 => scan(bytes, u16::from_le_bytes, 0x7f80, 0x007f),
        _ => None,
    }
}

/// Looks for elements whose exponent bits are all ones; the mantissa tells NaN from infinity.
fn scan<const N: usize, T: Into<u64>>(
    bytes: &[u8],
    read: fn([u8; N]) -> T,
    exponent: u64,
    mantissa: u64,
) -> Option<(usize, &'static str)> {
    bytes.as_chunks::<N>().0.iter().enumerate().find_map(|(i, raw)| {
        let bits: u64 = read(*raw).into();
        (bits & exponent == exponent).then_some((i, if bits & mantissa == 0 { "Inf" } else { "NaN" }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_finite_values_are_found_at_their_index() {
        let f32s = [0.0f32, -f32::MAX, f32::MIN_POSITIVE, f32::NEG_INFINITY];
        assert_eq!(first_non_finite(Dtype::F32, bytemuck::cast_slice(&f32s)), Some((3, "Inf")));
        assert_eq!(first_non_finite(Dtype::F32, bytemuck::cast_slice(&f32s[..3])), None);
        assert_eq!(first_non_finite(Dtype::F64, &f64::NAN.to_le_bytes()), Some((0, "NaN")));
        assert_eq!(first_non_finite(Dtype::F16, &[0xff, 0x7b, 0x01, 0x7c]), Some((1, "NaN")));
        assert_eq!(first_non_finite(Dtype::BF16, &[0x7f, 0x7f, 0x80, 0xff]), Some((1, "Inf")));
        assert_eq!(first_non_finite(Dtype::U32, &[0xff; 8]), None);
    }

    #[test]
    fn layout_differences_are_all_listed() {
        let spec = |name: &str, shape: &[usize]| Spec {
            name: name.into(),
            dtype: DType::F32,
            shape: shape.to_vec(),
        };
        let data = [0.0f32; 4];
        let found = [Tensor::from_f32("a", &[4], &data), Tensor::from_f32("extra", &[2, 2], &data)];
        assert_eq!(compare(&found[..1], &[spec("a", &[4])]), Ok(()));
        let text = compare(&found, &[spec("a", &[2, 2]), spec("b", &[1])]).unwrap_err();
        for part in ["`a` is F32 [4]", "F32 [2, 2] in the model", "`b` is missing", "`extra` is in the file"]
        {
            assert!(text.contains(part), "{part} not in {text}");
        }
    }
}
