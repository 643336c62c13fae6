//! The JSON header of a snapshot's file, and the checksum that covers the file.
//!
//! Invariants: the tensors of a parsed header have distinct names, lie back to back from offset 0, and each one's
//! length is that of its shape and dtype. The checksum is CRC-32C over the whole file, with the checksum's own 8
//! digits taken as zeros.
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
};

use safetensors::tensor::{Metadata, TensorInfo};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};

use super::{Meta, Tensor};

/// Key of the [`Meta`] in `__metadata__`.
const META_KEY: &str = "ocelli";
/// Key of the checksum in `__metadata__`.
const CRC_KEY: &str = "ocelli_crc32c";
const ZEROS: &str = "00000000";
/// The format's own limit on the header.
pub(super) const MAX_HEADER: u64 = 100_000_000;

/// A parsed and checked header.
pub(super) struct Header {
    /// In the order of their offsets, which are relative to the end of the header.
    pub tensors: Vec<(String, TensorInfo)>,
    /// JSON of the [`Meta`]; `None` in a file of another program.
    pub meta: Option<String>,
    /// The checksum that the file states.
    pub stored_crc: Option<String>,
    /// The checksum of the length field and the header, to be continued over the data.
    pub crc: u32,
    /// Bytes of the tensors together.
    pub data_len: u64,
}

impl Header {
    /// Parses the header `text`. `Err` says what is not valid.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let raw: Raw = serde_json::from_slice(text).map_err(|e| e.to_string())?;
        let mut tensors = raw.tensors;
        tensors.sort_by_key(|(_, info)| info.data_offsets);
        let mut names = HashSet::new();
        if let Some((name, _)) = tensors.iter().find(|(name, _)| !names.insert(name.as_str())) {
            return Err(format!("tensor `{name}` appears twice"));
        }
        // The crate checks offsets, shapes and overflow; the file's length is checked by whoever knows it.
        let data_len = match tensors.iter().map(|(_, info)| info.data_offsets.1).max() {
            Some(end) => end as u64,
            None => 0,
        };
        let header = Header {
            meta: raw.extra.get(META_KEY).cloned(),
            stored_crc: raw.extra.get(CRC_KEY).cloned(),
            crc: crc_of_header(text, raw.extra.get(CRC_KEY).map(String::as_str)),
            data_len,
            tensors,
        };
        Ok(header)
    }

    /// Checks that offsets, shapes and dtypes agree. `Err` says what is not valid.
    pub fn check_tensors(&self) -> Result<(), String> {
        Metadata::new(None, self.tensors.clone()).map(|_| ()).map_err(|e| e.to_string())
    }
}

/// Length field, header and checksum of a snapshot that holds `tensors` in this order.
///
/// `Err` if the format cannot hold them.
pub(super) fn encode(meta: &Meta, tensors: &[&Tensor<'_>]) -> Result<Vec<u8>, String> {
    let json = serde_json::to_string(meta).map_err(|e| e.to_string())?;
    let extra = HashMap::from([(META_KEY.to_string(), json), (CRC_KEY.to_string(), ZEROS.to_string())]);
    let mut text = text(extra, tensors)?;
    let crc =
        tensors.iter().fold(crc_of_header(&text, Some(ZEROS)), |crc, t| crc32c::crc32c_append(crc, &t.bytes));
    let place = crc_place(&text, ZEROS).ok_or("its header has no place for the checksum")?;
    text[place..place + ZEROS.len()].copy_from_slice(format_crc(crc).as_bytes());
    Ok(with_length(text))
}

/// Length field and header of a file for other programs, with these texts as its metadata.
///
/// `Err` if the format cannot hold them.
pub(super) fn encode_plain(
    about: HashMap<String, String>,
    tensors: &[&Tensor<'_>],
) -> Result<Vec<u8>, String> {
    text(about, tensors).map(with_length)
}

/// The header's JSON, padded so that the tensors are aligned.
fn text(extra: HashMap<String, String>, tensors: &[&Tensor<'_>]) -> Result<Vec<u8>, String> {
    let mut end = 0;
    let infos = tensors.iter().map(|t| {
        let start = end;
        end += t.bytes.len();
        let info =
            TensorInfo { dtype: t.dtype.to_file(), shape: t.shape.clone(), data_offsets: (start, end) };
        (t.name.clone(), info)
    });
    let metadata = Metadata::new(Some(extra), infos.collect()).map_err(|e| e.to_string())?;
    let mut text = serde_json::to_vec(&metadata).map_err(|e| e.to_string())?;
    text.resize(text.len().next_multiple_of(8), b' ');
    if text.len() as u64 > MAX_HEADER {
        return Err(format!("its header would have {} bytes, the format allows {MAX_HEADER}", text.len()));
    }
    Ok(text)
}

fn with_length(mut text: Vec<u8>) -> Vec<u8> {
    let mut out = (text.len() as u64).to_le_bytes().to_vec();
    out.append(&mut text);
    out
}

/// A checksum as it stands in a file.
pub(super) fn format_crc(crc: u32) -> String {
    format!("{crc:08x}")
}

/// Checksum of the length field and the header, with the stored digits taken as zeros.
fn crc_of_header(text: &[u8], stored: Option<&str>) -> u32 {
    let crc = crc32c::crc32c(&(text.len() as u64).to_le_bytes());
    match stored.and_then(|digits| crc_place(text, digits)) {
        Some(at) => {
            let crc = crc32c::crc32c_append(crc, &text[..at]);
            let crc = crc32c::crc32c_append(crc, ZEROS.as_bytes());
            crc32c::crc32c_append(crc, &text[at + ZEROS.len()..])
        }
        None => crc32c::crc32c_append(crc, text),
    }
}

/// Where the 8 digits stand. Inside another text the quotes would be escaped, so only the real entry matches.
fn crc_place(text: &[u8], digits: &str) -> Option<usize> {
    if digits.len() != ZEROS.len() {
        return None;
    }
    let key = format!("\"{CRC_KEY}\":\"");
    let entry = format!("{key}{digits}\"");
    text.windows(entry.len()).position(|w| w == entry.as_bytes()).map(|at| at + key.len())
}

/// The header as it stands, before any check but JSON's.
struct Raw {
    extra: BTreeMap<String, String>,
    tensors: Vec<(String, TensorInfo)>,
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RawVisitor)
    }
}

/// Keeps repeated names apart, which a map would merge in silence.
struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut extra = None;
        let mut tensors = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            if key != "__metadata__" {
                tensors.push((key, map.next_value()?));
            } else if extra.replace(map.next_value()?).is_some() {
                return Err(A::Error::custom("`__metadata__` appears twice"));
            }
        }
        Ok(Raw { extra: extra.unwrap_or_default(), tensors })
    }
}
