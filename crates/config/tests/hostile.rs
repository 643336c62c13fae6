//! Whatever is typed or stored, loading ends with a value or a message: no panic, no hang, no control
//! characters on the terminal; and whatever is accepted prints and stores to the same value again.

use ocelli_config::{Config, literal, load_text, sweep};
use proptest::prelude::*;

/// Pieces of the grammar in any order: reaches deeper than random characters.
fn override_like() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("trainer_config.lr".to_owned()),
        Just("data_config.data_path".to_owned()),
        Just("model_config".to_owned()),
        Just("${trainer_config.run_dir}".to_owned()),
        Just("${data_config.data_path}".to_owned()),
        prop::sample::select(vec!["=", "+", "++", "~", "[", "]", ",", "'", "\"", "\\", "${", "}", "{", "("])
            .prop_map(str::to_owned),
        prop::sample::select(vec!["null", "1e-3", "true", " ", "é", "\n", "\u{1b}[31m", "1_0", "-"])
            .prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn yaml_like() -> impl Strategy<Value = String> {
    let pieces = vec![
        "model_config:\n",
        "data_config:\n",
        "trainer_config:\n",
        "  ",
        "lr: ",
        "n_embd: ",
        "data_path: ",
        "- ",
        "[",
        "]",
        "{",
        "}",
        "&a ",
        "*a",
        "!!int ",
        "<<: ",
        "---\n",
        "...\n",
        "? ",
        ": ",
        "|\n",
        ">-\n",
        "\"",
        "'",
        "null\n",
        "1\n",
        "0.5\n",
        "${trainer_config.lr}\n",
        "\t",
        "# c\n",
        "%YAML 1.2\n",
        "é\n",
        "\u{feff}",
        "\0",
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..24).prop_map(|pieces| pieces.concat())
}

fn one_line_each(message: &str) -> bool {
    message.lines().all(|line| !line.chars().any(char::is_control))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn overrides_never_panic(overrides in prop::collection::vec(override_like(), 0..4)) {
        match load_text("t.yaml", "", &overrides) {
            Ok(resolved) => {
                let again = load_text("u.yaml", &resolved.to_yaml_with_sources(), &[]).unwrap();
                prop_assert_eq!(again.config, resolved.config);
            }
            Err(error) => prop_assert!(one_line_each(&error.to_string()), "{}", error),
        }
        let _ = sweep(&overrides);
    }

    #[test]
    fn files_never_panic(text in yaml_like()) {
        if let Err(error) = load_text("t.yaml", &text, &[]) {
            prop_assert!(one_line_each(&error.to_string()), "{}", error);
        }
    }

    #[test]
    fn any_text_never_panics(text in any::<String>(), json in any::<String>()) {
        let _ = load_text("t.yaml", &text, std::slice::from_ref(&json));
        let _ = Config::from_json(&json);
    }

    /// Text, numbers and the seed come back exactly, from YAML and from JSON.
    #[test]
    fn accepted_values_come_back(
        path in "[^\\p{Cc}]{1,40}",
        slashes in "[\\\\$\\{\\}]{1,8}",
        lr in 1e-37..1e38f64,
        seed in any::<u64>(),
    ) {
        let mut config = Config::default();
        (config.data.dataset, config.data.data_path) = (ocelli_config::Dataset::Csv, Some(path));
        config.trainer.wandb_project = slashes;
        config.trainer.lr = lr;
        config.trainer.seed = seed;
        prop_assert_eq!(&Config::from_json(&config.to_json()).unwrap(), &config);
        let mut resolved = load_text("t.yaml", "", &[]).unwrap();
        resolved.config = config.clone();
        prop_assert_eq!(load_text("u.yaml", &resolved.to_yaml(), &[]).unwrap().config, config);
    }
}

proptest! {
    #[test]
    fn literal_text_is_read_as_itself(any in "[^\\p{Cc}]{1,20}", odd in "[\\\\$\\{\\}'\",= a]{0,12}") {
        let path = odd + &any;
        let overrides = ["data_config.dataset=csv".to_owned(), literal("data_config.data_path", &path)];
        prop_assert_eq!(load_text("t.yaml", "", &overrides).unwrap().config.data.data_path, Some(path));
        prop_assert_eq!(sweep(&overrides).unwrap(), [overrides]);
    }
}

#[test]
fn deep_and_long_input_ends() {
    for text in ["[".repeat(100_000), "{a: ".repeat(100_000), "- ".repeat(100_000)] {
        assert!(load_text("t.yaml", &text, &[]).is_err());
    }
    assert!(load_text("t.yaml", "", &[format!("trainer_config.lr={}", "[".repeat(100_000))]).is_err());
    assert!(Config::from_json(&"[".repeat(100_000)).is_err());
}

#[test]
fn interpolation_cannot_grow_without_bound() {
    let texts = ["run_dir", "snapshot_dir", "wandb_project", "profile_results_dir"];
    let mut overrides: Vec<String> = texts
        .windows(2)
        .map(|pair| {
            format!("trainer_config.{}={}", pair[0], format!("${{trainer_config.{}}}", pair[1]).repeat(50))
        })
        .collect();
    overrides.push(format!("trainer_config.profile_results_dir={}", "x".repeat(4000)));
    let error = load_text("t.yaml", "", &overrides).unwrap_err().to_string();
    assert!(error.contains("the text becomes too long"), "{error}");
}
