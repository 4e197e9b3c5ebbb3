#!/usr/bin/env bash
# Puts nvcc and cuBLAS from NVIDIA's wheels into a private Python environment and prints the folder to give to
# -DLRA_CUDA_ROOT=…, for machines without a CUDA toolkit: 1.3 GB. Usage: scripts/cuda-wheels.sh FOLDER
set -euo pipefail
venv=${1:?usage: scripts/cuda-wheels.sh FOLDER}
if ! compgen -G "$venv/lib/python3*/site-packages/nvidia/cu13/bin/nvcc" >/dev/null; then
  python3 -m venv "$venv" >&2
  "$venv/bin/pip" install -q nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-cublas nvidia-cuda-cccl nvidia-cuda-crt \
    nvidia-nvvm >&2
fi
echo "$venv"/lib/python3*/site-packages/nvidia/cu13
