#!/usr/bin/env bash
# A training step of the published model (batch 16, 64 text tokens, f32) here and in PyTorch eager, in turn, on the same
# cores: prints each round, and at the end the ratios of the medians of time and of peak memory.
# PyTorch comes from PyPI into a virtual environment under the target folder. usage: benches/vs_torch_cpu.sh [ROUNDS]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
rounds=${1:-5} batch=16 length=64 threads=$(nproc)
target=${CARGO_TARGET_DIR:-target}
venv="$target/vs-torch"
[ -x "$venv/bin/python" ] && "$venv/bin/python" -c 'import torch' 2>/dev/null || {
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check torch numpy
}
cargo build --release --quiet
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for round in $(seq "$rounds"); do
    ocelli=$("$target/release/ocelli" bench step --config-name csv_train --vocab 78 --batch "$batch" --length "$length" \
        --steps 20 --json trainer_config.threads="$threads")
    torch=$("$venv/bin/python" benches/step_torch.py --batch "$batch" --length "$length" --threads "$threads")
    echo "{\"ocelli\": $ocelli, \"torch\": $torch}" >>"$log"
    echo "round $round: $(tail -1 "$log" | python3 -c '
import json, sys
r = json.load(sys.stdin)
print(" ".join("%s %.1f ms, %d MB;" % (k, v["ms"]["median"], v["peak_memory_bytes"] / 1e6) for k, v in r.items()))')"
done
python3 - "$log" <<'PY'
import json, platform, statistics, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
of = lambda who, f: statistics.median(f(r[who]) for r in rows)
time = [of(who, lambda v: v["ms"]["median"]) for who in ("ocelli", "torch")]
memory = [of(who, lambda v: v["peak_memory_bytes"]) / 1e6 for who in ("ocelli", "torch")]
print(f"median of {len(rows)} rounds: {time[0]:.1f} ms against {time[1]:.1f} ms in PyTorch {rows[0]['torch']['torch']}, "
      f"ratio {time[0] / time[1]:.2f}; memory {memory[0]:.0f} MB against {memory[1]:.0f} MB, ratio {memory[0] / memory[1]:.2f}")
print(f"machine: {platform.processor() or platform.machine()}; plan: {rows[0]['ocelli']['step']}")
PY
