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
    for delimiter in [";", "','", "\\t", "'\\t'", "' '", "^"] {
        let key = format!("data_config.delimiter={delimiter}");
        let said =
            b.train(&["--print-config", "data_config.dataset=csv", "data_config.data_path=x", &key]).done();
        assert!(said.out.contains("delimiter: "), "{}", said.out);
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
        "13 captions of 7 pictures: the first of each is used",
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
