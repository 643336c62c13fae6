//! Why a snapshot could not be written, read or found. Each message says what, where, and what to do.
use std::{io, path::PathBuf};

use super::WriteError;

/// Every failure of this module.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// Writing failed; nothing that existed was changed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// What was to be saved is not a valid state; nothing was written.
    #[error("cannot save {}: {reason}. Nothing was written", path.display())]
    Invalid {
        /// The file that was to be written.
        path: PathBuf,
        /// What is wrong with the state.
        reason: String,
    },
    /// The file system refused.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A PyTorch file. Such files can run code when they are read, so it was not.
    #[error(
        "{path} is {kind}: an untrusted format, because reading it can run code, so Ocelli does not read it. \
         Convert it once with `python scripts/pt_to_safetensors.py {path} OUT.safetensors` and start from that with \
         `model_config.init_from=OUT.safetensors`",
        path = path.display()
    )]
    Pickle {
        /// The file.
        path: PathBuf,
        /// Which kind of pickle.
        kind: &'static str,
    },
    /// Something else altogether.
    #[error(
        "{} is not a safetensors file: it begins with {begins}. Wanted is a snapshot (its name ends in \
         _snapshot.safetensors) or the folder of a run; for model_config.init_from, any weights in safetensors format",
        path.display()
    )]
    NotSafetensors {
        /// The file.
        path: PathBuf,
        /// Its first bytes in words.
        begins: String,
    },
    /// The file was a snapshot once, or claims to be a safetensors file, and is broken.
    #[error("{} is damaged: {damage}. Use an earlier snapshot", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is broken.
        damage: Damage,
    },
    /// A whole safetensors file that Ocelli did not write.
    #[error(
        "{path} is a safetensors file but not a snapshot of Ocelli: its metadata has no `ocelli` entry. To start from \
         its weights alone, use `model_config.init_from={path}`",
        path = path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Written by a later program.
    #[error(
        "{} is in snapshot format {found}, written by Ocelli {version}; this program reads up to format {supported}. \
         Update Ocelli",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The file's format.
        found: u32,
        /// The newest format known here.
        supported: u32,
        /// The program that wrote it.
        version: String,
    },
    /// The training that wrote it had diverged, or the file was changed.
    #[error(
        "{}: tensor `{tensor}` holds {value} at element {index}, and with such a number every result is one: the \
         training that wrote it had diverged. {}{}",
        path.display(),
        if *changed { "The checksum does not match either: the file was changed after it was written. " } else { "" },
        match earlier {
            Some(p) => format!("An earlier whole snapshot is {}", p.display()),
            None => "Use an earlier snapshot".to_string(),
        }
    )]
    NonFinite {
        /// The file.
        path: PathBuf,
        /// The first tensor concerned, in the file's order.
        tensor: String,
        /// Row-major index of its first bad element.
        index: u64,
        /// `NaN` or `Inf`.
        value: &'static str,
        /// Whether the file's checksum failed too.
        changed: bool,
        /// A snapshot of the same folder that can be used, if one was looked for and found.
        earlier: Option<PathBuf>,
    },
    /// The tensors do not fit the model.
    #[error(
        "its tensors do not fit the model:\n  {differences}\nEach parameter must be there by its name, which is that of \
         the published model, and with its shape, which follows from the sizes in model_config"
    )]
    Layout {
        /// One line for each difference.
        differences: String,
    },
    /// The weights have a type that is not read.
    #[error(
        "{}: tensor `{tensor}` is {dtype}; weights are read in F32 only. Convert the file to float32",
        path.display()
    )]
    WeightType {
        /// The file.
        path: PathBuf,
        /// The first such tensor.
        tensor: String,
        /// Its type in the file.
        dtype: String,
    },
}

/// What is broken in a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The data does not reach as far as the header says.
    #[error(
        "it is cut, or its offsets point past its end: {wanted} bytes wanted, {found} bytes found \
         ({} missing)",
        wanted.saturating_sub(*found)
    )]
    Cut {
        /// Bytes that the header asks for.
        wanted: u64,
        /// Bytes of the file.
        found: u64,
    },
    /// The header's length cannot be right.
    #[error("its header claims {header} bytes, the whole file has {file}")]
    HeaderLength {
        /// The length that the first 8 bytes state.
        header: u64,
        /// Bytes of the file.
        file: u64,
    },
    /// There are bytes after the last tensor.
    #[error("{found} bytes found, only {wanted} wanted: something was appended")]
    Trailing {
        /// Bytes that the header asks for.
        wanted: u64,
        /// Bytes of the file.
        found: u64,
    },
    /// The header is not what the format asks for.
    #[error("its header is not valid: {0}")]
    Header(String),
    /// Bits changed since it was written.
    #[error(
        "its checksum is {stored} but its contents give {computed}: bits changed after it was written (a failing \
         disk or memory, or another program rewrote it)"
    )]
    Checksum {
        /// The checksum in the file.
        stored: String,
        /// That of the file's contents.
        computed: String,
    },
}
