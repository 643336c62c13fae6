//! Damaged files of every kind: each is refused, or each of its rows is a sample or a bad one. No panic, no hang.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use ocelli_data::source::csv::Csv;
use ocelli_data::source::folder::Folder;
use ocelli_data::source::parquet::{Parquet, ParquetOptions};
use ocelli_data::source::{Encoding, Source, SplitNames, TextOptions};
use proptest::prelude::*;
use tempfile::TempDir;

/// Longest that one damaged file may take; they are small, and the machine may be busy.
const LIMIT: Duration = Duration::from_secs(20);

/// Places, from 0 to 1, with what is put there and how many bytes go.
type Changes = Vec<(f64, u8, u8)>;

fn changes() -> impl Strategy<Value = Changes> {
    prop::collection::vec((0.0..1.0f64, any::<u8>(), 0..40u8), 1..8)
}

/// `seed` with its changes: bytes set, cut out or put in.
fn damaged(seed: &[u8], changes: &Changes) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for &(at, byte, cut) in changes {
        let at = ((at * bytes.len() as f64) as usize).min(bytes.len());
        let put = [b'"', b',', b'\n', b'\t', b'{', 0xff, byte, byte][usize::from(byte) % 8];
        let end = (at + usize::from(cut % 8) * usize::from(cut / 8)).min(bytes.len());
        let kept = if cut % 3 == 0 { end - at } else { 1 };
        bytes.splice(at..end, std::iter::repeat_n(put, kept));
    }
    bytes
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)).unwrap()
}

/// Reads every row, and some that are not there.
fn read_all(source: &dyn Source) {
    for row in (0..source.len().min(2000)).chain([source.len(), usize::MAX]) {
        let caption = source.caption(row);
        assert!(caption.is_ok() || source.read(row, 4).is_err(), "a row without a caption is a sample");
        assert!(caption.is_err() || source.caption_chars(row) == caption.unwrap().chars().count());
        if let Ok(sample) = source.read(row, 4) {
            assert!(sample.pixels.len() == 48 && !sample.caption.is_empty());
        }
    }
    assert!(source.read(source.len(), 4).is_err());
    let groups = source.groups().map(|g| (g.rows(), g.pictures()));
    assert!(groups.is_none_or(|(rows, pictures)| rows == source.len() && pictures < rows));
    source.fingerprint();
    source.notes();
    source.describe();
}

/// A folder for damaged files, one for each test.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

fn timely(what: impl FnOnce()) {
    let start = Instant::now();
    what();
    assert!(start.elapsed() < LIMIT, "took {:?}", start.elapsed());
}

static TABLE: LazyLock<Vec<u8>> = LazyLock::new(|| fixture("cases/08_captions/captions.csv"));
static PARQUET: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let names = [
        "codec/snappy",
        "codec/zstd",
        "codec/lz4",
        "codec/gzip",
        "codec/brotli",
        "codec/none",
        "codec/v2",
        "codec/delta",
    ];
    let more = [
        "codec/index",
        "codec/index_none",
        "caption/list",
        "caption/list_struct",
        "image/mixed",
        "image/base64",
    ];
    names.iter().chain(&more).map(|name| fixture(&format!("parquet/{name}.parquet"))).collect()
});

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tables(changes in changes(), delimiter in 0..3usize, encoding in 0..5usize) {
        let delimiter = [b',', b'\t', b'|'][delimiter];
        let label = ["utf-8", "windows-1252", "shift_jis", "gb18030", "utf-16le"][encoding];
        let text: Vec<u8> = TABLE.iter().map(|b| if *b == b',' { delimiter } else { *b }).collect();
        let wide = |bytes: Vec<u8>| bytes.into_iter().flat_map(|b| [b, 0]).collect::<Vec<u8>>();
        let text = if label == "utf-16le" { wide(text) } else { text };
        let encoding = Encoding::named(label).unwrap();
        let path = Place::new();
        let path = (path.put("x.csv", &damaged(&text, &changes)), path);
        timely(|| {
            let options = TextOptions { delimiter, encoding, ..TextOptions::default() };
            if let Ok(csv) = Csv::open(&path.0, &options) {
                read_all(&csv);
            }
        });
    }

    #[test]
    fn metadata(changes in changes(), lines: bool) {
        let csv = "file_name,id,text\na.png,1,one\nb.png,2,\"two, more\"\n../x.png,3,three\na.png,4,four\n";
        let json = "{\"file_name\": \"a.png\", \"text\": [\"one\", \"two\"]}\n{\"file_name\": \"b.png\", \"text\": \"x\"}\n";
        let place = Place::new();
        place.put("a.png", &fixture("cases/03_alpha_palette_grey/one_by_one.png"));
        let (name, seed) = if lines { ("metadata.jsonl", json) } else { ("metadata.csv", csv) };
        place.put(name, &damaged(seed.as_bytes(), &changes));
        timely(|| {
            if let Ok(splits) = Folder::open(place.0.path(), &SplitNames::default(), &TextOptions::default()) {
                read_all(&splits.train);
            }
        });
    }

    /// Damage anywhere, and (where a small change does most) in the footer alone.
    #[test]
    fn parquet(changes in changes(), seed in 0..14usize, footer: bool, from in 0.0..1.0f64) {
        let whole = &PARQUET[seed];
        let bytes = if footer {
            let length = u32::from_le_bytes(whole[whole.len() - 8..whole.len() - 4].try_into().unwrap()) as usize;
            let start = whole.len() - 8 - length;
            let start = start + (from * length as f64) as usize;
            // Bytes are set, so that lengths stay.
            let mut bytes = whole.clone();
            for (at, byte, _) in &changes {
                let place = start + (at * (whole.len() - 8 - start) as f64) as usize;
                bytes[place] = *byte;
            }
            bytes
        } else {
            damaged(whole, &changes)
        };
        let place = Place::new();
        let path = place.put("x.parquet", &bytes);
        timely(|| {
            if let Ok(splits) = Parquet::open(&path, &SplitNames::default(), &ParquetOptions::default()) {
                read_all(&splits.train);
            }
        });
    }
}
