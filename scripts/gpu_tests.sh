#!/usr/bin/env bash
# The tests that need an NVIDIA GPU, built on one machine and run on another.
#
#   scripts/gpu_tests.sh pack FOLDER   builds the tests and `ocelli`, stripped, into FOLDER, with the files that they read
#   FOLDER/run.sh [OUT]                on the GPU machine: runs them all; the last line is the sum. OUT keeps the whole output
#   FOLDER/sanitize.sh [OUT]           there: the subset below under compute-sanitizer's memcheck and racecheck
#
# Where the GPU is in the machine that builds: `scripts/gpu_tests.sh here`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-target}
tests=(
    registry
    attention
    fused
    autotune
    flash_attention
    prefetch
    overlap
    golden_cuda
    curve_cuda
    bad_steps
    late_metrics
    memory
)

pack() {
    mkdir -p "$1"
    local to built
    to=$(cd "$1" && pwd)
    cargo build --release -p ocelli
    built=$(cargo test --release --no-run --message-format short -p ocelli-cuda -p ocelli-train \
        "${tests[@]/#/--test=}" 2>&1 | tee /dev/stderr | sed -n 's/.*Executable.*(\(.*\))/\1/p')
    for test in $built; do
        strip -o "$to/$(basename "$test" | sed 's/-[0-9a-f]*$//').test" "$test"
    done
    strip -o "$to/ocelli" "$target/release/ocelli"
    mkdir -p "$to/testkit"
    cp -r crates/testkit/golden crates/testkit/golden_ops "$to/testkit/"
    cp scripts/make_golden.py scripts/make_curve.py scripts/seemore_torch.py "$to/"
    git log -1 --format=%h >"$to/commit"
    cat >"$to/run.sh" <<'RUN'
#!/usr/bin/env bash
# Runs all GPU tests of this folder.
cd "$(dirname "${BASH_SOURCE[0]}")"
out=${1:-/dev/null}
export OCELLI_NEEDS_GPU=1 OCELLI_TESTKIT=$PWD/testkit
{
    echo "commit $(cat commit)"
    ./ocelli doctor
    # With PyTorch at hand also the golden of published size and a training curve, which are too large to be kept.
    if python3 -c 'import torch, safetensors' 2>/dev/null; then
        made=$(mktemp -d)
        trap 'rm -rf "$made"' EXIT
        python3 make_golden.py "$made/golden" && export OCELLI_GOLDEN_DIR=$made/golden
        python3 make_curve.py "$made/curve.safetensors" && export OCELLI_CURVE=$made/curve.safetensors
    fi
    passed=0 failed=0
    for test in ./*.test; do
        echo "== $test"
        if "$test" --nocapture 2>&1; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    done
    echo "$passed passed, $failed failed"
    [ "$failed" = 0 ]
} | tee "$out"
exit "${PIPESTATUS[0]}"
RUN
    cat >"$to/sanitize.sh" <<'RUN'
#!/usr/bin/env bash
# The goldens (tiny and odd: f32, TF32, bf16; a whole training step, launch by launch and as a graph) and the fused kernels at
# sizes that no tile divides, under compute-sanitizer. Any finding fails.
cd "$(dirname "${BASH_SOURCE[0]}")"
out=${1:-/dev/null}
export OCELLI_NEEDS_GPU=1 OCELLI_TESTKIT=$PWD/testkit
{
    echo "commit $(cat commit)"
    failed=0
    for tool in memcheck racecheck; do
        for test in golden_cuda fused; do
            echo "== $tool $test"
            compute-sanitizer --tool $tool --error-exitcode 9 "./$test.test" 2>&1 | tail -15
            [ "${PIPESTATUS[0]}" = 0 ] || failed=$((failed + 1))
        done
    done
    echo "sanitizer: $failed of 4 failed"
    [ "$failed" = 0 ]
} | tee "$out"
exit "${PIPESTATUS[0]}"
RUN
    chmod +x "$to/run.sh" "$to/sanitize.sh"
}

case ${1:-} in
pack) pack "${2:?a folder}" ;;
here)
    pack "$target/gpu-tests"
    "$target/gpu-tests/run.sh"
    ;;
*) sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit 2 ;;
esac
