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
