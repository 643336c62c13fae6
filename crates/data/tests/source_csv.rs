//! CSV files: the cases of `tests/cases`, and the ways a file can be wrong.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use ocelli_data::source::csv::Csv;
use ocelli_data::source::{Delimiter, Source, SourceError, TextOptions};
use proptest::prelude::*;
use serde_json::Value;
use tempfile::NamedTempFile;

/// A 1x1 PNG.
const DOT: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGPg5OQEAAA6ABztCJuOAAAAAElFTkSuQmCC";

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name)
}

fn expected(case: &str, file: &str) -> Value {
    let path = self::case("expected.json");
    let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    all[case][file].clone()
}

/// The columns of the published preset.
fn published() -> TextOptions {
    TextOptions {
        image_col: Some("b64string_images".into()),
        caption_col: Some("caption".into()),
        ..TextOptions::default()
    }
}

fn open(path: &Path) -> Csv {
    Csv::open(path, &published()).unwrap_or_else(|e| panic!("{e}"))
}

/// `ok`, or the reason for the skip.
fn outcome(csv: &Csv, row: usize) -> String {
    csv.pictured(row, 16).map_or_else(|bad| format!("skip:{}", bad.reason), |_| "ok".into())
}

fn written(text: impl AsRef<[u8]>) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_ref()).unwrap();
    file
}

fn opened(text: impl AsRef<[u8]>) -> Result<Csv, SourceError> {
    Csv::open(written(text).path(), &published())
}

fn message(text: impl AsRef<[u8]>) -> String {
    opened(text).expect_err("this file must be refused").to_string()
}

#[test]
fn mixed_run_has_61_samples_and_3_skips() {
    let csv = open(&case("00_mixed_run/train.csv"));
    let mut skips = BTreeMap::new();
    for row in 0..csv.len() {
        if let Err(bad) = csv.pictured(row, 16) {
            skips.insert(bad.reason, (row, bad.place));
        }
    }
    let expected = expected("00_mixed_run", "train.csv");
    assert_eq!(expected["rows"], csv.len());
    assert_eq!(expected["samples"], csv.len() - skips.len());
    let found: Vec<_> = skips.iter().map(|(reason, (row, _))| (*reason, *row)).collect();
    assert_eq!(found, [("bad_base64", 40), ("empty_caption", 20), ("not_an_image", 7)]);
    assert!(skips["not_an_image"].1.ends_with("train.csv:9 (row 7)"), "{}", skips["not_an_image"].1);
}

#[test]
fn captions_are_cleaned_and_kept() {
    let csv = open(&case("08_captions/captions.csv"));
    let expected = expected("08_captions", "captions.csv");
    let rows = expected["rows"].as_array().unwrap();
    assert_eq!(csv.len(), rows.len());
    for (row, expected) in rows.iter().enumerate() {
        let id = &expected["id"];
        match expected["text"].as_str() {
            Some(text) => {
                assert_eq!(csv.caption(row).as_deref(), Ok(text), "{id}");
                assert_eq!(csv.caption_chars(row), text.chars().count(), "{id}");
                assert_eq!(csv.pictured(row, 8).unwrap().caption, text, "{id}");
            }
            None => {
                assert_eq!(csv.caption(row).unwrap_err().reason, "empty_caption", "{id}");
                assert_eq!(csv.caption_chars(row), 0, "{id}");
            }
        }
    }
}

#[test]
fn huge_and_odd_base64() {
    let csv = open(&case("10_huge_base64/images.csv"));
    let expected = expected("10_huge_base64", "images.csv");
    for (row, expected) in expected["rows"].as_array().unwrap().iter().enumerate() {
        assert_eq!(outcome(&csv, row), expected["outcome"].as_str().unwrap(), "{}", expected["id"]);
    }
    // One picture in four spellings.
    let first = csv.pictured(1, 16).unwrap();
    for row in 2..5 {
        assert_eq!(csv.pictured(row, 16).unwrap(), first, "row {row}");
    }
    let bad = csv.pictured(6, 16).unwrap_err();
    assert!(bad.detail.contains("!!!!"), "{bad}");
}

#[test]
fn line_ends_marks_and_blank_lines_change_nothing() {
    let rows = ["one", "two\nlines", "three"];
    let plain: String = rows.iter().map(|caption| format!("{DOT},\"{caption}\"\n")).collect();
    let plain = format!("b64string_images,caption\n{plain}");
    let reference = opened(&plain).unwrap();
    let others = [
        plain.replace('\n', "\r\n"),
        format!("\u{feff}{plain}"),
        plain.trim_end().to_string(),
        format!("{plain}\n\n"),
        plain
            .replace("b64string_images", " \"b64string_images\" ")
            .replace(" \"b", "\"b")
            .replace("s\" ", "s\""),
    ];
    for text in others {
        let file = written(&text);
        let csv = open(file.path());
        assert_eq!(csv.len(), 3, "{text:?}");
        assert_eq!(csv.fingerprint(), reference.fingerprint(), "{text:?}");
        for (row, caption) in rows.iter().enumerate() {
            let sample = csv.pictured(row, 4).unwrap_or_else(|e| panic!("{text:?}: {e}"));
            assert_eq!(sample.caption, caption.replace('\n', " "));
            assert_eq!(csv.caption_chars(row), caption.len());
        }
    }
}

#[test]
fn places_name_the_line_whatever_the_line_ends() {
    for end in ["\n", "\r\n"] {
        let lines = ["b64string_images,caption", "AAAA,one", "", "AAAA,\"two", "lines\"", "", "AAAA,three"];
        let file = written(lines.map(|line| format!("{line}{end}")).concat());
        let csv = open(file.path());
        for (row, line) in [(0, 2), (1, 4), (2, 7)] {
            let place = csv.pictured(row, 4).unwrap_err().place;
            assert_eq!(place, format!("{}:{line} (row {row})", file.path().display()), "{end:?}");
        }
    }
}

#[test]
fn wrong_columns_name_what_is_there() {
    let text = message("id,b64string_images,captions\n1,AAAA,x\n");
    assert!(text.contains("no column `caption`"), "{text}");
    assert!(text.contains("`id`, `b64string_images`, `captions`"), "{text}");
    assert!(text.contains("Did you mean `captions`?"), "{text}");
    let text = message("b64string_images;caption\nAAAA;x\n");
    assert!(text.contains("divided by ';'"), "{text}");
    let text = message("caption,b64string_images,caption\nx,AAAA,y\n");
    assert!(text.contains("twice"), "{text}");
    let text = message(format!("{},a dog\n{},a cat\n", DOT.repeat(50), DOT));
    assert!(text.len() < 500 && text.contains("must name the columns"), "{text}");
}

#[test]
fn columns_may_have_any_names_and_places() {
    let file = written(format!("text\tx\tpicture\na dog\t1\t{DOT}\n"));
    let options = TextOptions {
        image_col: Some("picture".into()),
        caption_col: Some("text".into()),
        delimiter: Delimiter::TAB,
        ..TextOptions::default()
    };
    let csv = Csv::open(file.path(), &options).unwrap();
    assert_eq!(csv.pictured(0, 4).unwrap().caption, "a dog");
    assert!(csv.describe().ends_with("(1 row)") && csv.describe().starts_with("tsv /"), "{}", csv.describe());
}

#[test]
fn files_that_are_no_csv_are_refused_by_name() {
    for (text, wanted) in [
        (&b""[..], "is empty"),
        (b"\xef\xbb\xbf \n\n", "is empty"),
        (b"b64string_images,caption\n", "no row"),
        (b"b64string_images,caption", "no row"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n", "git lfs pull"),
        (b"<!DOCTYPE html><title>404</title>", "web page"),
        (b"\n  <html><body>Sign in</body></html>", "web page"),
        (b"\xff\xfeb\x006\x004\x00", "UTF-16"),
        (b"PK\x03\x04\x14\x00", "zip"),
        (b"PAR1\x15\x04", "parquet"),
        (b"b64string_images,caption\n\0\0\0\0\0\0\0\0\0\0", "binary"),
    ] {
        let text = message(text);
        assert!(text.contains(wanted), "{text}, expected {wanted}");
    }
    let missing = Csv::open("no/such.csv", &TextOptions::default()).unwrap_err().to_string();
    assert!(missing.contains("no/such.csv") && missing.contains("No such file"), "{missing}");
    let folder = Csv::open(std::env::temp_dir(), &TextOptions::default()).unwrap_err().to_string();
    assert!(folder.contains("folder"), "{folder}");
}

#[test]
fn records_that_do_not_fit_are_refused_with_their_line() {
    let text = message("b64string_images,caption\nAAAA,x\nAAAA,a, b\n");
    assert!(text.contains("line 3 (row 1): 3 fields where the header has 2"), "{text}");
    assert!(text.contains("AAAA | a |  b"), "{text}");
    let text = message("b64string_images,caption\r\nAAAA,\"x\r\ny\"\r\nAAAA\r\n");
    assert!(text.contains("line 4 (row 1): 1 field "), "{text}");
    let text = message(b"b64string_images,caption\nAAAA,x\nAAAA,caf\xe9 noir\n");
    assert!(
        text.contains("line 3 (row 1)") && text.contains("not UTF-8") && text.contains("\\xe9"),
        "{text}"
    );
    let text = message("b64string_images,caption\nAAAA,x\nAAAA,\"open\nAAAA,y\n");
    assert!(text.contains("line 3 (row 1)") && text.contains("never closed"), "{text}");
    assert!(message(b"b64string_im\xe9ges,caption\nAAAA,x\n").contains("header is not UTF-8"));
}

/// What is no row is shown as the file has it.
#[test]
fn records_are_shown_as_they_stand() {
    let text = message("b64string_images,caption\nAAAA,a \"b\" \\ caf\u{e9},c\n");
    assert!(text.contains("`AAAA | a \"b\" \\ caf\u{e9} | c`"), "{text}");
    let text = message("b64string_images,caption\nAAAA,x\nAAAA, \"a, b\"\n");
    assert!(
        text.contains("Field 2 has a blank before its quotation mark") && !text.contains("none"),
        "{text}"
    );
}

#[test]
fn a_last_line_without_its_end_seems_cut() {
    let seems = "the file seems cut";
    let file = "b64string_images,caption\nAAAA,x\nAAAA,caf\u{e9}";
    for cut in [file.len() - 1, file.len() - 6] {
        let whole = file.as_bytes()[..cut].to_vec();
        let text = message(&whole[..]);
        assert!(text.contains("line 3 (row 1)") && text.contains(seems), "{text}");
    }
    assert!(!message("b64string_images,caption\nAAAA,x\nAAAA,a, b\n").contains(seems));
    // In the middle of a picture that is the last field.
    let table = format!("caption,b64string_images\nx,{DOT}\ny,{}", &DOT[..DOT.len() - 20]);
    let detail = |text: &str| opened(text).unwrap().pictured(1, 4).unwrap_err().detail;
    assert!(detail(&table).contains(seems), "{}", detail(&table));
    assert!(!detail(&format!("{table}\n")).contains(seems));
}

#[test]
fn damaged_bytes_in_a_picture_are_one_bad_sample() {
    let file = written([b"b64string_images,caption\nAA\xe9A,x\n", DOT.as_bytes(), b",y\n"].concat());
    let csv = open(file.path());
    assert_eq!(csv.pictured(0, 4).unwrap_err().reason, "bad_base64");
    assert!(csv.pictured(1, 4).is_ok());
    assert_eq!(csv.pictured(2, 4).unwrap_err().reason, "read_error");
}

#[test]
fn the_fingerprint_is_of_the_used_columns() {
    let of = |text: &str| opened(text).unwrap().fingerprint();
    let base = of("id,b64string_images,caption\n1,AAAA,x\n2,BBBB,y\n");
    assert_eq!(base, of("id,b64string_images,caption\n7,AAAA,x\n8,BBBB,y\n"));
    assert_ne!(base, of("id,b64string_images,caption\n1,AAAA,x\n2,BBBB,z\n"));
    assert_ne!(base, of("id,b64string_images,caption\n1,BBBB,y\n2,AAAA,x\n"));
    assert_ne!(base, of("id,b64string_images,caption\n1,AAAA,x\n"));
}

#[test]
fn many_threads_read_at_once() {
    let csv = open(&case("00_mixed_run/train.csv"));
    let alone: Vec<_> = (0..csv.len()).map(|row| csv.pictured(row, 16)).collect();
    std::thread::scope(|scope| {
        for first in 0..4 {
            let (csv, alone) = (&csv, &alone);
            scope.spawn(move || {
                for row in (first..csv.len()).chain(0..first) {
                    assert_eq!(csv.pictured(row, 16), alone[row]);
                }
            });
        }
    });
}

#[test]
fn a_file_that_changes_is_a_read_error_not_a_panic() {
    let mut file = written(format!("b64string_images,caption\n{DOT},a dog\n"));
    let csv = open(file.path());
    file.as_file_mut().set_len(60).unwrap();
    let bad = csv.pictured(0, 4).unwrap_err();
    assert_eq!(bad.reason, "read_error");
    assert!(bad.detail.contains("changed"), "{bad}");
}

#[test]
fn the_projects_own_pictures_load_and_fit_the_vocabulary() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let csv = open(&root.join("images/inputs.csv"));
    assert_eq!(csv.len(), 3);
    let vocabulary = std::fs::read_to_string(root.join("vocab.txt")).unwrap();
    let characters: Vec<&str> = vocabulary.lines().collect();
    assert_eq!(characters.len(), 77);
    assert!(characters.iter().all(|line| line.chars().count() == 1), "{characters:?}");
    for row in 0..3 {
        let sample = csv.pictured(row, 96).unwrap();
        assert_eq!(sample.pixels.len(), 96 * 96 * 3);
        assert!(sample.caption.chars().all(|c| characters.contains(&c.to_string().as_str())));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever was done to a file: it is refused, or each of its rows is a sample or a bad one.
    #[test]
    fn mutated_files_never_panic(
        changes in prop::collection::vec((0.0..1.0f64, any::<u8>(), 0..30usize), 1..8),
    ) {
        let mut bytes = std::fs::read(case("08_captions/captions.csv")).unwrap();
        for (at, byte, cut) in changes {
            let at = (at * bytes.len() as f64) as usize;
            let byte = [b'"', b',', b'\n', b'\r', byte][usize::from(byte) % 5];
            bytes.splice(at..(at + cut).min(bytes.len()), [byte]);
        }
        match opened(&bytes) {
            Ok(csv) => {
                for row in 0..csv.len() {
                    // The file is gone from its folder, but open.
                    let chars = csv.pictured(row, 4).map_or(0, |sample| sample.caption.chars().count());
                    prop_assert!(chars == 0 || chars == csv.caption_chars(row));
                }
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
