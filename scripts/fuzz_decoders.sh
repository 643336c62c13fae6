#!/usr/bin/env bash
# Feeds every reader with 100,000 changed files and prints a summary; docs/fuzzing.md keeps the results.
# Overflow is checked, in a target folder of its own, so that no other build is disturbed.
# Arguments go to crates/data/examples/fuzz_decoders.rs: [--seed N] [--count N] [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/.."
date -u +%F
git rev-parse --short HEAD
export CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true
exec cargo run --release --quiet --target-dir "${CARGO_TARGET_DIR:-target}/fuzz" -p ocelli-data --example fuzz_decoders -- "$@"
