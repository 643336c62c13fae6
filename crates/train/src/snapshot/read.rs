//! Reads snapshots, trusting nothing in the file.
//!
//! Invariants: nothing is allocated on the word of the file alone (each length is first held against the file's own);
//! reads are positioned, so a file that shrinks meanwhile gives an error, not a crash; what is returned has the right
//! checksum and finite numbers only.
use std::{
    borrow::Cow,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use safetensors::tensor::TensorInfo;

use super::{
    DType, Damage, FORMAT, Meta, Snapshot, SnapshotError, Tensor,
    header::{self, Header},
    meta::Version,
    preview,
    tensor::first_non_finite,
};

/// Loads a whole snapshot.
///
/// # Errors
/// [`SnapshotError`] with the reason, for a file that is not a snapshot, is damaged, comes from a newer program, or
/// holds numbers that are not finite.
pub fn load(path: &Path) -> Result<Snapshot<'static>, SnapshotError> {
    let mut opened = Opened::open(path)?;
    let meta = opened.meta(path)?;
    let mut tensors = Vec::with_capacity(opened.header.tensors.len());
    opened.read_tensors(path, |name, info, bytes| tensors.push((name.to_string(), info.clone(), bytes)))?;
    // Only now, so that NaN in a foreign file is named as such.
    let meta = meta.ok_or_else(|| foreign(path))?;
    let tensors = tensors.into_iter().map(|(name, info, bytes)| own(path, name, info, bytes));
    Ok(Snapshot { tensors: tensors.collect::<Result<_, _>>()?, meta })
}

/// Checks a snapshot as [`load`] does, keeping one tensor in memory at a time.
///
/// # Errors
/// As [`load`].
pub fn verify(path: &Path) -> Result<Meta, SnapshotError> {
    let mut opened = Opened::open(path)?;
    let meta = opened.meta(path)?;
    opened.read_tensors(path, |_, _, _| ())?;
    meta.ok_or_else(|| foreign(path))
}

/// Reads the header only: quick, but damage in the data is not seen.
///
/// # Errors
/// As [`load`].
pub fn peek(path: &Path) -> Result<Meta, SnapshotError> {
    Opened::open(path)?.meta(path)?.ok_or_else(|| foreign(path))
}

fn own(
    path: &Path,
    name: String,
    info: TensorInfo,
    bytes: Vec<u8>,
) -> Result<Tensor<'static>, SnapshotError> {
    match DType::from_file(info.dtype) {
        Some(dtype) => Ok(Tensor { name, dtype, shape: info.shape, bytes: Cow::Owned(bytes) }),
        None => Err(damaged(
            path,
            Damage::Header(format!("tensor `{name}` is {}, which no snapshot holds", info.dtype)),
        )),
    }
}

/// An open safetensors file with a valid header that agrees with the file's length.
pub(super) struct Opened {
    file: File,
    pub header: Header,
}

impl Opened {
    pub fn open(path: &Path) -> Result<Self, SnapshotError> {
        let (mut file, found) = open_file(path).map_err(|e| unreadable(path, e))?;
        let text = read_header(&mut file, found, path)?;
        let header = check(&text, found).map_err(|damage| damaged(path, damage))?;
        Ok(Opened { file, header })
    }

    /// The meta of a snapshot that this program understands; `None` in a file of another program.
    fn meta(&self, path: &Path) -> Result<Option<Meta>, SnapshotError> {
        let Some(text) = &self.header.meta else { return Ok(None) };
        let bad = |e: serde_json::Error| damaged(path, Damage::Header(format!("`ocelli` entry: {e}")));
        let version: Version = serde_json::from_str(text).map_err(bad)?;
        if version.format > FORMAT {
            return Err(SnapshotError::Newer {
                path: path.to_path_buf(),
                found: version.format,
                supported: FORMAT,
                version: version.ocelli_version,
            });
        }
        serde_json::from_str(text).map(Some).map_err(bad)
    }

    /// Reads all tensors in the file's order and hands them to `sink`, checking numbers and checksum.
    pub fn read_tensors(
        &mut self,
        path: &Path,
        mut sink: impl FnMut(&str, &TensorInfo, Vec<u8>),
    ) -> Result<(), SnapshotError> {
        let mut crc = self.header.crc;
        let mut bad = None;
        for (name, info) in &self.header.tensors {
            let bytes = read_exactly(&mut self.file, info.data_offsets.1 - info.data_offsets.0)
                .map_err(|e| unreadable(path, e))?;
            crc = crc32c::crc32c_append(crc, &bytes);
            if bad.is_none() {
                bad = first_non_finite(info.dtype, &bytes).map(|(at, value)| (name, at as u64, value));
            }
            sink(name, info, bytes);
        }
        let computed = header::format_crc(crc);
        let changed = self.header.stored_crc.as_ref().is_some_and(|stored| *stored != computed);
        if let Some((name, index, value)) = bad {
            let (path, tensor) = (path.to_path_buf(), name.clone());
            return Err(SnapshotError::NonFinite { path, tensor, index, value, changed, earlier: None });
        }
        match (&self.header.stored_crc, &self.header.meta) {
            (Some(stored), _) if changed => {
                Err(damaged(path, Damage::Checksum { stored: stored.clone(), computed }))
            }
            (None, Some(_)) => Err(damaged(path, Damage::Header("its checksum is missing".into()))),
            _ => Ok(()),
        }
    }
}

/// The file and its length. Asked before opening, since opening a pipe would wait for a writer.
fn open_file(path: &Path) -> io::Result<(File, u64)> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
    }
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

/// The header's bytes, after which the file stands at the data.
fn read_header(file: &mut File, found: u64, path: &Path) -> Result<Vec<u8>, SnapshotError> {
    let mut start = Vec::with_capacity(preview::BYTES);
    file.take(preview::BYTES as u64).read_to_end(&mut start).map_err(|e| unreadable(path, e))?;
    let length = header_length(&start, found).map_err(|damage| match pickle_kind(&start, path) {
        Some(kind) => SnapshotError::Pickle { path: path.to_path_buf(), kind },
        None if preview::is_other(&start) => {
            SnapshotError::NotSafetensors { path: path.to_path_buf(), begins: preview::of(&start) }
        }
        None => damaged(path, damage),
    })?;
    file.seek(SeekFrom::Start(8))
        .and_then(|_| read_exactly(file, length as usize))
        .map_err(|e| unreadable(path, e))
}

/// The header's length, held against the file's.
fn header_length(start: &[u8], found: u64) -> Result<u64, Damage> {
    let Some(field) = start.first_chunk::<8>() else { return Err(Damage::Cut { wanted: 10, found }) };
    let length = u64::from_le_bytes(*field);
    if length > header::MAX_HEADER || length > found.saturating_sub(8) {
        return Err(Damage::HeaderLength { header: length, file: found });
    }
    if start.get(8) != Some(&b'{') {
        return Err(Damage::Header("it does not begin with `{`".into()));
    }
    Ok(length)
}

/// Parses the header and holds it against the file's length.
fn check(text: &[u8], found: u64) -> Result<Header, Damage> {
    let header = Header::parse(text).map_err(Damage::Header)?;
    let wanted = (8 + text.len() as u64).saturating_add(header.data_len);
    match found.cmp(&wanted) {
        std::cmp::Ordering::Less => return Err(Damage::Cut { wanted, found }),
        std::cmp::Ordering::Greater => return Err(Damage::Trailing { wanted, found }),
        std::cmp::Ordering::Equal => {}
    }
    header.check_tensors().map_err(Damage::Header)?;
    Ok(header)
}

/// Recognises what PyTorch writes by its first bytes, or else by the file's ending.
fn pickle_kind(start: &[u8], path: &Path) -> Option<&'static str> {
    if start.starts_with(b"PK\x03\x04") {
        return Some("a zip archive, as torch.save writes it, with a pickle inside");
    }
    if let [0x80, 2..=5, ..] = start {
        return Some("a pickle");
    }
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    ["pt", "pth", "pkl", "pickle", "ckpt"].contains(&ending.as_str()).then_some("named as a pickle file")
}

/// Exactly `len` bytes, which the caller has held against the file's length.
fn read_exactly(file: &mut File, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(len);
    let got = file.take(len as u64).read_to_end(&mut bytes)?;
    if got < len {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the file became shorter while it was read",
        ));
    }
    Ok(bytes)
}

fn damaged(path: &Path, damage: Damage) -> SnapshotError {
    SnapshotError::Damaged { path: path.to_path_buf(), damage }
}

fn foreign(path: &Path) -> SnapshotError {
    SnapshotError::Foreign { path: path.to_path_buf() }
}

fn unreadable(path: &Path, source: io::Error) -> SnapshotError {
    SnapshotError::Read { path: path.to_path_buf(), source }
}
