#!/usr/bin/env bash
# Images a second from the same parquet files here and by PyTorch's DataLoader with two workers, in turn, on the same cores: prints
# each round, and at the end the ratios of the medians, of the first and of the second epoch.
# PyTorch and others come from PyPI into a virtual environment under the target folder. usage: benches/data_vs_torch.sh [ROUNDS [IMAGES]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
rounds=${1:-5} images=${2:-1500} workers=2
target=${CARGO_TARGET_DIR:-target}
venv=${VENV:-$target/vs-torch}
[ -x "$venv/bin/python" ] && "$venv/bin/python" -c 'import torch, PIL, pyarrow' 2>/dev/null || {
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check torch numpy pillow pyarrow
}
set_of="$target/data-vs-torch-$images"
[ -d "$set_of/data" ] || "$venv/bin/python" scripts/make_coco_like.py "$set_of" --train "$images" --validation 40
cargo build --release --quiet
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for round in $(seq "$rounds"); do
    torch=$("$venv/bin/python" benches/loader_torch.py "$set_of" --workers "$workers" --epochs 2 | paste -sd,)
    here=$("$target/release/ocelli" bench data "$set_of" --epochs 2 --json data_config.num_workers="$workers")
    echo "{\"torch\": [$torch], \"here\": $here}" >>"$log"
    echo "round $round: $(tail -1 "$log" | python3 -c '
import json, sys
r = json.load(sys.stdin)
rates = lambda epochs: "%.0f, %.0f" % tuple(e["images_per_s"] for e in epochs)
print("images/s of two epochs: here %s; PyTorch %s" % (rates(r["here"]["epochs"]), rates(r["torch"])))')"
done
python3 - "$log" <<'PY'
import json, statistics, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
def median(who, epoch):
    epochs = lambda r: r[who] if who == "torch" else r[who]["epochs"]
    return statistics.median(epochs(r)[epoch]["images_per_s"] for r in rows)
for epoch, name in enumerate(("first", "second")):
    ours, theirs = median("here", epoch), median("torch", epoch)
    print(f"{name} epoch, median of {len(rows)} rounds: {ours:.0f} images/s against {theirs:.0f}, ratio {ours / theirs:.2f}")
cached = statistics.median(r["here"]["epochs"][3]["images_per_s"] for r in rows)
print(f"from a cache: {cached:.0f} images/s, {cached / median('torch', 1):.0f} times PyTorch's second epoch")
for stage in rows[0]["here"]["epochs"][0]["stages"]:
    each = statistics.median(r["here"]["epochs"][0]["stages"][stage]["images_per_s_a_thread"] for r in rows)
    print(f"  {stage}: {each:.0f} images/s a thread in the first epoch")
PY
