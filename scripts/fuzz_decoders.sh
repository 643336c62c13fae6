#!/usr/bin/env bash
# Feeds every reader with 100,000 changed files and prints a summary; docs/fuzzing.md keeps the results.
# Arguments go to crates/data/examples/fuzz_decoders.rs: [--seed N] [--count N] [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/.."
date -u +%F
git rev-parse --short HEAD
exec cargo run --release --quiet -p ocelli-data --example fuzz_decoders -- "$@"
