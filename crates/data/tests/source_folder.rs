//! Folders of pictures: the ways captions stand beside them, and the ways such a folder can be wrong.

use std::path::{Path, PathBuf};

use ocelli_data::source::folder::{Folder, FolderSplits};
use ocelli_data::source::{Encoding, Source, SplitNames, TextOptions};
use tempfile::TempDir;

/// A folder in the making.
struct Made(TempDir);

impl Made {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn put(self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
        self
    }

    fn pictures(self, names: &[&str]) -> Self {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/03_alpha_palette_grey/grey_L.png");
        let png = std::fs::read(from).unwrap();
        names.iter().fold(self, |made, name| made.put(name, &png))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn splits(&self, names: &SplitNames, options: &TextOptions) -> Result<FolderSplits, String> {
        Folder::open(self.0.path(), names, options).map_err(|e| e.to_string())
    }

    fn opened(&self) -> Folder {
        self.splits(&SplitNames::default(), &TextOptions::default()).unwrap_or_else(|e| panic!("{e}")).train
    }

    fn refused(&self) -> String {
        self.splits(&SplitNames::default(), &TextOptions::default()).expect_err("this folder must be refused")
    }
}

/// Caption or reason of each row, read as a picture.
fn rows(source: &dyn Source) -> Vec<String> {
    let row = |row| source.pictured(row, 4).map_or_else(|bad| bad.reason.to_owned(), |sample| sample.caption);
    (0..source.len()).map(row).collect()
}

/// A line that lacks a column which others have is a row without that value, also before all that have it.
#[test]
fn lines_without_a_caption_or_a_name_are_rows_without_it() {
    let line = |name: &str, text: &str| format!("{{\"file_name\":\"{name}\",\"text\":\"{text}\"}}\n");
    let lacking = "{\"file_name\":\"a.png\"}\n{\"text\":\"nameless\"}\n{}\n{\"file_name\":7}\n";
    let made = Made::new().pictures(&["a.png", "b.png", "c.png"]);
    let made =
        made.put("metadata.jsonl", [lacking, &line("b.png", "b"), "{\"file_name\":\"c.png\"}\n"].concat());
    let wanted = ["empty_caption", "empty_image", "empty_image", "empty_image", "b", "empty_caption"];
    assert_eq!(rows(&made.opened()), wanted);
    let none = Made::new().pictures(&["a.png"]).put("metadata.jsonl", lacking).refused();
    assert!(none.contains("line 1") && none.contains("no column `caption`"), "{none}");
    let cut = "{\"file_name\":\"a.png\",\"text\":\"caf\u{e9}";
    let cut = [line("a.png", "x").as_bytes(), &cut.as_bytes()[..cut.len() - 1]].concat();
    let text = Made::new().pictures(&["a.png"]).put("metadata.jsonl", cut).refused();
    assert!(text.contains("line 2") && text.contains("is the file cut?"), "{text}");
    let odd = [&line("a.png", "x"), "{\"file_name\":\"b.png\"\n"].concat();
    let made = Made::new().pictures(&["a.png", "b.png"]).put("metadata.jsonl", odd).opened();
    let detail = made.pictured(1, 4).unwrap_err().detail;
    assert!(detail.contains("`{\"file_name\":\"b.png\"`"), "{detail}");
}

#[test]
fn metadata_in_csv_name_files_and_captions() {
    let made = Made::new()
        .pictures(&["b.png", "sub/a.png", "left.png", ".hidden/x.png"])
        .put(
            "metadata.csv",
            "file_name,id,text\nb.png,1,\"two\nlines\"\nsub/a.png,2,\nsub\\a.png,3,again\nb.png,4,more\n",
        )
        .put("notes.md", "");
    let folder = made.opened();
    assert_eq!(rows(&folder), ["two lines", "more", "again"]);
    assert_eq!(folder.groups().map(|g| (g.pictures(), g.rows())), Some((2, 3)));
    assert_eq!(folder.caption_chars(0), 9);
    let notes = folder.notes().join("\n");
    assert!(notes.contains("`file_name` holds file names, `text` captions"), "{notes}");
    assert!(notes.contains("1 picture without a row in the metadata, such as left.png"), "{notes}");
    assert!(folder.describe().ends_with("metadata.csv (2 pictures, 3 captions)"), "{}", folder.describe());
    assert_eq!(folder.pictured(0, 4).unwrap().original, (64, 48));
}

#[test]
fn metadata_in_lines_of_json_may_hold_lists() {
    let made = Made::new().pictures(&["a.png", "b.png", "c.png"]).put(
        "metadata.jsonl",
        "\u{feff}{\"file_name\": \"a.png\", \"caption\": [\"one\", \"\", \"two\"]}\n\n\
         {\"caption\": \"caf\u{e9}\", \"file_name\": \"b.png\", \"more\": {\"x\": 1}}\n{\"file_name\": \"c.png\"}",
    );
    let folder = made.opened();
    assert_eq!(rows(&folder), ["one", "two", "caf\u{e9}", "empty_caption"]);
    let place = folder.pictured(3, 4).unwrap_err().place;
    assert!(place.ends_with("metadata.jsonl:4 (row 3)"), "{place}");
}

#[test]
fn without_metadata_a_text_file_stands_beside_each_picture() {
    let made = Made::new()
        .pictures(&["b/2.png", "b/10.png", "a.png", "z.png", "q.png"])
        .put("b/2.txt", "b two\n")
        .put("b/10.txt", "b ten")
        .put("a.txt", "\u{feff}caf\u{e9}\nnoir")
        .put("q.txt", b"caf\xe9");
    let folder = made.opened();
    assert_eq!(rows(&folder), ["caf\u{e9} noir", "b ten", "b two", "bad_encoding"]);
    assert!(folder.groups().is_none());
    let notes = folder.notes().join("\n");
    assert!(notes.contains("1 picture without a .txt file beside it, such as z.png"), "{notes}");
    let bad = folder.pictured(3, 4).unwrap_err();
    assert!(bad.detail.contains("q.txt: line 1: `\\xe9`") && bad.place.ends_with("q.png (row 3)"), "{bad}");
    let latin = TextOptions { encoding: Encoding::named("latin1").unwrap(), ..TextOptions::default() };
    let latin = made.splits(&SplitNames::default(), &latin).unwrap().train;
    assert_eq!(latin.caption(3).unwrap(), "caf\u{e9}");
}

#[test]
fn sub_folders_are_splits() {
    let made = Made::new()
        .pictures(&["train/a.png", "train/deep/b.png", "val/c.png", "test/d.png"])
        .put("train/metadata.csv", "file_name,text\na.png,a\ndeep/b.png,b\n../val/c.png,stolen\n")
        .put("val/c.txt", "c")
        .put("test/d.txt", "d");
    let splits = made.splits(&SplitNames::default(), &TextOptions::default()).unwrap();
    assert_eq!(rows(&splits.train), ["a", "b", "outside_folder"]);
    assert_eq!(rows(&splits.validation.unwrap()), ["c"]);
    assert!(splits.note.unwrap().contains("`train` to train on, `val` to validate on"));
    let names = |train: &str, validation: &str| SplitNames {
        train: train.into(),
        validation: Some(validation.into()),
    };
    let splits = made.splits(&names("val", "test"), &TextOptions::default()).unwrap();
    assert_eq!(
        (rows(&splits.train), rows(&splits.validation.unwrap())),
        (vec!["c".into()], vec!["d".into()])
    );
    let text = made.splits(&names("train", "dev"), &TextOptions::default()).unwrap_err();
    assert!(text.contains("no split `dev`") && text.contains("`test`, `train`, `val`"), "{text}");
}

#[test]
fn metadata_above_the_splits_are_for_all_of_them() {
    let made = Made::new()
        .pictures(&["train/a.png", "train/b.png", "validation/c.png"])
        .put("metadata.csv", "file_name,text\ntrain/a.png,a\nvalidation/c.png,c\n/etc/passwd,x\n");
    let splits = made.splits(&SplitNames::default(), &TextOptions::default()).unwrap();
    assert_eq!(rows(&splits.train), ["a", "outside_folder"]);
    assert!(splits.train.notes().join(" ").contains("such as train/b.png"));
    assert_eq!(rows(&splits.validation.unwrap())[0], "c");
}

#[test]
fn names_that_lead_out_are_never_opened() {
    let made = Made::new().pictures(&["in/a.png", "secret.png"]).put(
        "in/metadata.csv",
        "file_name,text\n../secret.png,x\n/etc/passwd,x\nC:\\x.png,x\n..\\secret.png,x\nnone.png,x\n,x\na.png,ok\n",
    );
    let folder =
        Folder::open(&made.path("in"), &SplitNames::default(), &TextOptions::default()).unwrap().train;
    let outside = "outside_folder";
    assert_eq!(rows(&folder), [outside, outside, outside, outside, "missing_file", "empty_image", "ok"]);
    let bad = folder.pictured(1, 4).unwrap_err();
    assert!(bad.detail.contains("`/etc/passwd`") && bad.place.ends_with("metadata.csv:3 (row 1)"), "{bad}");
}

#[cfg(unix)]
#[test]
fn links_pipes_and_locked_folders_are_no_hang() {
    use std::os::unix::fs::symlink;
    let made =
        Made::new().pictures(&["real/train/a.png"]).put("real/train/a.txt", "a").put("real/train/p.txt", "p");
    symlink("..", made.path("real/train/loop")).unwrap();
    symlink("/", made.path("real/train/root")).unwrap();
    symlink("a.png", made.path("real/train/link.png")).unwrap();
    symlink("a.txt", made.path("real/train/link.txt")).unwrap();
    symlink("nowhere.png", made.path("real/train/gone.png")).unwrap();
    symlink("a.txt", made.path("real/train/gone.txt")).unwrap();
    let made_pipe = std::process::Command::new("mkfifo").arg(made.path("real/train/p.png")).status();
    assert!(made_pipe.unwrap().success());
    // The folder itself, and a split, may be links.
    symlink("real", made.path("way")).unwrap();
    let folder =
        Folder::open(&made.path("way"), &SplitNames::default(), &TextOptions::default()).unwrap().train;
    assert_eq!(rows(&folder), ["a", "missing_file", "a", "not_a_file"]);
    let notes = folder.notes().join("\n");
    assert!(notes.contains("2 linked folders not followed, such as loop"), "{notes}");
}

#[test]
fn what_cannot_be_read_is_refused_by_name() {
    let csv = "file_name,text\na.png,x\n";
    for (made, wanted) in [
        (Made::new(), &["has no pictures"][..]),
        (Made::new().put("data-00000-of-00001.arrow", ""), &["to_parquet", "data_config.dataset=parquet"]),
        (Made::new().pictures(&["a.png"]), &["1 picture but no captions", "metadata.csv"]),
        (
            Made::new().put("metadata.csv", csv).put("metadata.jsonl", "{}"),
            &["both metadata.csv and metadata.jsonl"],
        ),
        (Made::new().put("metadata.csv", "file_name,text\n"), &["metadata.csv", "no row"]),
        (
            Made::new().put("metadata.csv", "file,text\na.png,x\n"),
            &["`file_name`", "`file`, `text`", "line 1"],
        ),
        (Made::new().put("metadata.csv", "file_name;text\na.png;x\n"), &["data_config.delimiter=';'"]),
        (Made::new().put("metadata.csv", b"file_name,text\na.png,caf\xe9\n"), &["line 2", "\\xe9"]),
        (Made::new().put("metadata.csv", "file_name,text\na.png\n"), &["line 2", "1 field"]),
        (Made::new().put("metadata.csv", "file_name,text\na.png, \n"), &["no usable caption in 1 picture;"]),
        (Made::new().put("metadata.csv", "version https://git-lfs.github.com/spec/v1\n"), &["git lfs pull"]),
        (Made::new().put("metadata.jsonl", "file_name,text\n"), &["not lines of JSON"]),
        (Made::new().put("metadata.jsonl", "<html>"), &["web page"]),
        (Made::new().put("metadata.jsonl", "[1]\n"), &["line 1", "no object"]),
        (
            Made::new().put("metadata.jsonl", "{\"file_name\": \"a\", \"text\": \"x\"}\n{\"file_na"),
            &["line 2", "Is the file cut?"],
        ),
        (Made::new().put("metadata.jsonl", "{\"file_name\": \"a\", \"text\": 5}"), &["`text` is a number"]),
        (
            Made::new().put("metadata.jsonl", "{\"file_name\": 1, \"text\": \"\"}"),
            &["`file_name` is a number"],
        ),
        (Made::new().put("metadata.jsonl", "{\"image\": 1, \"text\": \"\"}"), &["`file_name`", "`image`"]),
        (Made::new().put("data/train-0.parquet", ""), &["data_config.dataset=parquet"]),
        (
            Made::new().pictures(&["x/a.png"]).put("x/metadata.csv", csv),
            &["x/metadata.csv", "give that folder"],
        ),
        (Made::new().pictures(&["test/a.png"]), &["no split `train`", "`test`", "data_config.train_split"]),
    ] {
        let text = made.refused();
        assert!(wanted.iter().all(|part| text.contains(part)), "{text}, expected {wanted:?}");
    }
}

#[test]
fn a_file_in_a_folders_place_names_the_right_source() {
    let made = Made::new().put("a.csv", "x,y\n").put("b.tsv", "").put("c.bin", "PAR1").pictures(&["d.png"]);
    for (name, wanted) in [
        ("a.csv", "dataset=csv"),
        ("b.tsv", "dataset=tsv"),
        ("c.bin", "dataset=parquet"),
        ("d.png", "give the folder"),
    ] {
        let open = Folder::open(&made.path(name), &SplitNames::default(), &TextOptions::default());
        let text = open.unwrap_err().to_string();
        assert!(text.contains("is a file") && text.contains(wanted), "{text}");
    }
    let text = Folder::open(&made.path("d.pn"), &SplitNames::default(), &TextOptions::default()).unwrap_err();
    assert!(text.to_string().contains("Did you mean"), "{text}");
}

#[test]
fn the_fingerprint_is_of_names_sizes_and_captions() {
    let of = |name: &str, caption: &str, extra: &str| {
        let made = Made::new().pictures(&["a.png", "b.png"]).put("b.png", extra);
        made.put("metadata.csv", format!("file_name,text\n{name},{caption}\n")).opened().fingerprint()
    };
    let base = of("a.png", "x", "");
    assert_eq!(base, of("a.png", "x", "other"), "a file without a row does not count");
    assert_ne!(base, of("a.png", "y", ""));
    assert_ne!(base, of("b.png", "x", ""));
    assert_ne!(of("b.png", "x", "12"), of("b.png", "x", "123"));
}

#[test]
fn the_published_presets_columns_do_not_get_in_the_way() {
    let made = Made::new().pictures(&["a.png"]).put("metadata.csv", "file_name,text\na.png,x\n");
    let options = TextOptions {
        image_col: Some("b64string_images".into()),
        caption_col: Some("caption".into()),
        ..TextOptions::default()
    };
    assert_eq!(rows(&made.splits(&SplitNames::default(), &options).unwrap().train), ["x"]);
    let other = TextOptions { caption_col: Some("words".into()), ..options };
    let text = made.splits(&SplitNames::default(), &other).unwrap_err();
    assert!(text.contains("no column `words` (data_config.caption_col)"), "{text}");
}

#[test]
fn splits_are_found_in_any_case_and_nothing_held_out_is_trained_on() {
    let made = |pictures: &[&str]| {
        pictures.iter().fold(Made::new().pictures(pictures), |made, name| {
            made.put(&name.replace("png", "txt"), Path::new(name).file_stem().unwrap().to_str().unwrap())
        })
    };
    let of = |pictures: &[&str]| made(pictures).splits(&SplitNames::default(), &TextOptions::default());
    let captions = |splits: &FolderSplits| {
        let [train, held_out] =
            [Some(&splits.train), splits.validation.as_ref()].map(|part| part.unwrap().caption(0));
        format!("{}|{}", train.unwrap(), held_out.unwrap())
    };
    let splits = of(&["Train/x.png", "VALIDATION/y.png"]).unwrap();
    assert_eq!(captions(&splits), "x|y");
    let splits = of(&["train2017/x.png", "val2017/y.png"]).unwrap();
    assert_eq!(captions(&splits), "x|y");
    for (pictures, wanted) in [
        (
            &["my/train/x.png", "my/validation/y.png"][..],
            &["1 picture to train on in `my/validation`", "give the folder of the splits", "/my"][..],
        ),
        (&["a.png", "b.png", "test/x.png"], &["`test`", "into a folder train beside it", "another name"]),
        (&["train/a.png", "train/Dev/x.png"], &["`Dev`", "called as another split"]),
        (&["train_a/x.png", "Test/y.png"], &["no split `train`", "`Test`"]),
    ] {
        let text = of(pictures).unwrap_err();
        assert!(wanted.iter().all(|part| text.contains(part)), "{text}, expected {wanted:?}");
    }
    let told = of(&["a.png", "test_set/x.png"]).unwrap();
    assert_eq!(told.train.len(), 2);
    assert!(told.warnings.join("").contains("1 picture in `test_set` are trained on"), "{:?}", told.warnings);
    // Somebody wrote them down.
    let made = made(&["val/x.png", "a.png"]).put("metadata.csv", "file_name,text\nval/x.png,x\na.png,a\n");
    let told = made.splits(&SplitNames::default(), &TextOptions::default()).unwrap();
    assert!(told.train.len() == 2 && told.warnings.join("").contains("`val`"), "{:?}", told.warnings);
}

#[test]
fn pictures_outside_of_the_splits_are_counted() {
    let made = Made::new()
        .pictures(&["train/x.png", "test/t.png", "a.png", "b.png", "other/c.png", "test_set/d.png"])
        .put("train/x.txt", "x");
    let splits = made.splits(&SplitNames::default(), &TextOptions::default()).unwrap();
    let told = splits.warnings.join("\n");
    assert!(
        told.contains("left out: 4 pictures outside of the splits, such as ") && told.contains("a.png"),
        "{told}"
    );
    let made = Made::new().pictures(&["train/x.png", "test/t.png"]).put("train/x.txt", "x");
    assert!(made.splits(&SplitNames::default(), &TextOptions::default()).unwrap().warnings.is_empty());
}
