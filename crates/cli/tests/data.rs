//! `ocelli data check` and `ocelli data show` through the real binary.

mod support;

use serde_json::{Value, json};
use std::path::Path;
use support::{Bench, csv};

/// The line of JSON about the only source.
#[track_caller]
fn checked(b: &Bench, args: &[&str], ok: bool) -> Value {
    let said = b.run(&[&["data", "check", "--json"], args].concat());
    assert_eq!(said.ok, ok, "{}{}", said.out, said.err);
    serde_json::from_str(&said.out).unwrap()
}

/// Files of the data crate's tests.
fn case(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/tests/cases").join(name);
    path.to_str().unwrap().to_owned()
}

#[test]
fn rows_are_counted_and_bad_ones_named() {
    let b = Bench::new();
    csv(&b, 18, 2);
    let found = checked(&b, &["rows.csv", "data_config.max_skip_ratio=0.2"], true);
    let part = &found["parts"][0];
    assert_eq!((&part["rows"], &part["usable"]), (&json!(20), &json!(18)), "{found}");
    assert_eq!(part["skipped"], json!({"not_an_image": 2}));
    assert_eq!(part["bad"].as_array().unwrap().len(), 2);
    assert_eq!(part["bad"][0]["row"], json!(18));
    assert_eq!((&found["trainable"], &found["refusals"]), (&json!(true), &json!([])));
    // A tenth is more than the default allows.
    let refusals = &checked(&b, &["rows.csv"], false)["refusals"];
    assert!(refusals[0].as_str().unwrap().contains("2 of 20 rows cannot be used"), "{refusals}");
    b.run(&["data", "check", "rows.csv"]).refused(&["1 of 1 source cannot be used as it is"]).mentions(&[
        "18 of 20 rows can be used",
        "skipped: 2 not_an_image",
        "rows.csv:20 (row 18)",
        "training would stop: 2 of 20 rows cannot be used, more than data_config.max_skip_ratio=0.05",
    ]);
}

#[test]
fn the_mixed_set_is_as_it_should_be() {
    let b = Bench::new();
    let found = checked(&b, &[&case("00_mixed_run/train.csv")], true);
    let part = &found["parts"][0];
    assert_eq!((&part["rows"], &part["usable"]), (&json!(64), &json!(61)), "{found}");
    assert_eq!(part["skipped"].as_object().unwrap().len(), 3, "{found}");
}

#[test]
fn captions_are_looked_at_with_the_vocabulary_and_the_limit() {
    let b = Bench::new();
    let (file, vocabulary) = (case("08_captions/captions.csv"), case("08_captions/vocab_small.txt"));
    let vocabulary = format!("data_config.vocab_path='{vocabulary}'");
    let limit =
        ["data_config.max_seq_length=256", "model_config.max_positions=300", "data_config.max_skip_ratio=1"];
    let args = [&[&*file, &*vocabulary], &limit[..]].concat();
    let found = checked(&b, &args, false);
    let part = &found["parts"][0];
    assert_eq!((&part["rows"], &part["truncated"]), (&json!(17), &json!(1)), "{found}");
    assert_eq!(part["skipped"], json!({"empty_caption": 2}));
    assert!(part["replaced"].as_u64().unwrap() > 1, "{found}");
    let unknown = found["unknown_characters"].as_array().unwrap();
    assert!(unknown.iter().all(|u| u["count"].as_u64().unwrap() > 0) && unknown.len() > 1, "{found}");
    assert!(found["refusals"][0].as_str().unwrap().contains("data_config.unknown=replace"), "{found}");
    let replaced = checked(&b, &[&args[..], &["data_config.unknown=replace"]].concat(), true);
    assert_eq!(replaced["parts"], found["parts"]);
    // A learnt vocabulary lacks nothing.
    let learnt = checked(&b, &[&*file, "data_config.max_skip_ratio=1"], true);
    assert_eq!(learnt["unknown_characters"], json!([]));
}

#[test]
fn pictures_without_captions_are_looked_at_too() {
    let b = Bench::new();
    let found = checked(&b, &[&case("03_alpha_palette_grey")], false);
    assert_eq!(found["parts"][0]["usable"], json!(7), "{found}");
    assert_eq!((&found["captions"], &found["trainable"]), (&Value::Null, &json!(false)));
    let why = found["refusals"][0].as_str().unwrap();
    assert!(why.contains("has 7 pictures but no captions: "), "{found}");
    let found = checked(&b, &[&case("01_broken_images")], false);
    let reasons = json!({"corrupt": 1, "empty_file": 1, "not_an_image": 1, "truncated": 1});
    assert_eq!(found["parts"][0]["skipped"], reasons, "{found}");
    assert_eq!(found["parts"][0]["warnings"], json!({"no_end_marker": 1}));
    let one = case("01_broken_images/cut_half.jpg");
    b.run(&["data", "check", &one])
        .refused(&["none of 1 row can be used"])
        .mentions(&["truncated", "cut_half.jpg"]);
    b.run(&["data", "check", &case("01_broken_images/progressive.jpg")])
        .refused(&["1 of 1 source cannot be used as it is"])
        .mentions(&["64 wide, 48 high", "training would stop: has 1 picture but no captions"]);
}

#[test]
fn what_is_no_source_is_said_and_the_others_are_looked_at() {
    let b = Bench::new();
    csv(&b, 3, 0);
    std::fs::write(b.path("page.csv"), "<!doctype html><title>404</title>").unwrap();
    std::fs::create_dir(b.path("empty")).unwrap();
    b.run(&["data", "check", "none.csv", "page.csv", "rows.csv", "empty"])
        .refused(&["none.csv", "page.csv", "web page", "without a picture file", "3 of 4 sources"])
        .mentions(&["3 of 3 rows can be used"]);
    let said = b.run(&["data", "check", "--json", "none.csv", "rows.csv"]);
    let lines: Vec<Value> = said.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert!(lines[0]["error"].as_str().unwrap().contains("none.csv"), "{}", said.out);
    assert_eq!((&lines[0]["trainable"], &lines[1]["trainable"]), (&json!(false), &json!(true)));
    b.run(&["data", "check", "data_config.dataset=csv"]).refused(&["no source is named"]);
    b.run(&["data", "check", "rows.csv", "data_confg.encoding=latin1"]).refused(&["data_config.encoding"]);
    b.run(&["data", "check", "shapes"]).done().mentions(&["1000 of 1000 rows can be used"]);
}

/// A name is a name, whatever characters of the override grammar it holds.
#[cfg(unix)]
#[test]
fn a_source_may_have_any_name() {
    let b = Bench::new();
    csv(&b, 3, 0);
    for name in [
        "a\\b.csv",
        "a\\\\b.csv",
        "${x}.csv",
        "\\${trainer_config.lr}.csv",
        "it's, \"so\" [1].csv",
        "a\\'.csv",
    ] {
        std::fs::copy(b.path("rows.csv"), b.path(name)).unwrap();
        assert_eq!(checked(&b, &[name], true)["source"], json!(name));
        b.run(&["data", "show", name, "--out", "shown.png"]).done();
    }
}

/// Every kind of source says what it is by itself; an override says it where that fails.
#[test]
fn the_kind_of_a_source_is_told() {
    let b = Bench::new();
    csv(&b, 3, 0);
    std::fs::copy(b.path("rows.csv"), b.path("rows.txt")).unwrap();
    b.run(&["data", "check", "rows.txt"]).refused(&["not_an_image"]);
    b.run(&["data", "check", "rows.txt", "data_config.dataset=csv"])
        .done()
        .mentions(&["csv rows.txt (3 rows)"]);
    let parquet = case("../parquet/sharded");
    b.run(&["data", "check", &parquet]).done().mentions(&["7 of 7 rows", "2 of 2 rows"]);
    let pattern = case("../parquet/sharded/data/train-*.parquet");
    b.run(&["data", "check", &pattern]).done().mentions(&["7 of 7 rows"]);
    std::fs::create_dir(b.path("photos")).unwrap();
    std::fs::copy(case("03_alpha_palette_grey/grey_L.png"), b.path("photos/grey.png")).unwrap();
    b.run(&["data", "check", "photos"]).refused(&[]).mentions(&["without captions", "1 of 1 row "]);
    std::fs::write(b.path("photos/grey.txt"), "all grey").unwrap();
    b.run(&["data", "check", "photos"])
        .done()
        .mentions(&["folder photos (1 picture)", "8 characters on average"]);
    #[cfg(unix)]
    {
        assert!(std::process::Command::new("mkfifo").arg(b.path("pipe.csv")).status().unwrap().success());
        b.run(&["data", "check", "pipe.csv"]).refused(&["pipe.csv", "not_a_file"]);
    }
}

#[test]
fn a_row_is_shown_as_the_model_sees_it() {
    let b = Bench::new();
    let args = [
        &["data", "show", "shapes", "--index", "3", "--out", "seen.png", "--json"][..],
        &["model_config.img_size=16", "model_config.patch_size=8"],
    ];
    let said = b.run(&args.concat()).done();
    let row: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&row["side"], &row["index"]), (&json!(16), &json!(3)), "{row}");
    assert_eq!(row["ids"].as_array().unwrap().len(), row["caption"].as_str().unwrap().len());
    let png = std::fs::read(b.path("seen.png")).unwrap();
    // Width and height stand behind the signature and the head of the first chunk.
    assert_eq!((&png[..4], &png[16..24]), (&b"\x89PNG"[..], &[0, 0, 0, 16, 0, 0, 0, 16][..]));
    // Decoded and scaled once more, it is itself.
    let again = b.run(&[
        "data",
        "show",
        "seen.png",
        "--out",
        "again.png",
        "model_config.img_size=16",
        "model_config.patch_size=8",
    ]);
    again.done().mentions(&["16 x 16 pixels, as 16 x 16 in again.png", "caption: (none)"]);
    assert_eq!(std::fs::read(b.path("again.png")).unwrap(), png);
}

#[test]
fn what_cannot_be_shown_is_refused_and_nothing_written_over() {
    let b = Bench::new();
    let hidden = case("03_alpha_palette_grey/hidden_colour_RGBA.png");
    b.run(&["data", "show", &hidden, "--out", "hidden.png"])
        .done()
        .mentions(&["64 x 48 pixels, as 32 x 32 in hidden.png"]);
    b.run(&["data", "show", &hidden, "--index", "1", "--out", "x.png"])
        .refused(&["--index 1", "rows 0 to 0"]);
    b.run(&["data", "show", &case("01_broken_images/bad_crc.png"), "--out", "x.png"]).refused(&["corrupt"]);
    assert!(!b.path("x.png").exists());
    b.run(&["data", "show", "hidden.png", "--out", "./hidden.png"]).refused(&["is the source itself"]);
    std::fs::write(b.path("file"), "").unwrap();
    b.run(&["data", "show", "shapes", "--out", "file/seen.png"]).refused(&["file/seen.png"]);
    b.run(&["data", "show", "shapes", "--out", "new/seen.png"])
        .refused(&["--out new/seen.png", "no folder new"]);
    assert!(!b.path("new").exists());
    b.run(&["data", "show", "shapes", "hidden.png", "--out", "x.png"]).refused(&["one source"]);
}

/// What a person wrote into a file of their own is not guessed over; a preset is.
#[test]
fn the_kind_in_an_own_configuration_comes_before_the_guess() {
    let b = Bench::new();
    csv(&b, 3, 0);
    let text = std::fs::read_to_string(b.path("rows.csv")).unwrap();
    std::fs::write(b.path("tabs.csv"), text.replace(',', "\t")).unwrap();
    std::fs::write(
        b.path("mine.yaml"),
        "data_config:\n  dataset: tsv\n  data_path: other.tsv\n  vocab_path: auto\n",
    )
    .unwrap();
    let check = |more: &[&str]| b.run(&[&["data", "check"], more].concat());
    check(&["--config-name", "mine.yaml", "tabs.csv"]).done().mentions(&["tsv tabs.csv (3 rows)"]);
    let show = ["data", "show", "--config-name", "mine.yaml", "tabs.csv", "--out", "x.png"];
    b.run(&show).done();
    // An override comes before both, and what is drawn is known by its name.
    check(&["--config-name", "mine.yaml", "rows.csv", "data_config.dataset=csv"]).done();
    std::fs::write(b.path("drawn.yaml"), "data_config:\n  dataset: shapes\n  vocab_path: auto\n").unwrap();
    check(&["--config-name", "drawn.yaml", "shapes"]).done();
    check(&["--config-name", "coco_train", "rows.csv", "data_config.vocab_path=auto"])
        .done()
        .mentions(&["csv rows.csv (3 rows)"]);
}

#[test]
fn a_row_that_cannot_be_shown_is_an_object_with_the_reason() {
    let b = Bench::new();
    csv(&b, 1, 1);
    let show = |source: &str, index: &str| -> Value {
        let said = b.run(&["data", "show", "--json", source, "--index", index, "--out", "x.png"]);
        assert!(!said.ok && said.err.starts_with("error: "), "{}", said.err);
        serde_json::from_str(&said.out).unwrap()
    };
    let bad = show("rows.csv", "1");
    assert_eq!(
        (&bad["source"], &bad["index"], &bad["error"]["reason"]),
        (&json!("rows.csv"), &json!(1), &json!("not_an_image"))
    );
    assert_eq!(
        (&bad["error"]["place"], &bad["error"]["bytes"]),
        (&json!("rows.csv:3 (row 1)"), &json!(4)),
        "{bad}"
    );
    let beyond = show("rows.csv", "2");
    assert_eq!(beyond["error"]["reason"], "not_usable");
    assert!(beyond["error"]["detail"].as_str().unwrap().contains("has the rows 0 to 1"), "{beyond}");
    assert!(show("none.csv", "0")["error"]["detail"].as_str().unwrap().contains("none.csv"));
    assert!(!b.path("x.png").exists());
}

/// Rows of metadata without a file's name are bad each for itself, and no folder is spoken of.
#[test]
fn a_row_without_a_file_name_is_said_to_be_that() {
    let picture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pictures/barn.jpg");
    let b = Bench::new();
    std::fs::create_dir(b.path("set")).unwrap();
    std::fs::copy(picture, b.path("set/a.jpg")).unwrap();
    std::fs::write(b.path("set/metadata.jsonl"), "\n{\"picture\":\"a.jpg\",\"text\":\"a\"}\n").unwrap();
    b.run(&["data", "check", "set"]).refused(&["metadata.jsonl: line 2 (row 0): no column `file_name`"]);
    for (name, text) in [
        (
            "metadata.jsonl",
            "{\"file_name\":\"a.jpg\",\"text\":\"a\"}\n{\"text\":\"b\"}\n\n{\"file_name\":null,\"text\":[\"c\",\"d\"]}\n",
        ),
        ("metadata.csv", "file_name,text\na.jpg,a\n,b\n  ,c\n"),
    ] {
        let b = Bench::new();
        std::fs::create_dir(b.path("set")).unwrap();
        std::fs::copy(picture, b.path("set/a.jpg")).unwrap();
        std::fs::write(b.path("set").join(name), text).unwrap();
        let part = &checked(&b, &["set"], false)["parts"][0];
        assert_eq!(part["skipped"], json!({"empty_image": 2}), "{part}");
        let lines = if name.ends_with("csv") { [3, 4] } else { [2, 4] };
        for (i, line) in lines.into_iter().enumerate() {
            let place = format!("set/{name}:{line} (row {})", i + 1);
            assert_eq!(part["bad"][i]["place"], json!(place), "{part}");
            let detail = part["bad"][i]["detail"].as_str().unwrap();
            assert!(detail.contains("names no picture:") && !detail.contains("folder"), "{detail}");
        }
    }
}
