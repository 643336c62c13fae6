//! The override grammar: what each form does, and what it says when it cannot.

use ocelli_config::{Config, LoadStrategy, Request, Switch, load, load_text, sweep};

const FILE: &str = "data_config:\n  vocab_path: pictures\ntrainer_config:\n  lr: 0.5\n  max_iters: 9\n";

fn try_load(overrides: &[&str]) -> Result<Config, String> {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    load_text("my.yaml", FILE, &overrides).map(|r| r.config).map_err(|e| e.to_string())
}

fn loaded(overrides: &[&str]) -> Config {
    try_load(overrides).unwrap_or_else(|e| panic!("{overrides:?}: {e}"))
}

/// The message after the place.
fn refused(text: &str) -> String {
    let message = try_load(&[text]).expect_err(text);
    let (_, rest) = message.split_once("', column ").expect(&message);
    rest.to_owned()
}

#[test]
fn set_add_force_and_delete() {
    assert_eq!(loaded(&[]).trainer.lr, 0.5);
    assert_eq!(loaded(&["trainer_config.lr=1e-3"]).trainer.lr, 1e-3);
    assert_eq!(loaded(&["trainer_config.lr=1", "trainer_config.lr=2"]).trainer.lr, 2.0);
    assert_eq!(loaded(&["++trainer_config.lr=2"]).trainer.lr, 2.0);
    assert_eq!(loaded(&["+trainer_config.beta1=0.8"]).trainer.beta1, 0.8);
    assert_eq!(loaded(&["trainer_config.beta1=0.8"]).trainer.beta1, 0.8);
    assert_eq!(loaded(&["~trainer_config.lr"]).trainer.lr, Config::default().trainer.lr);
    assert_eq!(loaded(&["~trainer_config.lr=5e-1"]).trainer.lr, Config::default().trainer.lr);
    assert_eq!(loaded(&["~trainer_config"]).trainer, Config::default().trainer);
    assert_eq!(
        loaded(&["~trainer_config.max_iters", "+trainer_config.max_iters=3"]).trainer.max_iters,
        Some(3)
    );
    assert_eq!(
        refused("+trainer_config.lr=1"),
        "2: trainer_config.lr: + adds a key, but it is set already; write trainer_config.lr=... or \
         ++trainer_config.lr=..."
    );
    assert_eq!(
        refused("~trainer_config.lr=1"),
        "2: trainer_config.lr: ~ with a value takes back that value only, but here the number 0.5 is set"
    );
    assert_eq!(
        refused("~trainer_config.beta1"),
        "2: trainer_config.beta1: ~ takes back what the file sets, but nothing sets this key"
    );
    assert_eq!(
        refused("trainer_config=1"),
        "1: trainer_config: a group cannot be set as a whole; set its keys one by one (group.key=value)"
    );
}

#[test]
fn values() {
    let path = |value: &str| loaded(&[&format!("data_config.vocab_path={value}")]).data.vocab_path;
    for (written, read) in [
        ("null", None),
        ("NULL", None),
        ("'null'", Some("null")),
        ("\"a, b = [c]\"", Some("a, b = [c]")),
        (r"'it\'s'", Some("it's")),
        (r"a\,b\ ", Some("a,b ")),
        (r"\[x\]", Some("[x]")),
        ("  two words  ", Some("two words")),
        (r"C:\pics\new", Some(r"C:\pics\new")),
        ("/data/a=b.csv", Some("/data/a=b.csv")),
        ("s3://x@y?z*", Some("s3://x@y?z*")),
        ("12", Some("12")),
        ("'true'", Some("true")),
        ("наборы/é", Some("наборы/é")),
        (r"\${x}", Some("${x}")),
        ("'\"'", Some("\"")),
        (r#""\\""#, Some("\\")),
        (r"'a\\'", Some(r"a\")),
        (r"'a\\\'b'", Some(r"a\'b")),
        (r#"'C:\\a\\"b'"#, Some(r#"C:\\a\\"b"#)),
    ] {
        assert_eq!(path(written).as_deref(), read, "{written}");
    }
    assert!(loaded(&["trainer_config.compile=TRUE"]).trainer.compile);
    for (text, want) in [("TRUE", Switch::On), ("False", Switch::Off), ("auto", Switch::Auto)] {
        assert_eq!(loaded(&[&format!("trainer_config.use_amp={text}")]).trainer.use_amp, want);
    }
    assert_eq!(loaded(&["trainer_config.max_iters=10_000"]).trainer.max_iters, Some(10_000));
    assert_eq!(loaded(&["trainer_config.max_iters=null"]).trainer.max_iters, None);
    let strategy = |value: &str| {
        loaded(&[&format!("trainer_config.snapshot_load_strategy={value}")]).trainer.snapshot_load_strategy
    };
    assert_eq!(strategy("latest"), Some(LoadStrategy::Latest));
    assert_eq!(strategy("3"), Some(LoadStrategy::Epoch(3)));
    assert_eq!(strategy("null"), None);
    assert_eq!(loaded(&["data_config.vocab_path=auto"]).data.vocab_file(), None);
}

#[test]
fn what_does_not_parse_is_placed() {
    for (text, expected) in [
        ("", "1: expected a dotted key such as trainer_config.lr before `=`"),
        ("lr", "3: expected `=` and a value: write key=value"),
        ("=1", "1: expected a dotted key such as trainer_config.lr before `=`"),
        ("a..b=1", "1: expected a dotted key such as trainer_config.lr before `=`"),
        ("++a[0]=1", "3: expected a dotted key such as trainer_config.lr before `=`"),
        ("db/mysql=x", "1: config groups (group/option=name) are not supported; set keys one by one"),
        ("db@pkg=x", "1: packages (key@package) are not supported; set keys one by one"),
        ("hydra.run.dir=x", "1: hydra.* settings are not supported"),
        ("a.b='x", "5: the quote is not closed"),
        ("a.b='x'y", "8: unexpected 'y'; quote the whole value if it belongs to it"),
        ("a.b=[1,2", "9: the list is not closed: `]` is missing"),
        ("a.b=[1,,2]", "8: a value is missing beside a comma"),
        ("a.b=[1,]", "8: a value is missing beside a comma"),
        (
            "a.b=1,",
            "7: a value is missing beside a comma; quote a comma that is text, as a shell needs it: 'a.b=\"1,\"'",
        ),
        (
            "a.b=1]",
            "6: unexpected ']'; quote the whole value if it belongs to it, as a shell needs it: 'a.b=\"1]\"'",
        ),
        (
            "+a.b=é'",
            "7: unexpected '\\''; quote the whole value if it belongs to it, as a shell needs it: \
             '+a.b=\"é'\\''\"'",
        ),
        (
            "trainer_config.lr =1",
            "1: a blank stands beside the key `trainer_config.lr`: write trainer_config.lr=value without blanks",
        ),
        ("+ lr=1", "2: a blank stands beside the key `lr`: write lr=value without blanks"),
        ("a.b=${x", "5: the interpolation is not closed: `}` is missing"),
        (
            "a.b={x: 1}",
            "5: dictionaries are not supported; set keys one by one, or quote the text, as a shell needs it: \
             'a.b=\"{x: 1}\"'",
        ),
        (
            "a.b=range(1,5)",
            "10: functions such as choice(...) or range(...) are not supported; quote text with brackets, as a shell \
             needs it: 'a.b=\"range(1,5)\"'",
        ),
        (
            "data_config.delimiter=,",
            "24: data_config.delimiter: a value is missing beside a comma; quote a comma that is text, as a shell needs \
             it: 'data_config.delimiter=\",\"'",
        ),
        (
            "data_config.data_path=a, b.csv",
            "1: data_config.data_path: 2 values with commas between are a sweep: add --multirun (-m), or quote \
             the text, as a shell needs it: 'data_config.data_path=\"a, b.csv\"'",
        ),
        ("trainer_config.lr=[0.1,[0.2]]", "19: trainer_config.lr: expected a number, found a list"),
        ("trainer_config.run_dir=", "24: trainer_config.run_dir: must be not empty, found the text \"\""),
        (
            "trainer_config.lr=1,2",
            "1: trainer_config.lr: 2 values with commas between are a sweep: add --multirun (-m), or quote \
             the text, as a shell needs it: 'trainer_config.lr=\"1,2\"'",
        ),
        (
            "trainer_config.freeze=a.*,'b'",
            "1: trainer_config.freeze: 2 values with commas between are a sweep: add --multirun (-m), or quote \
             the text, as a shell needs it: 'trainer_config.freeze=\"a.*,'\\''b'\\''\"'",
        ),
    ] {
        assert_eq!(refused(text), expected, "{text}");
    }
}

#[test]
fn interpolation() {
    let config = loaded(&[
        "trainer_config.run_dir=out/${data_config.vocab_path}-${trainer_config.seed}",
        "trainer_config.eval_interval=${trainer_config.max_iters}",
        "trainer_config.snapshot_interval=${trainer_config.eval_interval}",
        "trainer_config.keep_last=${trainer_config.eval_iters}",
        "trainer_config.wandb_project='${data_config.encoding}'",
    ]);
    assert_eq!(config.trainer.run_dir, "out/pictures-1337");
    assert_eq!((config.trainer.eval_interval, config.trainer.snapshot_interval), (Some(9), Some(9)));
    assert_eq!((config.trainer.keep_last, config.trainer.wandb_project.as_str()), (None, "utf-8"));
    for (value, expected) in [
        (
            "${trainer_config.run_dir}",
            "24: trainer_config.run_dir: ${trainer_config.run_dir} leads back to itself",
        ),
        (
            "${trainer_config.lrr}",
            "24: trainer_config.run_dir: ${trainer_config.lrr} is no key; did you mean trainer_config.lr?",
        ),
        (
            "x${trainer_config.threads}",
            "24: trainer_config.run_dir: ${trainer_config.threads} is null; it cannot stand in text",
        ),
        (
            "${oc.env:HOME}",
            "24: trainer_config.run_dir: resolvers such as ${oc.env:HOME} are not supported; only ${group.key} is",
        ),
        (
            "${.lr}",
            "24: trainer_config.run_dir: relative interpolations such as ${.key} are not supported; write ${group.key}",
        ),
        (
            "${trainer_config.log_verbose}",
            "24: trainer_config.run_dir: expected text, found the boolean false; put it in quotes, on the command line as 'trainer_config.run_dir=\"false\"'",
        ),
    ] {
        assert_eq!(refused(&format!("trainer_config.run_dir={value}")), expected, "{value}");
    }
    let circle = try_load(&[
        "trainer_config.eval_interval=${trainer_config.snapshot_interval}",
        "trainer_config.snapshot_interval=${trainer_config.eval_interval}",
    ]);
    assert!(circle.unwrap_err().ends_with("${trainer_config.eval_interval} leads back to itself"));
}

#[test]
fn sweeps_combine_with_the_last_moving_fastest() {
    let texts = |overrides: &[&str]| {
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        sweep(&overrides)
            .map(|runs| runs.iter().map(|run| run.join(" ")).collect::<Vec<_>>())
            .map_err(|e| e.to_string())
    };
    assert_eq!(texts(&[]).unwrap(), [""]);
    assert_eq!(
        texts(&["a.x=1,2", "b=[1,2]", "+c='p,q', r "]).unwrap(),
        ["a.x=1 b=[1,2] +c='p,q'", "a.x=1 b=[1,2] +c=r", "a.x=2 b=[1,2] +c='p,q'", "a.x=2 b=[1,2] +c=r"]
    );
    assert!(texts(&["a=1,"]).unwrap_err().contains("a value is missing"));
    let many = vec!["0"; 101].join(",");
    let error = texts(&[&format!("a={many}"), &format!("b={many}")]).unwrap_err();
    assert_eq!(error, "the sweep has more than 10000 runs");
}

#[test]
fn a_key_that_was_taken_back_is_looked_for_where_that_was_done() {
    let of = |name: &str, overrides: &[&str]| {
        let overrides = overrides.iter().map(ToString::to_string).collect();
        load(&Request { name: Some(name.into()), path: None, overrides })
    };
    for taken in ["~data_config.data_path", "~data_config.data_path=RIW/small-coco"] {
        let error = of("coco_train", &[taken]).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("override '{taken}', column 2: data_config.data_path: ")),
            "{error}"
        );
    }
    let error = of("shapes", &["~trainer_config"]).unwrap_err().to_string();
    assert!(error.starts_with("override '~trainer_config', column 2: trainer_config.max_iters: "), "{error}");
    let shown = of("coco_train", &["~model_config.n_embd"]).unwrap().to_yaml_with_sources();
    assert!(
        shown.lines().any(|l| l.contains("n_embd: 128 ") && l.ends_with("# override ~model_config.n_embd")),
        "{shown}"
    );
    // What is set again afterwards is looked for there.
    let again =
        of("coco_train", &["~model_config.n_embd", "+model_config.n_embd=7"]).unwrap_err().to_string();
    assert!(again.contains("override '+model_config.n_embd=7'"), "{again}");
}

#[test]
fn a_key_that_is_set_twice_brings_one_line() {
    let notices = |overrides: &[&str]| {
        let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
        load_text("my.yaml", FILE, &overrides).unwrap().notices
    };
    let lr = |value| format!("trainer_config.lr={value}");
    let [one, two, three] = [1, 2, 3].map(lr);
    assert_eq!(
        notices(&[&one, "trainer_config.seed=1", &two]),
        ["trainer_config.lr is set more than once on the command line: trainer_config.lr=2 is taken, not \
          trainer_config.lr=1"]
    );
    assert!(
        notices(&[&one, &two, &three])[0]
            .ends_with("lr=3 is taken, not trainer_config.lr=1 or trainer_config.lr=2")
    );
    assert!(notices(&[&one, &one]).is_empty());
    assert!(notices(&[&one, "~trainer_config.lr"]).is_empty());
}
