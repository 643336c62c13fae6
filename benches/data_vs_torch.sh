#!/usr/bin/env bash
# Images a second from the same parquet files here and by PyTorch's DataLoader with two workers, in turn, on the same cores: prints
# each round, and at the end the ratios of the medians: first epoch, second epoch, and with libjpeg-turbo if it can be built.
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
cp "$target/release/ocelli" "$set_of/ocelli"
turbo=
if cargo build --release --quiet --features turbojpeg 2>/dev/null; then
    turbo="$set_of/ocelli-turbo"
    cp "$target/release/ocelli" "$turbo"
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
here() { "$1" bench data "$set_of" --epochs 2 --json data_config.num_workers="$workers"; }
for round in $(seq "$rounds"); do
    torch=$("$venv/bin/python" benches/loader_torch.py "$set_of" --workers "$workers" --epochs 2 | paste -sd,)
    echo "{\"torch\": [$torch], \"here\": $(here "$set_of/ocelli"), \"turbo\": $([ "$turbo" ] && here "$turbo" || echo null)}" >>"$log"
    echo "round $round: $(tail -1 "$log" | python3 -c '
import json, sys
r = json.load(sys.stdin)
rates = lambda epochs: "%.0f, %.0f" % tuple(e["images_per_s"] for e in epochs)
turbo = "; with libjpeg-turbo " + rates(r["turbo"]["epochs"]) if r["turbo"] else ""
print("images/s of two epochs: here %s; PyTorch %s%s" % (rates(r["here"]["epochs"]), rates(r["torch"]), turbo))')"
done
python3 - "$log" <<'PY'
import json, statistics, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
def median(who, epoch):
    epochs = lambda r: r[who] if who == "torch" else r[who]["epochs"]
    return statistics.median(epochs(r)[epoch]["images_per_s"] for r in rows)
for who in ("here", "turbo"):
    if not rows[0][who]:
        print("with libjpeg-turbo: not built here (it needs cmake and a C compiler)")
        continue
    for epoch, name in enumerate(("first", "second")):
        ours, theirs = median(who, epoch), median("torch", epoch)
        print(f"{who}, {name} epoch, median of {len(rows)} rounds: {ours:.0f} images/s against {theirs:.0f}, ratio {ours / theirs:.2f}")
    stages = rows[0][who]["epochs"][0]["stages"]
    for stage in stages:
        each = statistics.median(r[who]["epochs"][0]["stages"][stage]["images_per_s_a_thread"] for r in rows)
        print(f"  {stage}: {each:.0f} images/s a thread")
PY
