#!/usr/bin/env bash
# On a machine with a CUDA device: builds the preset cuda, runs the device's tests on it, the same under
# compute-sanitizer, and times training steps. All parts are run whatever fails; the last line says what did.
# Usage: scripts/gpu-check.sh [--no-build] [FOLDER of a CUDA toolkit]
set -uo pipefail
cd "$(dirname "$0")/.."
build=1
if [ "${1:-}" = --no-build ]; then
  build=0
  shift
fi
root=${1:-}
if ! nvidia-smi -L; then
  echo "scripts/gpu-check.sh: no CUDA device here" >&2
  exit 1
fi
bin=build/cuda/bin logs=build/cuda/check
if [ $build = 1 ]; then
  cmake --preset cuda ${root:+-DLRA_CUDA_ROOT="$root"} &&
    cmake --build --preset cuda --target device_cuda_test golden_cuda_test lra-listops lra-bench || exit 1
fi
mkdir -p $logs

failed=()
# part NAME SECONDS COMMAND…: its output goes to a file, the end of it here where it fails. A test that is skipped (exit
# code 77) has failed too: there is a device.
part() {
  local name=$1 seconds=$2
  shift 2
  if timeout "$seconds" "$@" >"$logs/$name.log" 2>&1; then
    echo "$name: passed"
  else
    echo "$name: FAILED (exit code $?), $logs/$name.log ends with:"
    tail -20 "$logs/$name.log"
    failed+=("$name")
  fi
}

for test in device golden; do
  part $test 300 $bin/${test}_cuda_test
  # Says which kernel it was.
  [[ " ${failed[*]} " != *" $test "* ]] || part $test-one-kernel-at-a-time 300 env CUDA_LAUNCH_BLOCKING=1 $bin/${test}_cuda_test
done
filter='DeviceAttention.Fused*:DeviceOps.*:*softmax:*polynomial:*elu_causal*:*favor*:*nystrom*:*linformer*:*inline_conv*:*oscarmax*'
if command -v compute-sanitizer >/dev/null; then
  # racecheck sees the kernels' shared memory alone (lib/device/fused.cu and the sums of lib/device/team.h).
  for tool in memcheck racecheck initcheck synccheck; do
    part $tool 600 env LRA_EXACT_SCRATCH=1 compute-sanitizer --tool $tool --error-exitcode 9 $bin/device_cuda_test \
      --gtest_filter="$filter"
  done
else
  echo "SKIPPED: compute-sanitizer is not in PATH"
fi
for attention in softmax polynomial; do
  for backend in cuda cpu; do
    rm -rf $logs/$attention-$backend
    part listops-$attention-$backend 600 $bin/lra-listops --attention $attention --recipe nystromformer --steps 50 \
      --limit-train 1600 --limit-eval 320 --log-every 1 --backend $backend --progress plain --out $logs/$attention-$backend
  done
  part losses-$attention 60 python3 - $logs/$attention-{cuda,cpu}/metrics.jsonl <<'EOF'
import json, sys
runs = [[row["loss"] for row in map(json.loads, open(path)) if row["split"] == "train"] for path in sys.argv[1:]]
apart = max(abs(a - b) for a, b in zip(*runs, strict=True))
print(f"{len(runs[0])} losses differ by {apart:.1e} at most")
sys.exit(len(runs[0]) < 50 or apart > 1e-4)
EOF
done
if python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
  benchmarks/gpu.py --programs $bin || failed+=(gpu.py)
else
  echo "SKIPPED: no PyTorch with CUDA to compare with; steps of ours alone:"
  for task in listops text retrieval image pathfinder; do
    for precision in float32 bfloat16; do
      $bin/lra-bench train --backend cuda --task $task --precision $precision --batch-size 32 || failed+=("bench $task $precision")
    done
  done
fi
if [ ${#failed[@]} -gt 0 ]; then
  echo "scripts/gpu-check.sh: failed: ${failed[*]}" >&2
  exit 1
fi
echo "scripts/gpu-check.sh: all passed"
