#!/usr/bin/env bash
# Measures training and evaluation steps of this library and of PyTorch side by side, in one run with the machine's FMA
# peak, and writes tables and plots into docs/performance.md. About 40 minutes on two idle cores.
# Usage: benchmarks/run.sh [--quick] [OPTIONS OF benchmarks/performance.py]
#   --quick: short lengths and times, into build/performance instead of docs; to see that all works
# Needs the release build. PyTorch goes into build/torch-venv the first time; gnuplot draws the plots if it is there.
set -euo pipefail
cd "$(dirname "$0")/.."

[ -x build/release/bin/lra-bench ] || { echo "benchmarks/run.sh: build/release/bin/lra-bench is missing: cmake --preset release && cmake --build --preset release" >&2; exit 1; }
python=${PYTHON:-}
if [ -z "$python" ]; then
  python=build/torch-venv/bin/python
  if [ ! -x "$python" ] || ! "$python" -c 'import torch, safetensors' 2>/dev/null; then
    echo "Installing torch, safetensors and numpy from PyPI into build/torch-venv"
    python3 -m venv build/torch-venv
    build/torch-venv/bin/pip install -q torch safetensors numpy
  fi
fi
exec "$python" benchmarks/performance.py "$@"
