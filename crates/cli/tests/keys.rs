//! What a person sees of keys that are set and mean nothing, or that no program can hold, through the real binary.

mod support;

use support::Bench;

#[test]
fn a_path_to_data_is_never_ignored() {
    let b = Bench::new();
    let fix = "set data_config.dataset=csv";
    b.train(&["data_config.data_path=my.csv"]).refused(&["data_path is my.csv", fix]);
    std::fs::write(b.path("mine.yaml"), "data_config:\n  data_path: my.csv\n").unwrap();
    b.run(&["train", "--config-name", "mine.yaml"]).refused(&["mine.yaml:2:3: ", fix]);
    assert!(!b.path("runs").exists());
    // A preset that names data may still be tried on drawn pictures, and resumed.
    let drawn = ["data_config.dataset=shapes", "data_config.train_samples=4", "data_config.vocab_path=auto"];
    let args = [&["--config-name", "csv_train", "trainer_config.max_iters=1"][..], &drawn].concat();
    b.train(&args).done();
    let run = b.run_folder();
    b.run(&["train", "--resume", run.to_str().unwrap(), "trainer_config.max_iters=2"]).done();
}

#[test]
fn only_what_the_user_set_brings_a_note() {
    let b = Bench::new();
    let said = b.train(&["data_config.image_col=picture", "trainer_config.max_iters=1"]).done();
    said.mentions(&["note: without effect on dataset shapes: data_config.image_col; to train on your own"]);
    let preset = ["train", "--config-name", "csv_train", "data_config.data_path=none.csv"];
    for (key, why) in [
        ("data_config.caption_choice=all", "each row of a table is a sample"),
        ("data_config.train_split=dev", "train_split_ratio divides its rows"),
        ("data_config.train_samples=9", "the source has the rows that it has"),
    ] {
        let path = key.split('=').next().unwrap();
        let note = format!("note: without effect on dataset csv: {path}; ");
        b.run(&[&preset[..], &[key]].concat()).refused(&[&note, why]);
    }
    for key in ["data_config.exif=true", "data_config.pixels=pillow"] {
        let said = b.train(&[key, "trainer_config.max_iters=1"]).done();
        said.mentions(&[&format!(
            "note: without effect on dataset shapes: {}",
            key.split('=').next().unwrap()
        )]);
    }
    let quiet = b.run(&preset).refused(&["none.csv"]);
    assert!(!quiet.out.contains("note: "), "{}", quiet.out);
    b.run(&[&preset[..], &["model_config.block_size=7"]].concat())
        .refused(&["note: accepted, but without effect: model_config.block_size (the longest text follows"]);
    b.run(&["config", "head_size"]).done().mentions(&["no effect: a head's width is"]);
}

#[test]
fn a_number_that_is_nothing_in_32_bits_says_so() {
    let b = Bench::new();
    b.train(&["trainer_config.lr=1e-50"]).refused(&["found 1e-50, which is 0 when rounded to 32 bits"]);
}

#[test]
fn a_missing_column_names_its_key() {
    let b = Bench::new();
    std::fs::write(b.path("my.csv"), "picture,text\nAAAA,a barn\n").unwrap();
    let train = |more: &[&str]| {
        b.train(&[&["--config-name", "csv_train", "data_config.data_path=my.csv"], more].concat())
    };
    train(&[]).refused(&["my.csv", "`b64string_images` (data_config.image_col)", "`picture`, `text`"]);
    train(&["data_config.image_col=picture"]).refused(&["`caption` (data_config.caption_col)"]);
}
