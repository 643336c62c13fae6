#!/usr/bin/env bash
# A training step of the published model (256 text tokens, dropout 0.1, full optimiser step) here and in PyTorch, on the
# first GPU, in turn: median milliseconds, and the ratios. Writes benches/runs/<date>-<gpu>-<commit>/.
#
# usage: benches/vs_torch_gpu.sh [ROUNDS]
#   OCELLI=path      the binary (else it is built here)
#   PYTHON=path      a Python that has PyTorch with CUDA (else PyTorch comes from PyPI into an environment under the target)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
rounds=${1:-3} target=${CARGO_TARGET_DIR:-target}
if [ -z "${OCELLI:-}" ]; then
    cargo build --release --quiet -p ocelli
    OCELLI=$target/release/ocelli
fi
if [ -z "${PYTHON:-}" ]; then
    PYTHON=$target/vs-torch/bin/python
    "$PYTHON" -c 'import torch' 2>/dev/null || {
        python3 -m venv "$target/vs-torch"
        "$PYTHON" -m pip install --quiet --disable-pip-version-check torch numpy
    }
fi
commit=${COMMIT:-$(git log -1 --format=%h)}
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1 | tr ' ' '-')
out=${RUNS:-benches/runs}/$(date +%F)-$gpu-$commit
mkdir -p "$out"
here() { # NAME BATCH KEYS...
    local name=$1 batch=$2
    shift 2
    "$OCELLI" bench step --config-name csv_train --vocab 78 --length 256 --batch "$batch" --steps 200 --json \
        trainer_config.device=cuda trainer_config.cuda_graph=true trainer_config.compile=true "$@" 2>/dev/null |
        sed "s/^{/{\"who\": \"ocelli\", \"rung\": \"$name\", /" >>"$out/rounds.jsonl"
}
torch() { # RUNG BATCH
    "$PYTHON" benches/step_torch_gpu.py --batch "$2" --rungs "$1" | sed 's/^{/{"who": "torch", /' >>"$out/rounds.jsonl"
}
: >"$out/rounds.jsonl"
for _ in $(seq "$rounds"); do
    for batch in 64 16 512; do
        here bf16 "$batch" trainer_config.use_amp=true
        torch best "$batch"
    done
    here tf32 64 trainer_config.use_amp=false trainer_config.tf32=true
    torch tf32-graph 64
done
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader >"$out/gpu.txt"
"$PYTHON" - "$out" <<'PY' | tee "$out/table.txt"
import collections, json, statistics, sys
rows = collections.defaultdict(list)
for line in open(sys.argv[1] + "/rounds.jsonl"):
    r = json.loads(line)
    ms = r["ms"]["median"] if r["who"] == "ocelli" else r["ms"]
    rows[r["who"], r["rung"], r["batch"]].append(ms)
median = {k: statistics.median(v) for k, v in rows.items()}
print("| step | ocelli, ms | PyTorch, ms | ratio |\n|---|---|---|---|")
for mine, theirs, batch in [("bf16", "best", 64), ("bf16", "best", 16), ("bf16", "best", 512), ("tf32", "tf32-graph", 64)]:
    a, b = median["ocelli", mine, batch], median["torch", theirs, batch]
    print(f"| {mine}, batch {batch} | {a:.2f} | {b:.2f} ({theirs}) | {a / b:.2f} |")
PY
