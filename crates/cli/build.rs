//! Tells the program which commit it is built from, if its folder is one of git's: for records of measurements.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=OCELLI_COMMIT");
    // Each commit and each change of branch adds a line there.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|p| Path::new(p).exists()) {
        println!("cargo::rerun-if-changed={log}");
    }
    let tracked = || git(&["ls-files", "--error-unmatch", "build.rs"]);
    let given = std::env::var("OCELLI_COMMIT").ok();
    let commit = given.or_else(|| tracked().and_then(|_| git(&["rev-parse", "--short=7", "HEAD"])));
    println!("cargo::rustc-env=OCELLI_COMMIT={}", commit.unwrap_or_default());
}

/// What git says, if it is there and content.
fn git(args: &[&str]) -> Option<String> {
    let done = Command::new("git").args(args).output().ok().filter(|o| o.status.success())?;
    Some(String::from_utf8(done.stdout).ok()?.trim().to_string())
}
