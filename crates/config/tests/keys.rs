//! The list of keys is frozen: a key that goes, changes its type, range or default, or comes new, shows in the
//! diff of `keys.txt`. After a wanted change: `UPDATE_KEYS=1 cargo test -p ocelli-config --test keys`.

use ocelli_config::{Config, GROUPS, KEYS, Kind, Status, all_help, help, load_text};

const FROZEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/keys.txt");

#[test]
fn the_list_of_keys_is_frozen() {
    let now = all_help();
    if std::env::var_os("UPDATE_KEYS").is_some() {
        std::fs::write(FROZEN, &now).unwrap();
    }
    let frozen = std::fs::read_to_string(FROZEN).unwrap();
    let changed: Vec<(&str, &str)> =
        frozen.lines().zip(now.lines()).filter(|(a, b)| a != b).take(3).collect();
    assert!(frozen == now, "keys changed; first differences (frozen, now): {changed:#?}");
}

#[test]
fn table_and_structs_have_the_same_keys() {
    let json: serde_json::Value = serde_json::from_str(&Config::default().to_json()).unwrap();
    let mut of_structs: Vec<String> = Vec::new();
    for (group, keys) in json.as_object().unwrap() {
        of_structs.extend(keys.as_object().unwrap().keys().map(|key| format!("{group}.{key}")));
    }
    let mut of_table: Vec<String> = KEYS.iter().map(|key| key.path.to_owned()).collect();
    of_structs.sort();
    of_table.sort();
    assert_eq!(of_table, of_structs);
    assert!(KEYS.iter().all(|key| GROUPS.contains(&key.group())));
}

/// Every value that the table calls good is taken by the structs, so the two agree on types, words and nulls.
#[test]
fn the_structs_take_what_the_table_allows() {
    for key in KEYS {
        let mut values: Vec<String> = match key.kind {
            Kind::Bool => vec!["true".into(), "false".into()],
            Kind::Switch => vec!["true".into(), "false".into(), "auto".into()],
            Kind::Int { min, max } => vec![min.to_string(), max.to_string()],
            Kind::AutoOrInt { max } => vec!["auto".into(), "0".into(), max.to_string()],
            Kind::Float(_) => vec!["0.5".into(), "1e-5".into()],
            Kind::Text | Kind::AnyText => vec!["x".into(), "'null'".into()],
            Kind::Choice(words) => words.iter().map(|word| (*word).into()).collect(),
            Kind::LatestOrEpoch => vec!["latest".into(), "0".into(), "12".into()],
        };
        values.extend(key.nullable.then(|| "null".into()));
        for value in values {
            let result = load_text("test.yaml", "", &[format!("{}={value}", key.path)]);
            // Single values may not go together with the others; their types must fit all the same.
            let text = result.err().map(|e| e.to_string()).unwrap_or_default();
            let kinds = ["does not fit its types", "expected", "must be"];
            assert!(!kinds.iter().any(|kind| text.contains(kind)), "{}={value}: {text}", key.path);
        }
        if !key.nullable {
            let error = load_text("test.yaml", "", &[format!("{}=null", key.path)]).unwrap_err();
            assert!(error.to_string().contains("found null"), "{}: {error}", key.path);
        }
    }
}

#[test]
fn defaults_alone_are_valid_and_complete() {
    let resolved = load_text("empty.yaml", "", &[]).unwrap();
    assert_eq!(resolved.config, Config::default());
    assert!(resolved.notices.is_empty() && resolved.missing.is_empty());
    Config::default().validate().unwrap();
}

#[test]
fn every_key_has_help() {
    for key in KEYS {
        let text = help(key.path).unwrap();
        assert!(text.contains(key.path) && text.contains("default"), "{text}");
        assert!(key.help.len() > 10 && key.help.ends_with('.') && !key.help.contains('\n'), "{}", key.path);
        if let Status::Only(ready) = key.status {
            assert!(text.contains(ready[0]), "{text}");
        }
    }
    assert_eq!(help("lr"), help("trainer_config.lr"));
    assert!(help("model_config").unwrap().contains("model_config.n_embd"));
    assert_eq!(help("nonsense"), None);
}
