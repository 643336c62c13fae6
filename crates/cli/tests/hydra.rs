//! Command lines as Hydra takes them, through the real binary.

mod support;

use support::Bench;

#[test]
fn the_short_names_of_name_and_path_are_taken() {
    let b = Bench::new();
    std::fs::create_dir(b.path("conf")).unwrap();
    std::fs::write(b.path("conf/mine.yaml"), "trainer_config:\n  lr: 0.125\n  max_iters: 3\n").unwrap();
    for line in [
        &["train", "-cp", "conf", "-cn", "mine", "--print-config"][..],
        &["train", "-cp=conf", "-cn=mine", "--print-config"],
    ] {
        b.run(line).done().mentions(&["lr: 0.125", "conf/mine.yaml:2:3"]);
    }
    b.run(&["train", "-cn", "conf/mine", "--print-config"]).refused(&["did you mean conf/mine.yaml?"]);
    // Where there is no such option, the parser says so under our name.
    let said = b.run(&["caption", "-cn", "mine", "--snapshot", "x", "y"]);
    assert_eq!(said.code, Some(2));
    said.mentions(&["--config-name"]);
}

#[test]
fn other_options_are_refused_by_name_with_what_to_use() {
    let b = Bench::new();
    for (option, instead) in [
        (&["--cfg", "job"][..], "--print-config"),
        (&["--cfg=job"], "--print-config"),
        (&["-c", "job"], "--print-config"),
        (&["--resolve"], "--print-config"),
        (&["--info", "all"], "--print-config"),
        (&["-i"], "--print-config"),
        (&["--package", "model_config"], "--print-config"),
        (&["--config-dir", "conf"], "--config-path"),
        (&["-cd", "conf"], "--config-path"),
        (&["--run"], "`ocelli train` runs"),
        (&["-r"], "`ocelli train` runs"),
        (&["--experimental-rerun", "x"], "--resume"),
        (&["--hydra-help"], "ocelli train --help"),
    ] {
        let said = b.run(&[&["train", "data_config.dataset=shapes"], option].concat());
        assert_eq!(said.code, Some(2), "{option:?}: {}", said.err);
        let name = option[0].split('=').next().unwrap();
        let tip = format!("tip: {name} is an option of Hydra's: ");
        let said = said.mentions(&[&format!("unexpected argument '{name}' found"), &tip, instead]);
        assert!(!said.err.contains("similar argument"), "{}", said.err);
    }
    // Others are as they were.
    let said = b.run(&["train", "--config-nam", "x"]);
    assert!(said.err.contains("similar argument") && !said.err.contains("Hydra"), "{}", said.err);
    b.run(&["train", "--resum"]).mentions(&["--resume"]);
}

#[test]
fn text_with_marks_of_the_grammar_is_shown_as_it_must_be_typed() {
    let b = Bench::new();
    let base = ["train", "--config-name", "csv_train"];
    for (given, typed) in [
        ("data_config.data_path=it's.csv", r#"'data_config.data_path="it'\''s.csv"'"#),
        ("data_config.data_path=a, b.csv", r#"'data_config.data_path="a, b.csv"'"#),
        ("data_config.data_path=a(1).csv", r#"'data_config.data_path="a(1).csv"'"#),
        ("data_config.delimiter=,", r#"'data_config.delimiter=","'"#),
    ] {
        let said = b.run(&[&base[..], &[given]].concat()).refused(&["quote", typed]);
        assert!(!said.err.contains("is null") && said.err.lines().count() == 1, "{}", said.err);
        // What the message shows is read as the text.
        let command =
            format!("{} train --config-name csv_train --print-config {typed}", env!("CARGO_BIN_EXE_ocelli"));
        let shell = std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
        let value = given.split_once('=').unwrap().1;
        let said = support::said(shell).done();
        let line = said.out.lines().find(|line| line.contains("# override")).unwrap().to_owned();
        assert!(line.contains(value) || line.contains(&value.replace('\'', "''")), "{line}");
    }
    b.train(&["trainer_config.lr =1"])
        .refused(&["a blank stands beside the key", "write trainer_config.lr=value"]);
}

#[test]
fn a_folder_as_a_configuration_is_told_as_that() {
    let b = Bench::new();
    std::fs::create_dir(b.path("conf")).unwrap();
    b.run(&["train", "--config-name", "conf"])
        .refused(&["--config-name conf: a folder, and it holds no .yaml"]);
    std::fs::write(b.path("conf/mine.yaml"), "trainer_config:\n  lr: 0.125\n").unwrap();
    std::fs::write(b.path("conf/a.yaml"), "").unwrap();
    let advice = "one of its files is wanted (a, mine): --config-path conf --config-name a";
    b.run(&["train", "--config-name", "conf"]).refused(&[advice]);
    b.run(&["train", "--config-path", ".", "--config-name", "conf"]).refused(&["./conf --config-name a"]);
    b.run(&["train", "--config-path", "conf", "--config-name", "mine", "--print-config"]).done();
}

#[test]
fn a_key_set_twice_is_told_of_once() {
    let b = Bench::new();
    let more = ["trainer_config.max_iters=2", "trainer_config.lr=0.5", "trainer_config.lr=0.25"];
    let said = b.train(&more).done();
    let line = "note: trainer_config.lr is set more than once on the command line: trainer_config.lr=0.25 is taken, not \
                trainer_config.lr=0.5";
    assert_eq!(said.out.matches(line).count(), 1, "{}", said.out);
}

#[test]
fn a_length_that_only_the_preset_forbids_names_what_to_set() {
    let b = Bench::new();
    b.train(&["data_config.max_seq_length=200"]).refused(&[
        "max_seq_length 200 needs 201 positions",
        "set model_config.max_positions=201, or at most max_seq_length=127",
        "(model_config.max_positions is set at built-in shapes.yaml:11:3)",
    ]);
    let enough =
        ["data_config.max_seq_length=200", "model_config.max_positions=201", "trainer_config.max_iters=1"];
    b.train(&enough).done();
}

#[cfg(unix)]
#[test]
fn an_argument_that_is_no_text_is_named() {
    use std::os::unix::ffi::OsStrExt;
    let b = Bench::new();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.csv");
    let said = support::said(b.command(&["data", "check"]).arg(name).output().unwrap());
    assert_eq!(said.code, Some(2));
    said.mentions(&["argument 3, `caf\\xe9.csv`, is not UTF-8 text"]);
}
