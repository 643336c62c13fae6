//! Finding the shared libraries of CUDA, which are opened when they are first needed: a machine without them is one
//! without this device, not one where the program cannot start.
//!
//! The system's own search comes first. Then folders where CUDA is usually installed, and those of Python's packages
//! (`nvidia/cu13/lib` and the like) beside an interpreter of `PATH` or of an active virtual environment. A library found
//! there is opened by its full path once; after that the system finds it by its name.

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use thiserror::Error;

/// The CUDA major version that the driver knows, once it was asked; 0 before. Libraries of a newer one do not work with it.
static DRIVER_MAJOR: AtomicU32 = AtomicU32::new(0);

/// Says which CUDA the driver knows, before the other libraries are opened.
pub fn driver_knows(major: u32) {
    DRIVER_MAJOR.store(major, Ordering::Relaxed);
}

/// Why a library cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LibFault {
    /// It is nowhere.
    #[error("{files} was not found: {remedy}")]
    Missing {
        /// Names that were looked for.
        files: String,
        /// What to install.
        remedy: &'static str,
    },
    /// It is there and of no use.
    #[error("{file} cannot be used: {why}; {remedy}")]
    Unusable {
        /// The file.
        file: String,
        /// What the system, or a look into it, says.
        why: String,
        /// What to install.
        remedy: &'static str,
    },
}

/// A library that this crate uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lib {
    /// The driver.
    Driver,
    /// The compiler of kernels.
    Nvrtc,
    /// Matrix products.
    CublasLt,
}

impl Lib {
    /// The file's name, without what stands for its version.
    pub const fn file(self) -> &'static str {
        match self {
            Self::Driver => "libcuda.so",
            Self::Nvrtc => "libnvrtc.so",
            Self::CublasLt => "libcublasLt.so",
        }
    }

    /// What to install to have it.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Driver => "install NVIDIA's driver for this GPU (the CUDA toolkit does not bring it)",
            Self::Nvrtc => "install the CUDA toolkit 12 or 13, or `pip install nvidia-cuda-nvrtc`",
            Self::CublasLt => "install the CUDA toolkit 12 or 13, or `pip install nvidia-cublas`",
        }
    }

    /// Major versions that are looked for, the best first.
    fn versions(self) -> &'static [&'static str] {
        match (self, DRIVER_MAJOR.load(Ordering::Relaxed)) {
            (Self::Driver, _) => &["1"],
            (Self::Nvrtc | Self::CublasLt, 12) => &["12", "13"],
            (Self::Nvrtc | Self::CublasLt, _) => &["13", "12"],
        }
    }

    /// Functions that every version of use has, the youngest among them.
    const fn functions(self) -> &'static [&'static str] {
        match self {
            Self::Driver => &["cuInit", "cuDriverGetVersion", "cuGraphInstantiateWithFlags"],
            Self::Nvrtc => &["nvrtcVersion", "nvrtcGetCUBIN"],
            Self::CublasLt => &["cublasLtGetVersion", "cublasLtMatmulAlgoGetHeuristic"],
        }
    }

    /// Opens it, wherever it is; where it was found.
    ///
    /// # Errors
    /// If it is nowhere, or of no use: the file's name and what to install.
    pub fn open(self) -> Result<&'static str, LibFault> {
        static FOUND: [OnceLock<Result<String, LibFault>>; 3] = [const { OnceLock::new() }; 3];
        let found = FOUND[self as usize].get_or_init(|| self.find(&folders()));
        found.as_deref().map_err(Clone::clone)
    }

    /// The first that can be used, by the system's search and then in `folders`.
    fn find(self, folders: &[PathBuf]) -> Result<String, LibFault> {
        let names: Vec<String> = self.versions().iter().map(|v| format!("{}.{v}", self.file())).collect();
        let paths = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
        let all = names.iter().map(PathBuf::from).chain(paths.filter(|path| path.is_file()));
        let mut unusable = None;
        for path in all {
            match self.load(&path) {
                Ok(()) => return Ok(path.display().to_string()),
                Err(why) if is_absent(&path, &why) => {}
                Err(why) => unusable = unusable.or(Some((path, why))),
            }
        }
        let remedy = self.remedy();
        Err(match unusable {
            Some((path, why)) => LibFault::Unusable { file: path.display().to_string(), why, remedy },
            None => LibFault::Missing { files: names.join(" or "), remedy },
        })
    }

    /// Opens a library for the life of the program; why that is not possible.
    fn load(self, path: &Path) -> Result<(), String> {
        // SAFETY: the libraries of CUDA run nothing of their own when they are opened.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) };
        let library = library.map_err(|e| match &e {
            libloading::Error::DlOpen { source } => source.to_string(),
            other => other.to_string(),
        })?;
        for name in self.functions() {
            // SAFETY: the address is looked at, not called.
            if unsafe { library.get::<*const ()>(name.as_bytes()) }.is_err() {
                return Err(format!("it has no function {name}: it is too old, or another library"));
            }
        }
        std::mem::forget(library);
        Ok(())
    }
}

/// True if the system's loader says of a file that it is not there, and not of one that the file needs.
fn is_absent(path: &Path, why: &str) -> bool {
    why.contains("No such file or directory") && why.starts_with(&*path.to_string_lossy())
}

/// Folders outside the system's search.
fn folders() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for variable in ["CUDA_HOME", "CUDA_PATH"] {
        if let Some(home) = std::env::var_os(variable) {
            found.extend(["lib64", "lib"].map(|lib| Path::new(&home).join(lib)));
        }
    }
    found.extend(["/usr/local/cuda/lib64", "/opt/cuda/lib64", "/usr/local/nvidia/lib64"].map(PathBuf::from));
    let environments = std::env::var_os("VIRTUAL_ENV").into_iter().chain(std::env::var_os("CONDA_PREFIX"));
    let mut roots: Vec<PathBuf> = environments.map(PathBuf::from).collect();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let beside =
        |bin: PathBuf| bin.join("python3").exists().then(|| bin.parent().map(Path::to_path_buf)).flatten();
    roots.extend(std::env::split_paths(&path).filter_map(beside));
    for root in roots {
        for site in entries(&root.join("lib"), "python3") {
            for packages in ["site-packages", "dist-packages"] {
                let nvidia = site.join(packages).join("nvidia");
                found.extend(entries(&nvidia, "").into_iter().map(|package| package.join("lib")));
            }
        }
    }
    found
}

/// Entries of a folder whose names start with `prefix`, in order.
fn entries(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let listed = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        listed.filter(|e| e.file_name().to_string_lossy().starts_with(prefix)).map(|e| e.path()).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_from_what_is_of_no_use() {
        let folder = std::env::temp_dir().join(format!("ocelli-libraries-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("libnvrtc.so.12");
        std::fs::write(&path, "text").unwrap();
        let why = Lib::Nvrtc.load(&path).unwrap_err();
        assert!(!is_absent(&path, &why), "{why}");
        let other = folder.join("libnvrtc.so.13");
        let why = Lib::Nvrtc.load(&other).unwrap_err();
        assert!(is_absent(&other, &why), "{why}");
        // A library, and not the one that is meant.
        let libc = Lib::Nvrtc.load(Path::new("libc.so.6")).unwrap_err();
        assert!(libc.contains("has no function nvrtcVersion"), "{libc}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
