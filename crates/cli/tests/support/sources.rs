//! The same rows as a source of every kind.
#![allow(dead_code)] // each test binary uses its part

use super::Bench;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::path::Path;
use std::sync::Arc;

/// A picture's file and its caption.
pub struct Row {
    pub picture: Vec<u8>,
    pub caption: String,
}

/// Every kind: tables, parquet with `struct<bytes, path>` and with plain bytes, WebDataset, folders with each kind of metadata.
pub const KINDS: [&str; 8] =
    ["rows.csv", "rows.tsv", "rows.parquet", "plain.parquet", "rows.tar", "listed", "lines", "beside"];

/// The key that names a kind.
pub fn dataset(kind: &str) -> &'static str {
    match kind.rsplit('.').next() {
        Some("csv") => "data_config.dataset=csv",
        Some("tsv") => "data_config.dataset=tsv",
        Some("parquet") => "data_config.dataset=parquet",
        Some("tar") => "data_config.dataset=webdataset",
        _ => "data_config.dataset=folder",
    }
}

/// Writes `rows` as a source of the kind, under its name.
pub fn write(b: &Bench, kind: &str, rows: &[Row]) {
    let path = b.path(kind);
    match kind {
        "rows.csv" => table(&path, b',', &["image", "caption"], encoded(rows)),
        "rows.tsv" => table(&path, b'\t', &["image", "caption"], encoded(rows)),
        "rows.parquet" | "plain.parquet" => parquet(&path, kind == "rows.parquet", rows),
        "rows.tar" => webdataset(&path, rows),
        _ => folder(&path, kind, rows),
    }
}

fn encoded(rows: &[Row]) -> impl Iterator<Item = [String; 2]> {
    rows.iter().map(|row| [STANDARD.encode(&row.picture), row.caption.clone()])
}

fn table(path: &Path, delimiter: u8, names: &[&str; 2], rows: impl Iterator<Item = [String; 2]>) {
    let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_path(path).unwrap();
    writer.write_record(names).unwrap();
    rows.for_each(|row| writer.write_record(row).unwrap());
    writer.flush().unwrap();
}

/// A tar archive of pictures and texts; the endings say nothing of what a picture is.
fn webdataset(path: &Path, rows: &[Row]) {
    let mut archive = tar::Builder::new(std::fs::File::create(path).unwrap());
    let mut put = |name: String, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, bytes).unwrap();
    };
    for (i, row) in rows.iter().enumerate() {
        put(format!("{i:05}.jpg"), &row.picture);
        put(format!("{i:05}.txt"), row.caption.as_bytes());
    }
    archive.finish().unwrap();
}

fn folder(path: &Path, kind: &str, rows: &[Row]) {
    std::fs::create_dir(path).unwrap();
    let name = |i: usize| format!("{i:03}.jpg");
    for (i, row) in rows.iter().enumerate() {
        std::fs::write(path.join(name(i)), &row.picture).unwrap();
    }
    match kind {
        "listed" => {
            let rows = rows.iter().enumerate().map(|(i, row)| [name(i), row.caption.clone()]);
            table(&path.join("metadata.csv"), b',', &["file_name", "text"], rows);
        }
        "lines" => {
            let line = |(i, row): (usize, &Row)| {
                serde_json::json!({"file_name": name(i), "text": row.caption}).to_string()
            };
            let lines: Vec<String> = rows.iter().enumerate().map(line).collect();
            std::fs::write(path.join("metadata.jsonl"), lines.join("\n")).unwrap();
        }
        _ => rows.iter().enumerate().for_each(|(i, row)| {
            std::fs::write(path.join(format!("{i:03}.txt")), &row.caption).unwrap();
        }),
    }
}

fn parquet(path: &Path, structure: bool, rows: &[Row]) {
    let pictures = rows.iter().map(|row| row.picture.clone()).collect();
    let captions = rows.iter().map(|row| row.caption.clone().into_bytes()).collect();
    if structure {
        let image = "group image { optional binary bytes; optional binary path (UTF8); }";
        // The paths are null in structures that are there.
        columns(path, image, rows.len(), [(2, pictures), (1, Vec::new()), (1, captions)]);
    } else {
        columns(path, "binary image;", rows.len(), [(1, pictures), (1, captions)]);
    }
}

/// A parquet file of `struct<bytes, path>` with paths; without `rows`' pictures, of the paths alone.
pub fn parquet_with_paths(path: &Path, rows: &[(Row, &str)], bytes: bool) {
    let pictures = rows.iter().filter(|_| bytes).map(|(row, _)| row.picture.clone()).collect();
    let paths = rows.iter().map(|(_, path)| path.as_bytes().to_vec()).collect();
    let captions = rows.iter().map(|(row, _)| row.caption.clone().into_bytes()).collect();
    let image = "group image { optional binary bytes; optional binary path (UTF8); }";
    columns(path, image, rows.len(), [(if bytes { 2 } else { 1 }, pictures), (2, paths), (1, captions)]);
}

/// A parquet file with pictures as text: base64 or names of files.
pub fn parquet_of_text(path: &Path, pictures: &[String], captions: &[String]) {
    let bytes = |texts: &[String]| texts.iter().map(|text| text.clone().into_bytes()).collect();
    let all = [(1, bytes(pictures)), (1, bytes(captions))];
    columns(path, "binary image (UTF8);", pictures.len(), all);
}

/// Columns, each with the level of definition of its rows and the values.
fn columns<const N: usize>(path: &Path, image: &str, rows: usize, columns: [(i16, Vec<Vec<u8>>); N]) {
    let schema = format!("message rows {{ optional {image} optional binary caption (UTF8); }}");
    let schema = Arc::new(parse_message_type(&schema).unwrap());
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for (level, values) in columns {
        let mut column = group.next_column().unwrap().unwrap();
        let values: Vec<ByteArray> = values.into_iter().map(ByteArray::from).collect();
        column.typed::<ByteArrayType>().write_batch(&values, Some(&vec![level; rows]), None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}
