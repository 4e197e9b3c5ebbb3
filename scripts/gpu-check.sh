#!/usr/bin/env bash
# On a machine with a CUDA device: builds the preset cuda, runs the device's tests on it, the same under
# compute-sanitizer, and times training steps. Usage: scripts/gpu-check.sh [FOLDER of a CUDA toolkit]
set -euo pipefail
cd "$(dirname "$0")/.."
root=${1:-}
if ! nvidia-smi -L; then
  echo "scripts/gpu-check.sh: no CUDA device here" >&2
  exit 1
fi
cmake --preset cuda ${root:+-DLRA_CUDA_ROOT="$root"}
cmake --build --preset cuda --target device_cuda_test golden_cuda_test lra-listops lra-bench
ctest --preset cuda -L '^gpu$'
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck initcheck synccheck; do
    compute-sanitizer --tool "$tool" --error-exitcode 9 build/cuda/bin/device_cuda_test \
      --gtest_filter='DeviceAttention.Fused*:DeviceOps.*:*softmax:*polynomial:*elu_causal*:*favor*:*nystrom*:*linformer*:*inline_conv*:*oscarmax*' >"build/cuda/$tool.log" 2>&1 ||
      { tail -20 "build/cuda/$tool.log"; echo "scripts/gpu-check.sh: $tool found errors: build/cuda/$tool.log" >&2; exit 1; }
    echo "$tool: no errors"
  done
else
  echo "SKIPPED: compute-sanitizer is not in PATH"
fi
for attention in softmax polynomial; do
  rm -rf build/cuda/check-run
  build/cuda/bin/lra-listops --attention "$attention" --recipe nystromformer --steps 100 --limit-train 3200 \
    --limit-eval 320 --backend cuda --progress plain --out build/cuda/check-run
done
if python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
  benchmarks/gpu.py --programs build/cuda/bin
else
  echo "SKIPPED: no PyTorch with CUDA to compare with; steps of ours alone:"
  for task in listops text retrieval image pathfinder; do
    for precision in float32 bfloat16; do
      build/cuda/bin/lra-bench train --backend cuda --task "$task" --precision "$precision" --batch-size 32
    done
  done
fi
