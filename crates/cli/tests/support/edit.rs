//! Changes what stands in a snapshot's metadata, as another version or a wrong clock would have written it.

use serde_json::Value;
use std::path::Path;

/// Changes the metadata of a snapshot, with a checksum that fits.
pub fn edit(path: &Path, change: impl FnOnce(&mut Value)) {
    let bytes = std::fs::read(path).unwrap();
    let data = 8 + u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
    let mut header: Value = serde_json::from_slice(&bytes[8..data]).unwrap();
    let extra = &mut header["__metadata__"];
    let mut meta: Value = serde_json::from_str(extra["ocelli"].as_str().unwrap()).unwrap();
    change(&mut meta);
    extra["ocelli"] = meta.to_string().into();
    extra["ocelli_crc32c"] = "00000000".into();
    let mut head = header.to_string().into_bytes();
    head.resize(head.len().next_multiple_of(8), b' ');
    let mut file = (head.len() as u64).to_le_bytes().to_vec();
    file.append(&mut head);
    file.extend(&bytes[data..]);
    let digits = format!("{:08x}", crc32c::crc32c(&file));
    let key = b"\"ocelli_crc32c\":\"";
    let at = file.windows(key.len()).position(|w| w == key).unwrap() + key.len();
    file[at..at + 8].copy_from_slice(digits.as_bytes());
    std::fs::write(path, file).unwrap();
}
