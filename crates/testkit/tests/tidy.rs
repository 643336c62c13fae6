//! The habits that a machine can check: headers, sizes, no unfinished code, and documents that tell the truth.
//!
//! Invariant: each check is a function over text, and `the_checks_can_fail` shows it to find what it looks for.
use std::{
    fs,
    path::{Path, PathBuf},
};

const MAX_LINES: usize = 600;
/// Endings by which a quoted word in a document is taken for a file of the project.
const FILE_ENDINGS: [&str; 9] = [".rs", ".md", ".toml", ".yaml", ".py", ".sh", ".csv", ".txt", ".cu"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf()
}

/// All Rust files under `dir`, build outputs left out.
fn rust_files(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
}

/// What is untidy in a Rust file's text.
fn untidy(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if !text.starts_with("//! ") {
        found.push("does not begin with a `//!` line that says what it is".to_string());
    }
    let lines = text.lines().count();
    if lines > MAX_LINES {
        found.push(format!("has {lines} lines, more than {MAX_LINES}: split it"));
    }
    // In two parts, or this file would find itself.
    for macro_name in ["todo", "unimplemented", "dbg"] {
        if text.contains(&format!("{macro_name}!{}", '(')) {
            found.push(format!("contains `{macro_name}!`"));
        }
    }
    found
}

/// The files that a document names between backticks. Patterns such as `ops/<op>.rs` or `*.rs` name no single file.
fn named_files(document: &str) -> Vec<&str> {
    let quoted = document.split('`').skip(1).step_by(2);
    quoted
        .filter(|word| FILE_ENDINGS.iter().any(|ending| word.ends_with(ending)))
        .filter(|word| !word.starts_with('.') || word.starts_with(".ci/"))
        .filter(|word| word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c)))
        .collect()
}

#[test]
fn every_rust_file_is_tidy() {
    let mut files = Vec::new();
    rust_files(&root().join("crates"), &mut files);
    assert!(files.len() > 20, "only {} files found", files.len());
    let mut complaints = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        complaints.extend(untidy(&text).into_iter().map(|what| format!("{}: {what}", file.display())));
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// The names of the models: what stands beside the layers in `crates/models/src`.
fn model_names() -> Vec<String> {
    let names = fs::read_dir(root().join("crates/models/src")).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        path.file_stem().unwrap().to_string_lossy().into_owned()
    });
    names.filter(|name| !["lib", "nn", "shapes"].contains(&name.as_str())).collect()
}

/// The lines of a file that name a model, whatever the case of the letters.
fn naming<'a>(text: &'a str, names: &[String]) -> Vec<&'a str> {
    let named = |line: &&str| names.iter().any(|name| line.to_lowercase().contains(name));
    text.lines().filter(named).collect()
}

#[test]
fn no_op_pass_or_kernel_knows_a_model() {
    let names = model_names();
    assert!(names.contains(&"seemore".into()) && names.len() > 2, "{names:?}");
    let mut files = Vec::new();
    for name in ["ir", "passes", "cpu"] {
        rust_files(&root().join("crates").join(name), &mut files);
        files.push(root().join("crates").join(name).join("Cargo.toml"));
    }
    let mut complaints = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let found = naming(&text, &names).into_iter().map(|line| format!("{}: {line}", file.display()));
        complaints.extend(found);
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn the_map_names_files_that_exist() {
    let path = root().join("ARCHITECTURE.md");
    let Ok(text) = fs::read_to_string(&path) else { return };
    // The map may speak of a crate's files without the folder that holds all crates.
    let exists = |name: &str| [root(), root().join("crates")].iter().any(|base| base.join(name).exists());
    let missing: Vec<&str> = named_files(&text).into_iter().filter(|name| !exists(name)).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names files that do not exist: {missing:?}");
}

#[test]
fn the_readme_and_the_checks_run_the_same_tests() {
    let Ok(readme) = fs::read_to_string(root().join("README.md")) else { return };
    let script = fs::read_to_string(root().join(".ci/run")).unwrap();
    let command = "cargo test --workspace --release";
    assert!(script.contains(command), ".ci/run does not run `{command}`");
    assert!(readme.contains(command), "README.md does not name `{command}`");
}

#[test]
fn the_checks_can_fail() {
    assert!(untidy("//! Fine.\nfn f() {}\n").is_empty());
    let bad = format!("fn f() {{ todo!{}) }}\n", '(') + &"\n".repeat(MAX_LINES);
    assert_eq!(untidy(&bad).len(), 3);
    assert_eq!(naming("a decoder\nof a SeeMore kind", &["seemore".into()]), ["of a SeeMore kind"]);
    let text = "`ir/src/lib.rs`, `ops/<op>.rs`, `*.rs`, `.rs`, `a b.md`, `train`, `CHANGELOG.md`";
    assert_eq!(named_files(text), ["ir/src/lib.rs", "CHANGELOG.md"]);
}
