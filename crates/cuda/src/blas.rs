//! Matrix products by cuBLASLt. Chosen once, when a program is loaded; a run only queues them.

use crate::driver::Stream;
use crate::gpu::newer_than_driver;
use crate::libraries::Lib;
use crate::lower::{GemmCall, Matrix};
use cudarc::cublaslt::{result, sys};
use ocelli_ir::DType;
use std::ffi::c_void;

/// Memory that a product may use beside its operands.
pub const WORKSPACE: usize = 32 << 20;

/// The library.
#[derive(Debug)]
pub struct Blas {
    handle: sys::cublasLtHandle_t,
}

// SAFETY: the library's handle may be used from any thread.
unsafe impl Send for Blas {}
// SAFETY: as above, and from several at once.
unsafe impl Sync for Blas {}

fn told(what: &str, e: &result::CublasError) -> String {
    format!("libcublasLt: {what}: {:?}", e.0)
}

/// The library's version, `13.0.2`. It must have been opened.
pub fn version() -> String {
    // SAFETY: the library is there; it hands out a number.
    let version = unsafe { sys::cublasLtGetVersion() };
    format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100)
}

impl Blas {
    /// Opens it. A device's context must be current.
    ///
    /// # Errors
    /// If it is not there or does not start.
    pub fn new() -> Result<Self, String> {
        Lib::CublasLt.open().map_err(|e| e.to_string())?;
        if let Some(why) = newer_than_driver("libcublasLt", &version()) {
            return Err(why);
        }
        let handle = result::create_handle().map_err(|e| told("starting", &e))?;
        Ok(Self { handle })
    }

    /// How a product is made, in the way that the library thinks best. `tf32`: products of f32 may round their operands
    /// to TF32.
    ///
    /// # Errors
    /// If the library cannot make it.
    pub fn choose(&self, call: GemmCall, tf32: bool) -> Result<Product, String> {
        Ok(self.ways(call, tf32, 1)?.0)
    }

    /// A product in a way that is known to make it. That takes a hundredth of the time that choosing takes.
    ///
    /// # Errors
    /// If the library cannot describe it.
    pub fn known(&self, call: GemmCall, tf32: bool, way: Way) -> Result<Product, String> {
        let compute = match (call.a.dtype, tf32) {
            (DType::F32, true) => sys::cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32,
            _ => sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
        };
        let f32 = sys::cudaDataType::CUDA_R_32F;
        let descriptor =
            Descriptor(result::create_matmul_desc(compute, f32).map_err(|e| told("a product", &e))?);
        // The library counts along columns; rows are columns of the transpose: d' = b' a'.
        let (a, turn_a) = layout(&call.b, call.k, call.n, call.batch)?;
        let (b, turn_b) = layout(&call.a, call.m, call.k, call.batch)?;
        let (d, _) = layout(&call.d, call.m, call.n, call.batch)?;
        use sys::cublasLtMatmulDescAttributes_t as Of;
        let turn = |turned: bool| i32::from(turned);
        descriptor.set(Of::CUBLASLT_MATMUL_DESC_TRANSA, &turn(turn_a))?;
        descriptor.set(Of::CUBLASLT_MATMUL_DESC_TRANSB, &turn(turn_b))?;
        if call.bias.is_some() {
            let epilogue = sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS as u32;
            descriptor.set(Of::CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue)?;
            descriptor.set(Of::CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &(data_type(call.d.dtype)? as i32))?;
        }
        Ok(Product { call, descriptor, a, b, d, way })
    }

    /// A product in the way that the library thinks best, and up to `most` ways to make it, the best guess first. Where
    /// there is a choice, ways that round partial sums to 16 bits are left out.
    ///
    /// # Errors
    /// If the library cannot make it.
    pub fn ways(&self, call: GemmCall, tf32: bool, most: usize) -> Result<(Product, Vec<Way>), String> {
        let none = Way(sys::cublasLtMatmulAlgo_t { data: [0; 8] });
        let product = self.known(call, tf32, none)?;
        let wish = Wish(result::create_matmul_pref().map_err(|e| told("a product", &e))?);
        use sys::cublasLtMatmulPreferenceAttributes_t as Want;
        wish.set(Want::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &(WORKSPACE as u64))?;
        let align = |m: &Matrix| m.align.min(256) as u32;
        wish.set(Want::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &align(&call.b))?;
        wish.set(Want::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &align(&call.a))?;
        wish.set(Want::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &align(&call.d))?;
        wish.set(Want::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &align(&call.d))?;
        let none = sys::cublasLtMatmulHeuristicResult_t {
            algo: sys::cublasLtMatmulAlgo_t { data: [0; 8] },
            workspaceSize: 0,
            state: sys::cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED,
            wavesCount: 0.0,
            reserved: [0; 4],
        };
        let (mut found, mut count) = (vec![none; most.max(1)], 0);
        // SAFETY: all descriptors were made above and are alive; the library fills at most as many results as there are.
        let status = unsafe {
            let (most, to) = (found.len() as i32, found.as_mut_ptr());
            sys::cublasLtMatmulAlgoGetHeuristic(
                self.handle,
                product.descriptor.0,
                product.a.0,
                product.b.0,
                product.d.0,
                product.d.0,
                wish.0,
                most,
                to,
                &mut count,
            )
        };
        let no_way = |e| told(&format!("no way to make {call:?}"), &e);
        status.result().map_err(no_way)?;
        found.truncate(usize::try_from(count).unwrap_or(0));
        found.retain(|f| f.state == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS);
        let mut ways: Vec<Way> = found.iter().map(|f| Way(f.algo)).collect();
        let Some(&first) = ways.first() else {
            return Err(no_way(result::CublasError(sys::cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED)));
        };
        ways.retain(|way| way.is_exact(call.d.dtype));
        if ways.is_empty() {
            ways.push(first);
        }
        Ok((Product { way: first, ..product }, ways))
    }

    /// True if the library makes a product in this way, in the memory that there is for it.
    pub fn takes(&self, product: &Product, way: &Way) -> bool {
        let mut found = std::mem::MaybeUninit::<sys::cublasLtMatmulHeuristicResult_t>::zeroed();
        // SAFETY: the descriptors are alive; the library looks at the way's 64 bytes and fills one result, which zeros are.
        let found = unsafe {
            let status = sys::cublasLtMatmulAlgoCheck(
                self.handle,
                product.descriptor.0,
                product.a.0,
                product.b.0,
                product.d.0,
                product.d.0,
                &way.0,
                found.as_mut_ptr(),
            );
            (status == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS).then(|| found.assume_init())
        };
        found.is_some_and(|f| {
            f.state == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS && f.workspaceSize <= WORKSPACE
        })
    }

    /// Queues a product. At `workspace` there are [`WORKSPACE`] bytes.
    ///
    /// # Errors
    /// If the library refuses.
    ///
    /// # Safety
    /// The addresses must be those of the operands of the product's call and of the workspace, alive until it has run.
    pub unsafe fn run(
        &self,
        product: &Product,
        operands: [u64; 4],
        workspace: u64,
        stream: &Stream,
    ) -> Result<(), String> {
        // SAFETY: the caller's promise.
        unsafe { self.run_by(product, &product.way, operands, workspace, stream) }
    }

    /// As [`run`](Self::run), in another way.
    ///
    /// # Errors
    /// If the library refuses.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    pub unsafe fn run_by(
        &self,
        product: &Product,
        way: &Way,
        [a, b, d, bias]: [u64; 4],
        workspace: u64,
        stream: &Stream,
    ) -> Result<(), String> {
        // A product that runs for the first time loads its kernel.
        let _call = stream.context().bind().map_err(|e| e.to_string())?;
        let (one, beta) = (1.0f32, if product.call.accumulate { 1.0f32 } else { 0.0 });
        let pointer = |address: u64| address as *const c_void;
        if product.call.bias.is_some() {
            use sys::cublasLtMatmulDescAttributes_t as Of;
            product.descriptor.set(Of::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias)?;
        }
        let number = |x: &f32| std::ptr::from_ref(x).cast::<c_void>();
        // SAFETY: the caller's promise; the descriptors are alive; the library reads both numbers before it returns.
        unsafe {
            result::matmul(
                self.handle,
                product.descriptor.0,
                number(&one),
                number(&beta),
                pointer(b),
                product.a.0,
                pointer(a),
                product.b.0,
                pointer(d),
                product.d.0,
                pointer(d).cast_mut(),
                product.d.0,
                &way.0,
                pointer(workspace).cast_mut(),
                WORKSPACE,
                stream.raw().cast(),
            )
        }
        .map_err(|e| told("a product", &e))
    }
}

impl Drop for Blas {
    fn drop(&mut self) {
        // SAFETY: made once, destroyed once.
        let _ = unsafe { result::destroy_handle(self.handle) };
    }
}

/// A product whose way was chosen.
#[derive(Debug)]
pub struct Product {
    /// What it computes.
    pub call: GemmCall,
    descriptor: Descriptor,
    a: Layout,
    b: Layout,
    d: Layout,
    /// How it is made.
    pub way: Way,
}

/// One of the library's ways to make a product. Its bytes mean something to the same version of the library only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way(sys::cublasLtMatmulAlgo_t);

impl Way {
    /// Its name in files: its bytes.
    pub fn name(&self) -> String {
        self.0.data.iter().map(|word| format!("{word:016x}")).collect()
    }

    /// The way of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        let word = |i: usize| u64::from_str_radix(name.get(16 * i..16 * (i + 1))?, 16).ok();
        let mut data = [0; 8];
        for (i, to) in data.iter_mut().enumerate() {
            *to = word(i)?;
        }
        (name.len() == 128).then_some(Self(sys::cublasLtMatmulAlgo_t { data }))
    }

    /// True unless parts of sums are added up in 16 bits. In a fixed order they are added in any case.
    fn is_exact(&self, result: DType) -> bool {
        use sys::cublasLtReductionScheme_t as Scheme;
        let (mut scheme, mut written) = (0u32, 0);
        // SAFETY: the library writes one number of this size.
        let status = unsafe {
            sys::cublasLtMatmulAlgoConfigGetAttribute(
                &self.0,
                sys::cublasLtMatmulAlgoConfigAttributes_t::CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME,
                std::ptr::from_mut(&mut scheme).cast(),
                size_of::<u32>(),
                &mut written,
            )
        };
        let wide = [Scheme::CUBLASLT_REDUCTION_SCHEME_NONE, Scheme::CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE];
        let known = status == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS;
        known && (result == DType::F32 || wide.iter().any(|&w| w as u32 == scheme))
    }
}

// SAFETY: it owns its descriptors alone.
unsafe impl Send for Product {}

#[derive(Debug)]
struct Descriptor(sys::cublasLtMatmulDesc_t);

impl Descriptor {
    fn set<T>(&self, of: sys::cublasLtMatmulDescAttributes_t, value: &T) -> Result<(), String> {
        // SAFETY: the descriptor is alive; the library copies as many bytes as it is told.
        unsafe {
            result::set_matmul_desc_attribute(self.0, of, std::ptr::from_ref(value).cast(), size_of::<T>())
        }
        .map_err(|e| told("a setting of a product", &e))
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: made once, destroyed once.
        let _ = unsafe { result::destroy_matmul_desc(self.0) };
    }
}

struct Wish(sys::cublasLtMatmulPreference_t);

impl Wish {
    fn set<T>(&self, of: sys::cublasLtMatmulPreferenceAttributes_t, value: &T) -> Result<(), String> {
        // SAFETY: as `Descriptor::set`.
        unsafe {
            result::set_matmul_pref_attribute(self.0, of, std::ptr::from_ref(value).cast(), size_of::<T>())
        }
        .map_err(|e| told("a wish of a product", &e))
    }
}

impl Drop for Wish {
    fn drop(&mut self) {
        // SAFETY: made once, destroyed once.
        let _ = unsafe { result::destroy_matmul_pref(self.0) };
    }
}

#[derive(Debug)]
struct Layout(sys::cublasLtMatrixLayout_t);

impl Drop for Layout {
    fn drop(&mut self) {
        // SAFETY: made once, destroyed once.
        let _ = unsafe { result::destroy_matrix_layout(self.0) };
    }
}

fn data_type(dtype: DType) -> Result<sys::cudaDataType, String> {
    Ok(match dtype {
        DType::F32 => sys::cudaDataType::CUDA_R_32F,
        DType::Bf16 => sys::cudaDataType::CUDA_R_16BF,
        DType::F16 => sys::cudaDataType::CUDA_R_16F,
        DType::U32 | DType::U8 => return Err(format!("{dtype} has no products")),
    })
}

/// The transpose of a `rows x cols` matrix, as memory holds it column by column, and whether it must be turned once more.
fn layout(m: &Matrix, rows: usize, cols: usize, batch: usize) -> Result<(Layout, bool), String> {
    let turned = m.col != 1;
    let (fast, slow, step) = if turned { (rows, cols, m.col) } else { (cols, rows, m.row) };
    let raw = result::create_matrix_layout(data_type(m.dtype)?, fast as u64, slow as u64, step as i64);
    let layout = Layout(raw.map_err(|e| told("a matrix", &e))?);
    use sys::cublasLtMatrixLayoutAttribute_t as Of;
    let set = |of, value: *const c_void, size| {
        // SAFETY: the layout is alive; the library copies `size` bytes.
        unsafe { result::set_matrix_layout_attribute(layout.0, of, value, size) }
            .map_err(|e| told("a matrix", &e))
    };
    if batch > 1 {
        let (count, offset) = (batch as i32, m.batch as i64);
        set(Of::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, std::ptr::from_ref(&count).cast(), size_of::<i32>())?;
        set(
            Of::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
            std::ptr::from_ref(&offset).cast(),
            size_of::<i64>(),
        )?;
    }
    Ok((layout, turned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_have_names_that_lead_back() {
        let way = Way(sys::cublasLtMatmulAlgo_t { data: [1, 0, u64::MAX, 3, 4, 5, 6, 0x7abc] });
        assert_eq!(Way::from_name(&way.name()), Some(way));
        let long = format!("{}0", way.name());
        for name in ["", "12", &way.name()[1..], &long, &"é".repeat(64), &"g".repeat(128)] {
            assert_eq!(Way::from_name(name), None, "{name}");
        }
    }
}
