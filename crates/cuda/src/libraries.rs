//! Finding the shared libraries of CUDA, which are opened when they are first needed: a machine without them is one
//! without this device, not one where the program cannot start.
//!
//! The system's own search comes first. Then folders where CUDA is usually installed, and those of Python's packages
//! (`nvidia/cu13/lib` and the like) beside an interpreter of `PATH` or of an active virtual environment. A library found
//! there is opened by its full path once; after that the system finds it by its name.

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

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
    const fn versions(self) -> &'static [&'static str] {
        match self {
            Self::Driver => &["1"],
            Self::Nvrtc | Self::CublasLt => &["13", "12"],
        }
    }

    /// Opens it, wherever it is; where it was found.
    ///
    /// # Errors
    /// If it is nowhere: the file's name and what to install.
    pub fn open(self) -> Result<&'static str, String> {
        static FOUND: [OnceLock<Option<String>>; 3] = [const { OnceLock::new() }; 3];
        let found = FOUND[self as usize].get_or_init(|| self.find());
        found.as_deref().ok_or_else(|| format!("{} was not found: {}", self.file(), self.remedy()))
    }

    fn find(self) -> Option<String> {
        let names: Vec<String> = self.versions().iter().map(|v| format!("{}.{v}", self.file())).collect();
        if let Some(name) = names.iter().find(|name| load(Path::new(name))) {
            return Some(name.clone());
        }
        let folders = folders();
        let paths = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
        paths.filter(|path| path.is_file()).find(|path| load(path)).map(|path| path.display().to_string())
    }
}

/// Opens a library for the life of the program.
fn load(path: &Path) -> bool {
    // SAFETY: the libraries of CUDA run nothing of their own when they are opened.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) };
    library.map(std::mem::forget).is_ok()
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
