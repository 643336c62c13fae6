//! Compiling kernels for a GPU, with NVRTC. No GPU is needed for it.

use crate::libraries::Lib;
use cudarc::nvrtc::{result, sys};
use std::ffi::CString;
use thiserror::Error;

/// Why there is no compiled kernel.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NvrtcFault {
    /// The library is not there.
    #[error("{0}")]
    Missing(String),
    /// The compiler refused a source: a defect of Ocelli, or an architecture that this compiler does not know.
    #[error("the kernel compiler (NVRTC {version}) failed for {arch}: {log}")]
    Refused {
        /// Version of the compiler.
        version: String,
        /// The architecture.
        arch: String,
        /// What it wrote.
        log: String,
    },
}

/// Opens the library; its version, `13.0`.
///
/// # Errors
/// If it is not there.
pub fn version() -> Result<String, NvrtcFault> {
    Lib::Nvrtc.open().map_err(|e| NvrtcFault::Missing(e.to_string()))?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: the library is there; it writes two numbers.
    let status = unsafe { sys::nvrtcVersion(&mut major, &mut minor) };
    status
        .result()
        .map_err(|e| NvrtcFault::Missing(format!("libnvrtc does not say its version: {:?}", e.0)))?;
    Ok(format!("{major}.{minor}"))
}

/// Compiles `source` for `arch`, such as `sm_90a`, to machine code.
///
/// # Errors
/// If the library is not there, or refuses the source.
pub fn compile(source: &str, arch: &str) -> Result<Vec<u8>, NvrtcFault> {
    let version = version()?;
    let refused = |log: String| NvrtcFault::Refused { version: version.clone(), arch: arch.to_string(), log };
    let text = CString::new(source).map_err(|_| refused("the source has a zero byte".into()))?;
    let program = Program(
        result::create_program(&text, Some(c"ocelli.cu")).map_err(|e| refused(format!("{:?}", e.0)))?,
    );
    let options = [
        format!("--gpu-architecture={arch}"),
        "--std=c++17".into(),
        "--device-as-default-execution-space".into(),
    ];
    // SAFETY: the program is alive.
    if let Err(e) = unsafe { result::compile_program(program.0, &options) } {
        return Err(refused(format!("{:?}: {}", e.0, program.log())));
    }
    let mut size = 0;
    // SAFETY: the program was compiled to an architecture, so it has machine code, of the size it says.
    let status = unsafe { sys::nvrtcGetCUBINSize(program.0, &mut size) };
    status.result().map_err(|e| refused(format!("{:?}", e.0)))?;
    let mut cubin = vec![0u8; size];
    // SAFETY: as above.
    let status = unsafe { sys::nvrtcGetCUBIN(program.0, cubin.as_mut_ptr().cast()) };
    status.result().map_err(|e| refused(format!("{:?}", e.0)))?;
    Ok(cubin)
}

struct Program(sys::nvrtcProgram);

impl Program {
    /// What the compiler wrote.
    fn log(&self) -> String {
        // SAFETY: the program is alive.
        let log = unsafe { result::get_program_log(self.0) }.unwrap_or_default();
        let bytes: Vec<u8> = log.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
        String::from_utf8_lossy(&bytes).trim().to_string()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        let _ = unsafe { result::destroy_program(self.0) };
    }
}
