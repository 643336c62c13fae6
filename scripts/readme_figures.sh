#!/usr/bin/env bash
# Measures every figure of the README anew: goldens (with the published size, if PyTorch can be imported), the default
# run, smol's and the long one. Takes about a quarter of an hour on two cores. Runs go to a temporary folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "commit $(git rev-parse --short HEAD), $(nproc) cores, $(grep -m1 'model name' /proc/cpuinfo || true)"
if python3 -c 'import torch, safetensors' 2>/dev/null; then
    python3 scripts/make_golden.py "$work/golden"
    export OCELLI_GOLDEN_DIR="$work/golden"
else
    echo "without PyTorch: the goldens of the repository only"
fi
cargo test --release -p ocelli-train --test golden_cpu -- --nocapture | grep '^golden'
cargo build --release
for preset in shapes shapes_smol shapes_long; do
    (cd "$work" && time "$OLDPWD/${CARGO_TARGET_DIR:-target}/release/ocelli" train --config-name $preset) |
        grep -E '^(attributes|Validation|done)'
done
