//! WebDataset archives: which files are a sample, which are found, and what is said of those that cannot be used.
use std::path::{Path, PathBuf};

use ocelli_data::source::tar::{Tar, TarOptions, TarSplits};
use ocelli_data::source::{Source, SplitNames};
use proptest::prelude::*;

const LONG: &str = "a/very/long/folder/of/many/parts/that/no/header/of/the/old/format/has/the/room/for/at/all/since/it/has/a/hundred/bytes/00";

fn png() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 2, 2);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header().unwrap().write_image_data(&[200; 12]).unwrap();
    bytes
}

fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        builder.append_data(&mut header, name, *bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

fn named(train: &str) -> SplitNames {
    SplitNames { train: train.into(), validation: None }
}

fn options(column: Option<&str>) -> TarOptions {
    TarOptions { caption_col: column.map(str::to_owned), ..TarOptions::default() }
}

fn opened(path: &Path) -> Result<TarSplits, String> {
    Tar::open(path, &named("train"), &options(None)).map_err(|e| e.to_string())
}

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

/// What each row is: its caption, or the reason for skipping it.
fn outcomes(set: &Tar) -> Vec<String> {
    (0..set.len())
        .map(|row| set.pictured(row, 4).map_or_else(|bad| bad.reason.into(), |s| s.caption))
        .collect()
}

#[test]
fn a_sample_is_the_files_of_one_key() {
    let (files, picture) = (Files::new(), png());
    let long = [format!("{LONG}.png"), format!("{LONG}.txt")];
    let all: Vec<(&str, &[u8])> = vec![
        ("a.jpg", &picture),
        ("a.cls", b"3"),
        ("a.txt", b"one\n"),
        ("README", b"about"),
        ("x/a.txt", b"two"),
        ("x/a.PNG", &picture),
        ("._a.jpg", b"of a Macintosh"),
        (&long[0], &picture),
        (&long[1], b"three"),
        ("no_caption.webp", &picture),
        ("no_picture.caption", b"lost"),
        ("broken.jpg", &picture[..9]),
        ("broken.txt", b"cut"),
        ("j.json", br#"{"id": 1, "text": "four", "Caption": "five"}"#),
        ("j.jpg", &picture),
        ("k.json", b"[]"),
        ("k.jpg", &picture),
        ("a.jpg", &picture),
        ("a.txt", b"again"),
        ("t.jpg", &picture),
        ("t.jpg", &picture),
        ("t.txt", b"twice"),
        ("z.jpg", &picture),
        ("z.txt", b"caf\xe9"),
    ];
    let path = files.put("set.tar", &archive(&all));
    let set = opened(&path).unwrap().train;
    let wanted = [
        "one",
        "two",
        "three",
        "empty_caption",
        "missing_file",
        "truncated",
        "five",
        "bad_json",
        "duplicate_key",
        "duplicate_key",
        "bad_encoding",
    ];
    let found = outcomes(&set);
    assert_eq!((&found[..5], &found[6..]), (&wanted.map(String::from)[..5], &wanted.map(String::from)[6..]));
    assert!(["truncated", "corrupt", "not_an_image"].contains(&&*found[5]), "{found:?}");
    let bad = set.pictured(4, 4).unwrap_err();
    assert!(bad.place.ends_with("set.tar: sample `no_picture` (row 4)"), "{bad}");
    assert!(set.pictured(99, 4).is_err());
    let given = Tar::open(&path, &named("train"), &options(Some("text"))).unwrap().train;
    // Without its .caption, `no_picture` has neither picture nor caption, and is no sample.
    assert_eq!(given.caption(5).unwrap(), "four");
}

#[test]
fn several_captions_are_rows_of_one_picture() {
    let (files, picture) = (Files::new(), png());
    let path =
        files.put("a.tar", &archive(&[("a.jpg", &picture), ("a.json", br#"{"captions": ["x", "y"]}"#)]));
    let set = opened(&path).unwrap().train;
    assert_eq!((outcomes(&set), set.groups().unwrap().pictures()), (vec!["x".into(), "y".into()], 1));
}

#[test]
fn archives_are_found_by_folder_pattern_and_range() {
    let (files, picture) = (Files::new(), png());
    let of = |caption: &str| archive(&[("a.jpg", &picture), ("a.txt", caption.as_bytes())]);
    files.put("set/train/00000.tar", &of("t0"));
    files.put("set/train/00001.tar", &of("t1"));
    files.put("set/val/00000.tar", &of("v"));
    let found = opened(&files.0.path().join("set")).unwrap();
    assert_eq!(outcomes(&found.train), ["t0", "t1"]);
    assert_eq!(outcomes(&found.validation.unwrap()), ["v"]);
    for name in ["set/train/*.tar", "set/train/{00000..00001}.tar"] {
        assert_eq!(outcomes(&opened(&files.0.path().join(name)).unwrap().train), ["t0", "t1"], "{name}");
    }
    let told = opened(&files.0.path().join("set/train/{00000..00002}.tar")).unwrap_err();
    assert!(told.contains("00002.tar: No such file"), "{told}");
    // Equal but for a caption.
    let print = |name: &str| opened(&files.0.path().join(name)).unwrap().train.fingerprint();
    assert_ne!(print("set/train/00000.tar"), print("set/train/00001.tar"));
}

#[test]
fn what_is_no_whole_archive_is_refused_with_what_to_do() {
    let (files, picture) = (Files::new(), png());
    let whole = archive(&[("a.txt", b"one"), ("a.jpg", &picture), ("b.txt", b"two"), ("b.jpg", &[7; 3000])]);
    for (name, bytes, wanted) in [
        ("cut.tar", &whole[..whole.len() - 3000], "is cut: `b.jpg` has 3000 bytes"),
        ("a.tar", b"\x1f\x8b\x08\0\0\0\0\0", "is gzip-compressed: unpack it first"),
        ("empty.tar", b"", "is empty: a tar archive is wanted"),
        ("page.tar", b"<!DOCTYPE html><html>", "is a web page, not a tar archive"),
        ("text.tar", &[b'x'; 2000], "cannot be read as a tar archive"),
        ("short.tar", b"x", "is no tar archive"),
        ("parquet.tar", b"PAR1....", "set data_config.dataset=parquet"),
        ("none.tar", &archive(&[("README", b"x")]), "has no sample: a picture"),
        ("bare.tar", &archive(&[("a.jpg", &picture)]), "has no caption in 1 sample: there is no .txt"),
    ] {
        let told = opened(&files.put(name, bytes)).unwrap_err();
        assert!(told.contains(wanted) && told.contains(name), "{told}");
    }
    let at_a_border = files.put("border.tar", &whole[..2048]);
    let found = opened(&at_a_border).unwrap();
    assert_eq!(outcomes(&found.train), ["one"]);
    assert!(found.warnings[0].contains("has no end mark"), "{:?}", found.warnings);
    files.put("packed/a.tar.gz", b"\x1f\x8b");
    let told = opened(&files.0.path().join("packed")).unwrap_err();
    assert!(told.contains("has no .tar file, but a.tar.gz, which is compressed"), "{told}");
}

proptest! {
    /// Damage anywhere is an error, or rows that can be read or not: never a panic, a hang or memory without end.
    #[test]
    fn damaged_archives_do_no_harm(places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20)) {
        let (files, picture) = (Files::new(), png());
        let name = format!("{LONG}.txt");
        let mut bytes =
            archive(&[("a.png", &picture), ("a.txt", b"one"), (&name, b"two"), ("c.json", b"{\"text\": \"x\"}")]);
        for (place, byte) in places {
            *place.get_mut(&mut bytes) = byte;
        }
        if let Ok(found) = opened(&files.put("x.tar", &bytes)) {
            outcomes(&found.train);
        }
    }
}
