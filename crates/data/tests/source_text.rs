//! Tables in other dialects and encodings, and what stands in for a table.

use std::io::Write as _;
use std::path::Path;

use ocelli_data::source::csv::Csv;
use ocelli_data::source::{Delimiter, Encoding, Source, SourceError, TextOptions};
use tempfile::NamedTempFile;

/// A 1x1 PNG.
const DOT: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGPg5OQEAAA6ABztCJuOAAAAAElFTkSuQmCC";

fn opened(text: impl AsRef<[u8]>, delimiter: char, encoding: &str) -> Result<Csv, SourceError> {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_ref()).unwrap();
    let encoding = Encoding::named(encoding).unwrap();
    let delimiter = Delimiter::named(&delimiter.to_string()).unwrap();
    Csv::open(file.path(), &TextOptions { delimiter, encoding, ..TextOptions::default() })
}

fn message(text: impl AsRef<[u8]>, delimiter: char, encoding: &str) -> String {
    opened(text, delimiter, encoding).expect_err("this file must be refused").to_string()
}

fn captions(csv: &Csv) -> Vec<String> {
    (0..csv.len()).map(|row| csv.pictured(row, 4).unwrap_or_else(|e| panic!("{e}")).caption).collect()
}

#[test]
fn any_delimiter_divides() {
    for delimiter in [',', '\t', ';', '|', '^', ' ', '~', 'q', '7', '\u{1}', '\u{a7}', '\u{1f431}'] {
        let d = delimiter;
        let text = format!("image{d}text{d}x\n{DOT}{d}\"a{d}b\"{d}1\n{DOT}{d}\"say \"\"hi\"\"\"{d}2\n");
        let csv = opened(text, delimiter, "utf-8").unwrap_or_else(|e| panic!("{d:?}: {e}"));
        let first = if delimiter == '\t' { "a b".into() } else { format!("a{d}b") };
        assert_eq!(captions(&csv), [first, "say \"hi\"".into()], "{d:?}");
        assert_eq!(csv.notes()[0], "columns: `image` holds pictures, `text` captions");
    }
}

/// The same table in each encoding gives the same captions, and the same fingerprint as in UTF-8.
#[test]
fn any_encoding_is_read() {
    let table = |caption: &str| format!("id,image,caption\r\n1,{DOT},{caption}\r\n2,{DOT},\"x\r\ny\"\r\n");
    for (label, caption) in [
        ("windows-1252", "caf\u{e9} \u{2013} na\u{ef}ve"),
        ("iso-8859-2", "\u{17e}lu\u{165}ou\u{10d}k\u{fd}"),
        ("koi8-r", "\u{43a}\u{43e}\u{442}"),
        ("shift_jis", "\u{732b}\u{8868}\u{30bd}"),
        ("gbk", "\u{4e00}\u{53ea}\u{732b}"),
        ("gb18030", "\u{4e00}\u{53ea}\u{732b}\u{1f600}"),
        ("big5", "\u{8c93}\u{529f}"),
        ("euc-kr", "\u{ace0}\u{c591}\u{c774}"),
        ("iso-2022-jp", "\u{732b}"),
    ] {
        let (bytes, _, lossy) = encoding_rs::Encoding::for_label(label.as_bytes()).unwrap().encode(caption);
        assert!(!lossy, "{label}");
        let [head, tail] = {
            let text = table("@");
            let (a, b) = text.split_once('@').unwrap();
            [a.to_owned(), b.to_owned()]
        };
        let csv = opened([head.as_bytes(), &bytes, tail.as_bytes()].concat(), ',', label)
            .unwrap_or_else(|e| panic!("{label}: {e}"));
        assert_eq!(captions(&csv), [caption, "x y"], "{label}");
        assert_eq!(csv.caption_chars(0), caption.chars().count());
        assert_eq!(csv.fingerprint(), opened(table(caption), ',', "utf-8").unwrap().fingerprint());
    }
}

fn utf_16(text: &str, big: bool, mark: bool) -> Vec<u8> {
    let units = mark.then_some(0xfeff).into_iter().chain(text.encode_utf16());
    units.flat_map(|u| if big { u.to_be_bytes() } else { u.to_le_bytes() }).collect()
}

#[test]
fn utf_16_is_read_with_and_without_a_mark() {
    let long = "x".repeat(70_000);
    let table = format!("image;caption\n{DOT};a \u{1f600} cat\n{DOT};{long}\n");
    for (label, big) in [("utf-16le", false), ("utf-16be", true), ("utf-16", false)] {
        for mark in [false, true] {
            let csv = opened(utf_16(&table, big, mark), ';', label).unwrap();
            assert_eq!(captions(&csv), ["a \u{1f600} cat", &long], "{label} {mark}");
        }
    }
    // A bar may be the second byte of a character: the file is copied first.
    let (bytes, ..) = encoding_rs::SHIFT_JIS.encode("\u{30dd}");
    assert_eq!(bytes[1], b'|');
    let csv =
        opened([format!("image|caption\n{DOT}|").as_bytes(), &bytes].concat(), '|', "shift_jis").unwrap();
    assert_eq!(captions(&csv), ["\u{30dd}"]);
}

#[test]
fn a_wrong_encoding_is_refused_with_line_and_bytes() {
    let head = format!("image,caption\n{DOT},plain\n");
    let with = |bytes: &[u8]| [head.as_bytes(), DOT.as_bytes(), b",", bytes, b"\n"].concat();
    let text = message(with(b"caf\xe9"), ',', "utf-8");
    assert!(text.contains("line 3 (row 1)") && text.contains("\\xe9"), "{text}");
    assert!(text.contains("data_config.encoding"), "{text}");
    let text = message(with(b"\x83\x20"), ',', "shift_jis");
    assert!(text.contains("line 3") && text.contains("not Shift_JIS") && text.contains("\\x83"), "{text}");
    let text = message(with("\u{e9}\u{e8}\u{ea}\u{eb}".as_bytes()), ',', "windows-1252");
    assert!(text.contains("line 3") && text.contains("are UTF-8, not windows-1252"), "{text}");
    let text = message([b"\xef\xbb\xbf", head.as_bytes()].concat(), ',', "gbk");
    assert!(text.contains("mark of UTF-8") && text.contains("set it to utf-8"), "{text}");
    let text = message(&head, ',', "utf-16le");
    assert!(text.contains("is not UTF-16LE"), "{text}");
    let text = message(utf_16(&head, false, true), ',', "utf-8");
    assert!(text.contains("be UTF-16LE: set data_config.encoding=utf-16le"), "{text}");
    let mut cut = utf_16(&head, false, false);
    cut.truncate(cut.len() - 1);
    let text = message(cut, ',', "utf-16le");
    assert!(text.contains("line 2") && text.contains("ends within a character of UTF-16LE"), "{text}");
    let lone = [utf_16(&head, false, false), vec![0, 0xd8, b'x', 0]].concat();
    assert!(message(lone, ',', "utf-16le").contains("line 3"));
}

/// Strict names do not read what only windows' code pages have; what is UTF-8 is said to be.
#[test]
fn standards_are_taken_at_their_word() {
    let with = |bytes: &[u8]| [format!("image,caption\n{DOT},").as_bytes(), bytes, b"\n"].concat();
    assert_eq!(captions(&opened(with(b"caf\xe9"), ',', "latin-1").unwrap()), ["caf\u{e9}"]);
    let text = message(with(b"\x93caf\xe9\x94"), ',', "latin-1");
    assert!(text.contains("line 2") && text.contains("not ISO-8859-1"), "{text}");
    assert!(text.contains("`\\x93caf\\xe9\\x94`") && text.contains("windows-1252"), "{text}");
    assert_eq!(
        captions(&opened(with(b"\x93caf\xe9\x94"), ',', "cp1252").unwrap()),
        ["\u{201c}caf\u{e9}\u{201d}"]
    );
    let text = message(with("caf\u{e9}".as_bytes()), ',', "ascii");
    assert!(text.contains("not US-ASCII, at its byte 4") && text.contains("It is UTF-8"), "{text}");
    // A copy is made because of the delimiter, with the same result.
    let with = |bytes: &[u8]| [format!("image\u{a7}caption\n{DOT}\u{a7}").as_bytes(), bytes, b"\n"].concat();
    let text = message(with(b"x"), '\u{a7}', "ascii");
    assert!(text.contains("line 1: `\\xc2\\xa7captio`") && text.contains("US-ASCII"), "{text}");
    assert_eq!(
        captions(&opened(with(b"\"a\x1f\xc2\xa7b\""), '\u{a7}', "utf-8").unwrap()),
        ["a\u{1f}\u{a7}b"]
    );
}

#[test]
fn wide_text_without_a_mark_is_named() {
    let table = format!("image,caption\n{DOT},caf\u{e9}\n");
    for (big, right, wrong) in [(false, "utf-16le", "utf-16be"), (true, "utf-16be", "utf-16le")] {
        for named in ["utf-8", wrong] {
            let text = message(utf_16(&table, big, false), ',', named);
            assert!(text.contains(&format!("set data_config.encoding={right}")), "{text}");
        }
        // A mark counts more than the name.
        assert_eq!(captions(&opened(utf_16(&table, big, true), ',', wrong).unwrap()), ["caf\u{e9}"]);
    }
    for mark in ["", "\u{feff}"] {
        let bytes: Vec<u8> =
            mark.chars().chain(table.chars()).flat_map(|c| u32::from(c).to_le_bytes()).collect();
        for named in ["utf-8", "utf-16", "gbk"] {
            let text = message(&bytes, ',', named);
            assert!(text.contains("UTF-32, which is not read: save it as UTF-8"), "{text}");
        }
    }
}

#[test]
fn the_wrong_dialect_names_the_right_one() {
    let text = message("image\u{1}caption\nAAAA\u{1}x\n", ',', "utf-8");
    assert!(text.contains("set data_config.delimiter='\\x01'"), "{text}");
    let text = message("image\tcaption\nAAAA\tx\n", ',', "utf-8");
    assert!(text.contains("divided by '\\t'") && text.contains("data_config.dataset=tsv"), "{text}");
    let text = message("image,caption\nAAAA,x\n", '\t', "utf-8");
    assert!(text.contains("data_config.dataset=csv"), "{text}");
    let text = message("image|caption\nAAAA|x\n", ',', "utf-8");
    assert!(text.contains("data_config.delimiter='|'"), "{text}");
    let text = message("sep=;\nimage;caption\nAAAA;x\n", ',', "utf-8");
    assert!(text.contains("take that line away, and set data_config.delimiter"), "{text}");
    let text = message("bild,wort\nAAAA,x\n", ',', "utf-8");
    assert!(text.contains("`b64string_images`") && text.contains("`bild`"), "{text}");
    assert!(text.contains("data_config.image_col"), "{text}");
}

#[test]
fn standins_are_told_apart() {
    for (head, wanted) in [
        (&b"{\"error\": \"not found\"}"[..], "is JSON"),
        (b"[1, 2]", "is JSON"),
        (b"\x1f\x8b\x08\0", "gzip"),
        (b"PAR1\x15\x04", "data_config.dataset=parquet"),
        (b"\x89PNG\r\n\x1a\n\0", "data_config.dataset=folder"),
        (b"\xff\xd8\xff\xe0", "JPEG picture"),
        (b"  <?xml version='1.0'?>", "web page"),
        (b"ARROW1\0\0", "Arrow"),
    ] {
        let text = message(head, ',', "utf-8");
        assert!(text.contains(wanted), "{text}, expected {wanted}");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let folder = Csv::open(folder, &TextOptions::default()).unwrap_err();
    assert!(folder.to_string().contains("data_config.dataset=folder"), "{folder}");
}

#[test]
fn names_of_files_are_not_pictures() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("my.csv");
    std::fs::write(&path, "image,caption\na.jpg,x\nb/c.PNG,y\n").unwrap();
    let open = || Csv::open(&path, &TextOptions::default()).unwrap_err().to_string();
    let text = open();
    assert!(
        text.contains("names of files (`a.jpg`)") && text.contains("data_config.dataset=folder"),
        "{text}"
    );
    std::fs::write(dir.path().join("a.jpg"), "").unwrap();
    std::fs::create_dir(dir.path().join("b")).unwrap();
    std::fs::write(dir.path().join("b/c.PNG"), "").unwrap();
    assert!(open().contains("which are there"), "{}", open());
    // One such row among others is one bad sample.
    assert!(opened(format!("image,caption\na.jpg,x\n{DOT},y\n"), ',', "utf-8").is_ok());
}

#[test]
fn what_is_no_plain_file_is_refused() {
    #[cfg(unix)]
    {
        let text = Csv::open("/dev/null", &TextOptions::default()).unwrap_err().to_string();
        assert!(text.contains("no plain file"), "{text}");
    }
    let missing = Csv::open("tests/source_txt.rs", &TextOptions::default()).unwrap_err().to_string();
    assert!(missing.contains("Did you mean"), "{missing}");
}
