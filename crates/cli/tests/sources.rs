//! Training on people's own files, through the real binary.

mod support;

use support::Bench;

const OWN: &[&str] =
    &["data_config.train_split_ratio=0.75", "trainer_config.max_iters=3", "data_config.endless=true"];

/// The text of a 1x1 PNG in base64.
const DOT: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGPg5OQEAAA6ABztCJuOAAAAAElFTkSuQmCC";

fn train(b: &Bench, args: &[&str]) -> support::Said {
    b.train(&[OWN, args].concat())
}

#[test]
fn a_tsv_file_trains_in_any_dialect_and_encoding() {
    let b = Bench::new();
    let table = |d: &str| -> String {
        let rows = (0..8).map(|i| format!("{i}{d}{}{d}caf\u{e9} {i}\n", support::unlike(DOT, i)));
        format!("id{d}image{d}text\n") + &rows.collect::<String>()
    };
    std::fs::write(b.path("my.tsv"), table("\t")).unwrap();
    let tsv = ["data_config.dataset=tsv", "data_config.data_path=my.tsv"];
    train(&b, &tsv).done().mentions(&[
        "data: tsv my.tsv (8 rows)",
        "columns: `image` holds pictures, `text` captions",
        "6 to train on, 2 to validate on",
        "done: 3 steps, 12 samples",
    ]);
    let bytes: Vec<u8> = table("|").chars().map(|c| c as u8).collect();
    std::fs::write(b.path("my.csv"), bytes).unwrap();
    let csv = ["data_config.dataset=csv", "data_config.data_path=my.csv"];
    let with = |more: &[&'static str]| train(&b, &[&csv[..], more].concat());
    with(&["data_config.delimiter=|"]).refused(&["line 2", "\\xe9", "data_config.encoding"]);
    with(&["data_config.encoding=latin1"]).refused(&["data_config.delimiter='|'"]);
    with(&["data_config.delimiter='|'", "data_config.encoding=latin1"]).done().mentions(&["done: 3 steps"]);
    with(&["data_config.encoding=latin-one"]).refused(&[
        "data_config.encoding",
        "'latin-one'",
        "Did you mean latin-1?",
    ]);
    with(&["data_config.encoding=utf_32"]).refused(&["UTF-32 is not read: save the file as UTF-8"]);
    std::fs::write(b.path("my.yaml"), "data_config:\n  encoding: cp950\n  delimiter: '\\n'\n").unwrap();
    with(&["--config-name", "my.yaml"]).refused(&[
        "my.yaml:2:",
        "nearest is big5",
        "my.yaml:3:",
        "ends a record",
    ]);
    with(&["data_config.delimiter=ab"]).refused(&["delimiter \"ab\" cannot divide fields"]);
    with(&["data_config.delimiter='|'", "data_config.encoding=ascii"])
        .refused(&["line 2", "US-ASCII", "\\xe9"]);
    for (delimiter, written) in [("\u{1}", "\\x01"), ("\u{1}", "\\u0001"), ("\u{a7}", "\u{a7}"), ("q", "q")] {
        std::fs::write(b.path("my.csv"), table(delimiter)).unwrap();
        with(&[]).refused(&["no column"]);
        train(&b, &[&csv[..], &[&format!("data_config.delimiter={written}")]].concat())
            .done()
            .mentions(&["done: 3 steps"]);
    }
    with(&["data_config.val_split=test"])
        .refused(&["val_split is test, but dataset csv has no named splits"]);
    // The character itself, from a shell or in a file.
    for (delimiter, yaml) in [("\t", "\\t"), ("\u{1}", "\\x01")] {
        std::fs::write(b.path("my.csv"), table(delimiter)).unwrap();
        train(&b, &[&csv[..], &[&format!("data_config.delimiter={delimiter}")]].concat()).done();
        std::fs::write(b.path("my.yaml"), format!("data_config:\n  delimiter: \"{yaml}\"\n")).unwrap();
        with(&["--config-name", "my.yaml"]).done().mentions(&["done: 3 steps"]);
    }
    with(&["data_config.delimiter=\n"]).refused(&["ends a record"]);
    with(&["data_config.image_col=\t"]).refused(&["data_config.image_col", "without control characters"]);
    with(&["data_config.image_col=${data_config.${x}}"])
        .refused(&["an interpolation within an interpolation is not supported"]);
    for delimiter in [";", "','", "\\t", "'\\t'", "' '", "^"] {
        let key = format!("data_config.delimiter={delimiter}");
        let said =
            b.train(&["--print-config", "data_config.dataset=csv", "data_config.data_path=x", &key]).done();
        assert!(said.out.contains("delimiter: "), "{}", said.out);
    }
}

/// Two stray quotation marks would take the rows between them into one caption, base64 included.
#[test]
fn stray_quotation_marks_take_no_rows() {
    let b = Bench::new();
    let table = |captions: [&str; 5], quoted: bool| {
        let row = |caption: &str| match quoted {
            true => format!("\"{DOT}\"\t\"{caption}\"\n"),
            false => format!("{DOT}\t{caption}\n"),
        };
        String::from("image\ttext\n") + &captions.map(row).concat()
    };
    let tsv = ["data_config.dataset=tsv", "data_config.data_path=my.tsv"];
    let with = |more: &[&'static str]| train(&b, &[&tsv[..], more].concat());
    let check = |more: &[&'static str]| b.run(&[&["data", "check", "my.tsv"], more].concat());
    std::fs::write(
        b.path("my.tsv"),
        table(["one", "\"open quote caption", "two", "5 inch\"", "three"], false),
    )
    .unwrap();
    let said =
        ["line 3 (row 1)", "begins field 2 ends behind line 4", "iVBORw0KG", "data_config.quoting=none"];
    with(&[]).refused(&said);
    check(&["data_config.dataset=tsv"]).refused(&said);
    check(&["data_config.dataset=tsv", "data_config.quoting=none"])
        .done()
        .mentions(&["5 of 5 rows can be used"]);
    with(&["data_config.quoting=none"]).done().mentions(&["(5 rows)", "done: 3 steps"]);
    let said = ["line 4 (row 2)", "ends behind line 5", "data_config.quoting=none"];
    std::fs::write(b.path("my.tsv"), table(["one", "two", "\"three", "four", "five"], false)).unwrap();
    with(&[]).refused(&said);
    with(&["data_config.quoting=none"]).done();
    // What is quoted as it should be may hold line ends, tabs and marks.
    std::fs::write(
        b.path("my.tsv"),
        table(["one", "two\nlines\twith a tab", "\"\"three\"\"", "four", "five"], true),
    )
    .unwrap();
    with(&[]).done().mentions(&["(5 rows)"]);
    with(&["data_config.quoting=all"]).refused(&["data_config.quoting", "minimal", "none"]);
    train(&b, &["data_config.quoting=none"]).refused(&["dataset shapes has no table of text"]);
}

/// A byte 0 is a bad row wherever it stands.
#[test]
fn a_byte_0_is_one_bad_row() {
    let b = Bench::new();
    for bad in [0, 30] {
        let row = |i: usize| format!("{DOT},caption{} {i}\n", if i == bad { "\0" } else { "" });
        let rows = (0..40).map(row).collect::<String>();
        std::fs::write(b.path("my.csv"), format!("image,text\n{rows}")).unwrap();
        let said = train(
            &b,
            &["data_config.dataset=csv", "data_config.data_path=my.csv", "data_config.max_skip_ratio=1"],
        );
        said.done();
        let checked = b.run(&["data", "check", "my.csv"]);
        assert!(
            checked.out.contains("39 of 40 rows can be used") && checked.out.contains("bad_encoding"),
            "{}",
            checked.out
        );
    }
}

/// A line of JSON that is none is one bad row, with the true reason; the file may have any encoding.
#[test]
fn odd_lines_of_json_are_bad_rows() {
    let b = Bench::new();
    let picture = include_bytes!("../../data/tests/cases/03_alpha_palette_grey/grey_L.png");
    std::fs::create_dir(b.path("set")).unwrap();
    let odd = [
        ("\"text\":\"a\",\"score\":NaN", "NaN is no value in JSON"),
        ("\"text\":\"a\",\"score\":-Infinity", "Infinity is no value in JSON"),
        ("\"text\":\"\\ud83d\"", "half of a pair"),
        ("\"text\":7", "`text` is a number, not text"),
        ("\"text\":true", "`text` is true or false, not text"),
        ("\"text\":\"a\\u0000b\"", "has a byte 0"),
        ("\"text\":\"a\"},{", "trailing characters"),
    ];
    let mut lines = vec![];
    for i in 0..20 {
        std::fs::write(b.path(&format!("set/{i}.png")), picture).unwrap();
        let rest =
            odd.get(i).map_or_else(|| format!("\"text\":\"caf\u{e9} {i}\""), |(rest, _)| (*rest).into());
        lines.push(format!("{{\"file_name\":\"{i}.png\",{rest}}}\n"));
    }
    lines.push("{\"file_name\":\"https://example.com/0.jpg\",\"text\":\"b\"}\n".into());
    let text = lines.concat();
    let metadata = b.path("set/metadata.jsonl");
    std::fs::write(&metadata, &text).unwrap();
    let checked = b.run(&["data", "check", "set"]);
    for (_, said) in odd {
        assert!(checked.out.contains(said), "{said}: {}", checked.out);
    }
    assert!(checked.out.contains("13 of 21 rows can be used"), "{}", checked.out);
    assert!(checked.out.contains("addresses are not fetched"), "{}", checked.out);
    let wide = |mark: &[u8]| -> Vec<u8> {
        mark.iter().copied().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect()
    };
    let one: Vec<u8> = text.chars().map(|c| c as u8).collect();
    for (bytes, encoding) in
        [(wide(b"\xff\xfe"), "utf-16"), (wide(b""), "utf-16le"), (one.clone(), "latin-1"), (one, "cp1252")]
    {
        std::fs::write(&metadata, bytes).unwrap();
        let key = format!("data_config.encoding={encoding}");
        let checked = b.run(&["data", "check", "set", &key]);
        assert!(
            checked.out.contains("13 of 21 rows can be used"),
            "{encoding}: {} {}",
            checked.out,
            checked.err
        );
        b.run(&["data", "check", "set"]).refused(&["data_config.encoding"]);
        let shown = b.run(&["data", "show", "set", "--index", "9", "--out", "x.png", &key]).done();
        assert!(shown.out.contains("caf\u{e9} 9"), "{}", shown.out);
    }
    std::fs::write(&metadata, &text).unwrap();
    b.run(&["data", "check", "set", "data_config.encoding=latin-1"])
        .refused(&["leave data_config.encoding=utf-8"]);
    std::fs::write(&metadata, text + "{\"file_name\":\"19.png\",\"te").unwrap();
    b.run(&["data", "check", "set"]).refused(&["line 22 (row 21)", "Is the file cut?"]);
}

/// Addresses are not fetched, and that is said; as are files that stand in for a vocabulary.
#[test]
fn what_is_not_there_is_said() {
    let b = Bench::new();
    let rows = |i: usize| format!("https://example.com/{i},a {i}\n");
    std::fs::write(b.path("my.csv"), String::from("image,text\n") + &(0..8).map(rows).collect::<String>())
        .unwrap();
    train(&b, &["data_config.dataset=csv", "data_config.data_path=my.csv"]).refused(&[
        "the column `image`",
        "`https://example.com/0` is an address, and addresses are not fetched",
        "data_config.dataset=folder",
    ]);
    let row = |i: usize| format!("{DOT},a {i}\n");
    std::fs::write(b.path("my.csv"), String::from("image,text\n") + &(0..8).map(row).collect::<String>())
        .unwrap();
    for (bytes, said) in [
        ("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
        ("<!DOCTYPE html>\n<html>", "is a web page"),
    ] {
        std::fs::write(b.path("vocab.txt"), bytes).unwrap();
        let csv =
            ["data_config.dataset=csv", "data_config.data_path=my.csv", "data_config.vocab_path=vocab.txt"];
        train(&b, &csv).refused(&["vocab.txt", said, "a vocabulary is wanted"]);
    }
}

#[test]
fn a_missing_file_brings_the_nearest_name() {
    let b = Bench::new();
    std::fs::write(b.path("pictures.csv"), "").unwrap();
    train(&b, &["data_config.dataset=csv", "data_config.data_path=picture.csv"])
        .refused(&["No such file", "Did you mean pictures.csv?"]);
    assert!(!b.path("runs").exists());
}

#[test]
fn a_folder_trains_with_its_own_validation_split() {
    let b = Bench::new();
    let picture = include_bytes!("../../data/tests/cases/03_alpha_palette_grey/grey_L.png");
    for (split, n) in [("train", 6), ("validation", 2)] {
        let folder = b.path("mine").join(split);
        std::fs::create_dir_all(&folder).unwrap();
        let mut lines = String::from("file_name,text\n");
        for i in 0..n {
            std::fs::write(folder.join(format!("{i}.png")), picture).unwrap();
            lines += &format!("{i}.png,picture {i}\n{i}.png,again {i}\n");
        }
        lines += "../../x.png,out\n";
        std::fs::write(folder.join("metadata.csv"), lines).unwrap();
    }
    let folder = ["data_config.dataset=folder", "data_config.data_path=mine", "data_config.max_skip_ratio=1"];
    let with = |more: &[&'static str]| train(&b, &[&folder[..], more].concat());
    with(&[]).done().mentions(&[
        "data: folder mine/train/metadata.csv (7 pictures, 13 captions)",
        "13 captions of 7 pictures: the loss uses the first of each",
        "splits: `train` to train on, `validation` to validate on",
        "rows: 7 to train on, 3 to validate on",
        "outside_folder",
    ]);
    with(&["data_config.caption_choice=all"]).done().mentions(&["rows: 13 to train on, 5 to validate on"]);
    with(&["data_config.caption_choice=random"]).done().mentions(&["rows: 7 to train on, 3 to validate on"]);
    with(&["data_config.val_split=dev"]).refused(&["no split `dev`"]);
    train(&b, &["data_config.dataset=folder", "data_config.data_path=min"]).refused(&["Did you mean mine?"]);
}

#[test]
fn parquet_shards_train_with_the_published_preset_as_it_is() {
    let b = Bench::new();
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/tests/parquet/");
    let path = format!("data_config.data_path={fixtures}sharded");
    let preset =
        ["--config-name", "coco_train", "data_config.dataset=parquet", &path, "data_config.vocab_path=auto"];
    train(&b, &preset).done().mentions(&[
        "sharded/train (3 files, 7 rows)",
        "columns: `image` holds pictures (bytes and path), `caption` captions",
        "splits: `train` to train on, `validation` to validate on",
        "rows: 7 to train on, 2 to validate on",
        "done: 3 steps, 12 samples",
    ]);
    let lists = format!("data_config.data_path={fixtures}caption/list_struct.parquet");
    let with = |more: &[&str]| train(&b, &[&["data_config.dataset=parquet", &lists], more].concat());
    with(&["data_config.caption_choice=all"]).done().mentions(&["rows: 16 to train on, 4 to validate on"]);
    with(&["data_config.caption_choice=random"]).done().mentions(&["rows: 8 to train on, 2 to validate on"]);
    with(&["data_config.image_col=photo"]).refused(&["no column `photo`", "`image`, `sentences`"]);
    with(&["data_config.delimiter=;"]).refused(&["dataset parquet has no table of text"]);
    train(&b, &["data_config.dataset=csv", &lists]).refused(&["data_config.dataset=parquet"]);
    assert!(b.path("runs").exists());
}

/// Absolute names are as good as relative ones where they lie in the set; elsewhere it is said what to do.
#[test]
fn absolute_names_inside_the_set_train() {
    let b = Bench::new();
    let picture = include_bytes!("../../data/tests/cases/03_alpha_palette_grey/grey_L.png");
    let folder = b.path("mine");
    std::fs::create_dir_all(folder.join("images/a")).unwrap();
    std::fs::create_dir_all(b.path("tables")).unwrap();
    let table = |column: &str| {
        let row = |i: usize| {
            let path = folder.join(["images/0.png", "images/a/1.png"][i % 2]);
            std::fs::write(&path, picture).unwrap();
            format!("{},picture {i}\n", path.display())
        };
        format!("{column},text\n") + &(0..4).map(row).collect::<String>()
    };
    let elsewhere = b.path("tables/all.csv");
    std::fs::write(&elsewhere, table("image")).unwrap();
    let csv = ["data_config.dataset=csv", "data_config.data_path=tables/all.csv"];
    let images = folder.join("images");
    train(&b, &csv).refused(&[
        "names of files, which are there",
        "not below the table's folder",
        &format!("copy the table to {}", images.join("metadata.csv").display()),
        &format!("data_config.data_path={}", images.display()),
    ]);
    std::fs::write(images.join("metadata.csv"), table("file_name") + "/etc/passwd,out\n").unwrap();
    let set =
        ["data_config.dataset=folder", "data_config.data_path=mine/images", "data_config.max_skip_ratio=1"];
    train(&b, &set).done().mentions(&["(3 pictures, 5 captions)", "outside_folder"]);
    std::fs::write(images.join("all.csv"), table("image")).unwrap();
    train(&b, &["data_config.dataset=csv", "data_config.data_path=mine/images/all.csv"]).refused(&[
        "call the table metadata.csv and this column file_name",
        "data_config.data_path=mine/images",
    ]);
}

#[test]
fn caption_files_are_found_in_capital_letters() {
    let b = Bench::new();
    let picture = include_bytes!("../../data/tests/cases/03_alpha_palette_grey/grey_L.png");
    std::fs::create_dir(b.path("mine")).unwrap();
    for (i, ending) in ["txt", "TXT", "Txt", "TXT"].iter().enumerate() {
        std::fs::write(b.path("mine").join(format!("{i}.png")), picture).unwrap();
        std::fs::write(b.path("mine").join(format!("{i}.{ending}")), format!("picture {i}")).unwrap();
    }
    train(&b, &["data_config.dataset=folder", "data_config.data_path=mine"])
        .done()
        .mentions(&["(4 pictures)"]);
}
