//! `ocelli train -m`, through the real binary.

mod support;

use support::Bench;

#[test]
fn every_combination_is_checked_before_the_first_starts() {
    let b = Bench::new();
    b.train(&["-m", "trainer_config.max_iters=1", "model_config.n_head=2,3", "trainer_config.lr=1e-3,-1"])
        .refused(&[
            "3 of 4 runs cannot start, so none was started",
            "run 2 of 4: ",
            "trainer_config.lr=-1",
            "must be finite and above 0",
            "run 3 of 4: ",
            "not a multiple of n_head 3",
            "run 4 of 4: ",
        ]);
    b.train(&["-m", "model_config.init_from=null,none.safetensors"]).refused(&[
        "1 of 2 runs",
        "run 2 of 2: ",
        "model_config.init_from: none.safetensors: No such file",
    ]);
    let data = ["--config-name", "csv_train", "-m", "data_config.data_path=a.csv,b.csv"];
    b.train(&data).refused(&["2 of 2 runs", "data_config.data_path: a.csv: No such file"]);
    b.train(&["-m", "trainer_config.lr=1e-3", "model_config.n_head=3"])
        .refused(&["not a multiple of n_head 3"]);
    assert!(!b.path("runs").exists());
}

#[test]
fn a_run_that_fails_stops_no_other() {
    let b = Bench::new();
    std::fs::write(b.path("notes.txt"), "no weights").unwrap();
    let said = b.train(&[
        "-m",
        "trainer_config.max_iters=2",
        "model_config.init_from=notes.txt,null",
        "trainer_config.lr=1e-3,1e-4",
    ]);
    let done = said.out.matches("done: 2 steps").count();
    let said = said.refused(&[
        "notes.txt is not a safetensors file",
        "2 of 4 runs failed:\n  run 1 of 4: model_config.init_from=notes.txt trainer_config.lr=1e-3",
        "\n  run 2 of 4: ",
    ]);
    assert_eq!((done, b.snapshots().len()), (2, 2), "{}", said.out);
    assert!(!said.err.contains("run 3 of 4"), "{}", said.err);
}

#[cfg(unix)]
#[test]
fn an_interrupt_names_what_is_left_out() {
    let b = Bench::new();
    let child = b.start(&["-m", "trainer_config.max_iters=1000000", "trainer_config.lr=1e-3,2e-3,3e-3"]);
    let said = b.interrupt(child).done();
    let left: Vec<&str> = said.out.lines().filter(|l| l.starts_with("left out: ")).collect();
    let [second, third] = left[..] else { panic!("{left:?}") };
    assert!(
        second.starts_with("left out: run 2 of 3: ") && second.ends_with("trainer_config.lr=2e-3"),
        "{second}"
    );
    assert!(third.ends_with("trainer_config.lr=3e-3"), "{third}");
    assert_eq!(b.snapshots().len(), 1);
    let b = Bench::new();
    let said =
        b.interrupt(b.start(&["-m", "trainer_config.max_iters=1000000", "trainer_config.lr=1e-3,1e-3"]));
    assert!(
        said.out.lines().any(|l| l.starts_with("left out: run 2 of 2: ") && l.ends_with("lr=1e-3")),
        "{}",
        said.out
    );
}
