#!/usr/bin/env bash
# The whole job of the published recipe on the first GPU, by the clock of the wall, in turn: start, one epoch of 9,890 pictures with captions
# (640 x 480 JPEG in parquet, as the hub has them), validation of 320, a snapshot, the end. Here without and with a cache of decoded
# pictures (kernels were compiled and products measured before), and in PyTorch with 4 workers, as the recipe is and at its
# fastest. Writes benches/runs/<date>-<gpu>-<commit>/job.jsonl and job.txt.
#
# usage: benches/job_vs_torch_gpu.sh [ROUNDS]
#   OCELLI, PYTHON, COMMIT, RUNS as for vs_torch_gpu.sh; PYTHON needs numpy, pillow and pyarrow too
#   DATA=folder      the data set (else it is made there or in a temporary folder: 640 MB)
#   TORCH=no         PyTorch is left out
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD rounds=${1:-3} target=${CARGO_TARGET_DIR:-target} PYTHON=${PYTHON:-python3}
if [ -z "${OCELLI:-}" ]; then
    cargo build --release --quiet -p ocelli
    OCELLI=$target/release/ocelli
fi
OCELLI=$(realpath "$OCELLI")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
DATA=${DATA:-$work/data}
[ -d "$DATA/data" ] || "$PYTHON" scripts/make_coco_like.py "$DATA" >/dev/null
commit=${COMMIT:-$(git log -1 --format=%h)}
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1 | tr ' ' '-')
out=$(realpath -m "${RUNS:-benches/runs}/$(date +%F)-$gpu-$commit")
mkdir -p "$out"
: >"$out/job.jsonl"
# What was compiled and measured stays between rounds; decoded pictures are for one round.
kept=$work/kept
job() { # NAME COMMAND...
    local name=$1 begin end
    shift
    rm -rf "$work/run"
    mkdir "$work/run"
    begin=$(date +%s%N)
    (cd "$work/run" && "$@" >"$work/said" 2>&1) || { cat "$work/said" && exit 1; }
    end=$(date +%s%N)
    printf '{"job": "%s", "seconds": %s.%03d}\n' "$name" $(((end - begin) / 1000000000)) $(((end - begin) / 1000000 % 1000)) |
        tee -a "$out/job.jsonl"
}
here() {
    job "$1" env XDG_CACHE_HOME="$kept" "$OCELLI" train --config-name coco_train "data_config.data_path=$DATA" data_config.image_col=image \
        data_config.vocab_path=auto trainer_config.device=cuda trainer_config.compile=true trainer_config.cuda_graph=true \
        trainer_config.log_verbose=false "${@:2}"
    grep -o 'step 155/155.*' "$work/said" | sed 's/^/    /' || true
}
here "first of all" data_config.cache=off
for _ in $(seq "$rounds"); do
    rm -rf "$kept/ocelli/data"
    here cold
    here warm
    [ "${TORCH:-yes}" = no ] && continue
    job torch-recipe "$PYTHON" "$root/benches/job_torch.py" "$DATA" --workers 4
    job torch-best "$PYTHON" "$root/benches/job_torch.py" "$DATA" --workers 4 --best
done
"$PYTHON" - "$out/job.jsonl" <<'PY' | tee "$out/job.txt"
import collections, json, statistics, sys
rows = collections.defaultdict(list)
for line in open(sys.argv[1]):
    r = json.loads(line)
    rows[r["job"]].append(r["seconds"])
for name, seconds in rows.items():
    print(f"{name}: {statistics.median(seconds):.2f} s (of {', '.join(f'{s:.2f}' for s in seconds)})")
PY
