//! Compiled kernels on disk, so that a second start compiles nothing.
//!
//! A file holds the source it was made from, and is used only if that is equal to the byte: a name that two sources share
//! costs a compilation, never a wrong kernel. Files are written whole under another name and then renamed. A cache that
//! cannot be read or written is no error.

use crate::nvrtc::{self, NvrtcFault};
use ocelli_ir::rng::hash_name;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a file starts with; the number counts formats.
const MAGIC: &[u8; 16] = b"ocelli kernel 1\n";

/// Compiles kernels for one architecture, or finds them compiled.
#[derive(Debug)]
pub struct KernelCache {
    arch: String,
    version: String,
    folder: Option<PathBuf>,
    compiled: AtomicUsize,
}

impl KernelCache {
    /// For an architecture such as `sm_90a`; files in `folder`, if there is one.
    ///
    /// # Errors
    /// If there is no compiler.
    pub fn new(arch: &str, folder: Option<PathBuf>) -> Result<Self, NvrtcFault> {
        Ok(Self { arch: arch.into(), version: nvrtc::version()?, folder, compiled: AtomicUsize::new(0) })
    }

    /// Finds out whether kernels can be kept in a folder, which is made if it is not there: a file is written and removed.
    ///
    /// # Errors
    /// What the system says.
    pub fn try_folder(folder: &Path) -> std::io::Result<()> {
        let path = folder.join("try");
        write(&path, "", &[])?;
        std::fs::remove_file(path)
    }

    /// Version of the compiler, `13.0`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Kernels compiled since it was made, those found on disk not counted.
    pub fn compiled(&self) -> usize {
        self.compiled.load(Ordering::Relaxed)
    }

    /// Machine code of each source, in order; what is not on disk is compiled on all cores.
    ///
    /// # Errors
    /// If the compiler refuses one.
    pub fn all(&self, sources: &[String]) -> Result<Vec<Vec<u8>>, NvrtcFault> {
        let next = AtomicUsize::new(0);
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(sources.len().max(1));
        let work = || {
            let mut done = Vec::new();
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                let Some(source) = sources.get(i) else { return Ok::<_, NvrtcFault>(done) };
                done.push((i, self.one(source)?));
            }
        };
        let mut all = vec![Vec::new(); sources.len()];
        let results = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            threads
                .into_iter()
                .map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect::<Vec<_>>()
        });
        for result in results {
            result?.into_iter().for_each(|(i, cubin)| all[i] = cubin);
        }
        Ok(all)
    }

    fn one(&self, source: &str) -> Result<Vec<u8>, NvrtcFault> {
        let key = format!("{} {} {source}", self.arch, self.version);
        let path = self.folder.as_ref().map(|f| f.join(format!("{:016x}", hash_name(&key))));
        if let Some(cubin) = path.as_deref().and_then(|p| read(p, &key)) {
            return Ok(cubin);
        }
        let cubin = nvrtc::compile(source, &self.arch)?;
        self.compiled.fetch_add(1, Ordering::Relaxed);
        if let Some(path) = path {
            let _ = write(&path, &key, &cubin);
        }
        Ok(cubin)
    }
}

/// A folder of the user's cache: `$XDG_CACHE_HOME/ocelli/NAME` or `~/.cache/ocelli/NAME`.
pub fn folder(name: &str) -> Option<PathBuf> {
    let absolute = |p: std::ffi::OsString| Some(PathBuf::from(p)).filter(|p| p.is_absolute());
    let home = || std::env::var_os("HOME").and_then(absolute).map(|home| home.join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").and_then(absolute).or_else(home)?;
    Some(cache.join("ocelli").join(name))
}

fn read(path: &Path, key: &str) -> Option<Vec<u8>> {
    let bytes = std::fs::read(path).ok()?;
    let rest = bytes.strip_prefix(MAGIC)?;
    let (len, rest) = rest.split_first_chunk::<8>()?;
    let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
    let (found, rest) = rest.split_at_checked(len)?;
    // The rest has its own size in front: a file that was cut is not used.
    let (size, cubin) = rest.split_first_chunk::<8>()?;
    (found == key.as_bytes() && u64::from_le_bytes(*size) == cubin.len() as u64).then(|| cubin.to_vec())
}

fn write(path: &Path, key: &str, cubin: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let sizes = [key.len(), cubin.len()].map(|n| (n as u64).to_le_bytes());
    let bytes = [&MAGIC[..], &sizes[0], key.as_bytes(), &sizes[1], cubin].concat();
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    std::fs::write(&temporary, bytes)?;
    std::fs::rename(&temporary, path).inspect_err(|_| drop(std::fs::remove_file(&temporary)))
}
