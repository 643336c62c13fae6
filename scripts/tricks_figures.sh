#!/usr/bin/env bash
# Fills the figures of docs/tricks.md from the committed ladders, docs/gpu/ladder-*.json.
#
# On the machine to measure (with a GPU: one to two minutes on an H200):
#   ocelli bench ladder --config-name csv_train --vocab 78 --batch 64 --length 256 --out ladder trainer_config.device=cuda
# then here:
#   scripts/tricks_figures.sh ladder       # takes that folder's ladder into docs/gpu, named by its machine, and fills
#   scripts/tricks_figures.sh              # only fills
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." && root=$PWD && cd "$OLDPWD"
if [ -n "${1:-}" ]; then
    machine=$(sed -n '/"machine": {/,/}/s/.*"name": "\(.*\)",\{0,1\}$/\1/p' "$1/ladder.json" | tr 'A-Z' 'a-z' | tr -cs 'a-z0-9\n' '-')
    cp "$1/ladder.json" "$root/docs/gpu/ladder-$machine.json"
    cp "$1/ladder.html" "$root/docs/gpu/ladder-$machine.html"
    echo "docs/gpu/ladder-$machine.json"
fi
cd "$root"
UPDATE_TRICKS=1 cargo test --release --quiet -p ocelli --test tricks
git diff --stat -- docs/tricks.md
