//! Dense host tensors of the reference evaluation, generic over its float type.

use crate::{DType, Shape, TensorType};
use num_traits::{Float, NumAssign};
use std::fmt::Debug;
use std::iter::Sum;

/// The float type a reference evaluation computes in: `f32` or `f64`.
pub trait Real: Float + NumAssign + Sum + Debug + Default + Send + Sync + 'static {
    /// Rounds from f64.
    fn of(x: f64) -> Self;
    /// Widens to f64.
    fn f64(self) -> f64;
}

impl Real for f32 {
    fn of(x: f64) -> Self {
        x as f32
    }
    fn f64(self) -> f64 {
        f64::from(self)
    }
}

impl Real for f64 {
    fn of(x: f64) -> Self {
        x
    }
    fn f64(self) -> f64 {
        self
    }
}

/// Elements in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub enum Data<R> {
    /// Any float dtype; what a narrow dtype cannot hold was rounded off when the value was made.
    Real(Vec<R>),
    /// Bytes.
    U8(Vec<u8>),
    /// Indices and counters.
    U32(Vec<u32>),
}

/// A dense tensor of the reference evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor<R> {
    /// Extents.
    pub shape: Shape,
    /// Elements, `shape.numel()` of them.
    pub data: Data<R>,
}

impl<R: Real> Tensor<R> {
    /// A float tensor.
    ///
    /// # Panics
    /// If the number of elements is not the shape's.
    pub fn real(shape: impl Into<Shape>, data: Vec<R>) -> Self {
        let shape = shape.into();
        assert_eq!(shape.numel(), data.len(), "elements of {shape}");
        Self { shape, data: Data::Real(data) }
    }

    /// A u32 tensor.
    ///
    /// # Panics
    /// If the number of elements is not the shape's.
    pub fn u32(shape: impl Into<Shape>, data: Vec<u32>) -> Self {
        let shape = shape.into();
        assert_eq!(shape.numel(), data.len(), "elements of {shape}");
        Self { shape, data: Data::U32(data) }
    }

    /// A float tensor filled by `f(flat index)`.
    pub fn from_fn(shape: impl Into<Shape>, f: impl FnMut(usize) -> R) -> Self {
        let shape = shape.into();
        let data = (0..shape.numel()).map(f).collect();
        Self { shape, data: Data::Real(data) }
    }

    /// All zeros of a type.
    pub fn zeros(ty: &TensorType) -> Self {
        let n = ty.shape.numel();
        let data = match ty.dtype {
            DType::U8 => Data::U8(vec![0; n]),
            DType::U32 => Data::U32(vec![0; n]),
            _ => Data::Real(vec![R::zero(); n]),
        };
        Self { shape: ty.shape.clone(), data }
    }

    /// The floats of a float tensor.
    ///
    /// # Panics
    /// On an integer tensor: shape rules have checked dtypes before any evaluation.
    pub fn as_real(&self) -> &[R] {
        match &self.data {
            Data::Real(v) => v,
            other => panic!("expected floats, found {}", kind(other)),
        }
    }

    /// The integers of a u32 tensor.
    ///
    /// # Panics
    /// On any other tensor: shape rules have checked dtypes before any evaluation.
    pub fn as_u32(&self) -> &[u32] {
        match &self.data {
            Data::U32(v) => v,
            other => panic!("expected u32, found {}", kind(other)),
        }
    }

    /// The same elements under another shape of as many.
    pub fn reshaped(&self, shape: impl Into<Shape>) -> Self {
        let shape = shape.into();
        assert_eq!(shape.numel(), self.shape.numel(), "reshape {} to {shape}", self.shape);
        Self { shape, data: self.data.clone() }
    }

    /// The elements that `view` picks, in its order. `view` counts elements of this tensor.
    pub fn gather(&self, view: &crate::View) -> Self {
        fn pick<T: Copy>(from: &[T], view: &crate::View) -> Vec<T> {
            let mut out = Vec::with_capacity(view.shape.numel());
            view.for_each(|i| out.push(from[i]));
            out
        }
        let data = match &self.data {
            Data::Real(v) => Data::Real(pick(v, view)),
            Data::U8(v) => Data::U8(pick(v, view)),
            Data::U32(v) => Data::U32(pick(v, view)),
        };
        Self { shape: view.shape.clone(), data }
    }

    /// Rounds every float to what `dtype` stores.
    pub fn rounded(mut self, dtype: DType) -> Self {
        if let (Data::Real(v), DType::Bf16 | DType::F16) = (&mut self.data, dtype) {
            v.iter_mut().for_each(|x| *x = R::of(dtype.round(x.f64())));
        }
        self
    }

    /// The tensor in another float type.
    pub fn to<S: Real>(&self) -> Tensor<S> {
        let data = match &self.data {
            Data::Real(v) => Data::Real(v.iter().map(|x| S::of(x.f64())).collect()),
            Data::U8(v) => Data::U8(v.clone()),
            Data::U32(v) => Data::U32(v.clone()),
        };
        Tensor { shape: self.shape.clone(), data }
    }
}

fn kind<R>(data: &Data<R>) -> &'static str {
    match data {
        Data::Real(_) => "floats",
        Data::U8(_) => "u8",
        Data::U32(_) => "u32",
    }
}
