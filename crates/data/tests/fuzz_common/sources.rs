//! Tables, metadata of folders, and parquet files. Each row of what is not refused is a sample or a bad one.

use std::path::Path;

use ocelli_data::image::DecodeOptions;
use ocelli_data::source::csv::Csv;
use ocelli_data::source::folder::Folder;
use ocelli_data::source::parquet::{Parquet, ParquetOptions};
use ocelli_data::source::{Delimiter, Encoding, Source, SourceError, SplitNames, TextOptions};

use super::pictures::MAX_PIXELS;
use super::{Target, Verdict};

/// What the parsers' own buffers take.
const MEMORY: usize = 80 << 20;
/// A page of parquet is unpacked up to 128 MiB whatever it is in the file, in memory that doubles: once more its half.
const PAGES: usize = 208 << 20;
/// Rows that are read of each source.
const ROWS: usize = 500;

pub(super) fn targets() -> [Target; 4] {
    let target = |name, files, read| Target { name, files, mend: |_| {}, read, memory: MEMORY };
    [
        target("csv", tables(), read_table),
        target("metadata.csv", vec![METADATA.into()], |bytes, _| read_folder("metadata.csv", bytes)),
        target("metadata.jsonl", vec![LINES.into()], |bytes, _| read_folder("metadata.jsonl", bytes)),
        Target { memory: PAGES, ..target("parquet", parquet_files(), read_parquet) },
    ]
}

const METADATA: &[u8] =
    b"file_name,id,text\na.png,1,one\nb.png,2,\"two, more\"\n../x.png,3,three\na.png,4,four\n";
const LINES: &[u8] = b"{\"file_name\": \"a.png\", \"text\": [\"one\", \"two\"]}\n\
    {\"file_name\": \"b.png\", \"text\": \"x\"}\n{\"text\": null, \"file_name\": \"/c.png\"}\n";

const ENCODINGS: [&str; 5] = ["utf-8", "utf-8", "windows-1252", "gb18030", "utf-16le"];

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)).unwrap()
}

/// A table with commas, with tabs, and in UTF-16.
fn tables() -> Vec<Vec<u8>> {
    let commas = fixture("cases/08_captions/captions.csv");
    let tabs = commas.iter().map(|b| if *b == b',' { b'\t' } else { *b }).collect();
    let text = String::from_utf8(commas.clone()).unwrap();
    vec![commas, tabs, text.encode_utf16().flat_map(u16::to_le_bytes).collect()]
}

fn parquet_files() -> Vec<Vec<u8>> {
    let mut names = Vec::new();
    for folder in ["codec", "image", "caption"] {
        let entries =
            std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parquet").join(folder));
        let entries = entries.unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        names.extend(entries.filter(|n| n.ends_with(".parquet")).map(|n| format!("parquet/{folder}/{n}")));
    }
    names.sort();
    names.iter().map(|name| fixture(name)).collect()
}

/// The bytes as a file of this name, in a folder of their own.
fn with_file(name: &str, bytes: &[u8], read: impl FnOnce(&Path) -> Verdict) -> Verdict {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    read(&path)
}

/// Pictures with the limit that the bounds of memory are for: a header that claims more is asked for as much before it is believed.
fn decoding() -> DecodeOptions {
    DecodeOptions { max_pixels: MAX_PIXELS, ..DecodeOptions::default() }
}

fn read_table(bytes: &[u8], seed: u64) -> Verdict {
    with_file("x.csv", bytes, |path| {
        let label = if bytes.get(1) == Some(&0) { "utf-16le" } else { ENCODINGS[(seed % 5) as usize] };
        let header = bytes.split(|b| *b == b'\n').next().unwrap_or_default();
        let delimiter = if header.contains(&b'\t') { Delimiter::TAB } else { Delimiter::COMMA };
        let encoding = Encoding::named(label).unwrap();
        verdict(Csv::open(
            path,
            &TextOptions { delimiter, encoding, decode: decoding(), ..TextOptions::default() },
        ))
    })
}

fn read_folder(name: &str, bytes: &[u8]) -> Verdict {
    with_file(name, bytes, |path| {
        let folder = path.parent().unwrap();
        std::fs::write(folder.join("a.png"), fixture("cases/03_alpha_palette_grey/one_by_one.png")).unwrap();
        let options = TextOptions { decode: decoding(), ..TextOptions::default() };
        verdict(Folder::open(folder, &SplitNames::default(), &options).map(|s| s.train))
    })
}

fn read_parquet(bytes: &[u8], _: u64) -> Verdict {
    with_file("x.parquet", bytes, |path| {
        let options = ParquetOptions { decode: decoding(), ..ParquetOptions::default() };
        verdict(Parquet::open(path, &SplitNames::default(), &options).map(|s| s.train))
    })
}

fn verdict(source: Result<impl Source, SourceError>) -> Verdict {
    match source {
        Ok(source) => read_all(&source).map_or_else(Verdict::Wrong, |()| Verdict::Accepted),
        Err(SourceError::Column { .. }) => Verdict::Refused("column"),
        Err(SourceError::Record { .. }) => Verdict::Refused("record"),
        Err(SourceError::NotUsable { .. }) => Verdict::Refused("not_usable"),
        Err(e) => Verdict::Wrong(e.to_string()),
    }
}

/// Reads rows, and some that are not there.
fn read_all(source: &dyn Source) -> Result<(), String> {
    for row in 0..source.len().min(ROWS) {
        let (caption, read) = (source.caption(row), source.pictured(row, 4));
        let chars = caption.as_ref().map(|text| text.chars().count());
        if let Ok(sample) = &read
            && (sample.pixels.len() != 48 || Ok(&sample.caption) != caption.as_ref())
        {
            return Err(format!("row {row}: {caption:?} and {sample:?}"));
        }
        if chars.is_ok_and(|n| n == 0 || n != source.caption_chars(row)) || caption.is_err() && read.is_ok() {
            return Err(format!("row {row}: {caption:?} of {} characters", source.caption_chars(row)));
        }
    }
    if source.pictured(source.len(), 4).is_ok() || source.pictured(usize::MAX, 4).is_ok() {
        return Err("a row that is not there was read".into());
    }
    let groups = source.groups().map(|g| (g.rows(), g.pictures()));
    if groups.is_some_and(|(rows, pictures)| rows != source.len() || pictures >= rows) {
        return Err(format!("groups {groups:?} of {} rows", source.len()));
    }
    let _ = (source.fingerprint(), source.notes(), source.describe());
    Ok(())
}
