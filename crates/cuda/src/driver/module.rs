//! Compiled code on the device.

use super::{Asked, Context, Driven, Stream};
use cudarc::driver::{result, sys};
use std::ffi::{CString, c_void};
use std::sync::Arc;

/// Compiled code of one source.
#[derive(Debug)]
pub struct Module {
    context: Arc<Context>,
    raw: sys::CUmodule,
}

// SAFETY: modules may be used from any thread under their context.
unsafe impl Send for Module {}
// SAFETY: as above; they are never changed.
unsafe impl Sync for Module {}

impl Module {
    /// Loads code that NVRTC made for this device.
    ///
    /// # Errors
    /// If the driver refuses it.
    pub fn new(context: &Arc<Context>, cubin: &[u8]) -> Driven<Arc<Self>> {
        let _call = context.bind()?;
        // SAFETY: an ELF image says its own size, and NVRTC made it.
        let raw =
            unsafe { result::module::load_data(cubin.as_ptr().cast()) }.asked("loading compiled code")?;
        Ok(Arc::new(Self { context: context.clone(), raw }))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if let Ok(_call) = self.context.bind() {
            // SAFETY: loaded once; all its functions hold it, so none is left.
            let _ = unsafe { result::module::unload(self.raw) };
        }
    }
}

/// A kernel.
#[derive(Clone, Debug)]
pub struct Function {
    module: Arc<Module>,
    raw: sys::CUfunction,
}

// SAFETY: as its module.
unsafe impl Send for Function {}
// SAFETY: as its module.
unsafe impl Sync for Function {}

impl Function {
    /// The kernel `name` of a module, which may use `shared` bytes of dynamic shared memory.
    ///
    /// # Errors
    /// If there is none, or the device has not so much shared memory.
    pub fn new(module: &Arc<Module>, name: &str, shared: u32) -> Driven<Self> {
        let _call = module.context.bind()?;
        let entry = CString::new(name).unwrap_or_default();
        // SAFETY: the module is alive.
        let raw =
            unsafe { result::module::get_function(module.raw, entry) }.asked(format!("kernel {name}"))?;
        if shared > 48 * 1024 {
            let of = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function is of this module.
            unsafe { result::function::set_function_attribute(raw, of, shared as i32) }
                .asked(format!("{shared} bytes of shared memory for {name}"))?;
        }
        Ok(Self { module: module.clone(), raw })
    }

    /// Queues a launch. `arguments` are 64-bit words: device addresses. If `early`, it may start while the launch before it ends.
    ///
    /// # Errors
    /// If the driver refuses it.
    ///
    /// # Safety
    /// The kernel must take exactly these arguments, and touch only memory that is alive until it has run. If `early`, the GPU
    /// must be able to do that, and the kernel must wait for the launch before it on every path, before it touches memory.
    pub unsafe fn launch(
        &self,
        stream: &Stream,
        grid: [u32; 3],
        block: u32,
        shared: u32,
        arguments: &[u64],
        early: bool,
    ) -> Driven<()> {
        let _call = self.module.context.bind()?;
        let mut words: Vec<*mut c_void> =
            arguments.iter().map(|a| std::ptr::from_ref(a).cast_mut().cast()).collect();
        let mut attribute = sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            pad: [0; 4],
            value: sys::CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
        };
        let config = sys::CUlaunchConfig {
            gridDimX: grid[0],
            gridDimY: grid[1],
            gridDimZ: grid[2],
            blockDimX: block,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: shared,
            hStream: stream.raw,
            attrs: &raw mut attribute,
            numAttrs: u32::from(early),
        };
        // SAFETY: the caller's promise; the driver copies attributes and arguments before it returns.
        unsafe { sys::cuLaunchKernelEx(&config, self.raw, words.as_mut_ptr(), std::ptr::null_mut()) }
            .result()
            .asked("a launch")
    }
}
