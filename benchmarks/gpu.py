#!/usr/bin/env python3
"""Samples a second of training steps on a GPU, ours and PyTorch's in turn, one row a task, attention and precision.

Each task at its recipe's sizes and full length. PyTorch runs in float32 (TF32 off), with TF32, and for bfloat16 under
autocast; eager code, torch.compile, and for softmax scaled_dot_product_attention, of which the fastest counts.

    benchmarks/gpu.py --programs build/cuda/bin
"""
import argparse
import contextlib
import json
import pathlib
import statistics
import subprocess
import sys

import torch

import pytorch_peer

ROOT = pathlib.Path(__file__).resolve().parent.parent
LENGTHS = {"listops": 2000, "text": 4000, "retrieval": 4000, "image": 1024, "pathfinder": 1024}
CUBE = "polynomial:power=3,scale=16"


def ours(a, task, spec, precision):
    command = [pathlib.Path(a.programs) / "lra-bench", "train", "--json", "--backend", a.backend, "--precision",
               precision, "--task", task, "--attention", spec, "--length", str(LENGTHS[task] // a.shorter),
               "--batch-size", str(a.batch_size), "--seconds", str(a.seconds), "--repeats", "3"]
    if a.backend == "cuda":
        torch.cuda.empty_cache()  # ours is another process on the same device
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)["ms_per_sample"]


def theirs(a, task, spec, precision):
    """{kind: (step, context)} of what runs."""
    torch._dynamo.reset()  # else a later shape is compiled for many, and in the end not at all
    device = "cuda" if a.backend == "cuda" else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    steps = {}
    for kind in ["eager", "compile"] + (["sdpa"] if spec == "softmax" else []):
        context = (torch.autocast(device, dtype=torch.bfloat16) if precision == "bfloat16"
                   else contextlib.nullcontext())
        try:
            with context:
                steps[kind] = pytorch_peer.TrainingStep(spec, kind, a.batch_size, LENGTHS[task] // a.shorter, 0.1, task,
                                                        device), context
        except Exception as error:  # too little memory, or what torch.compile cannot do; the others still count
            print(f"{task} {spec} {precision} {kind}: left out: {str(error).splitlines()[0]}", file=sys.stderr)
    return steps


def measure(a, task, spec, precision):
    """Rounds of {who: milliseconds a sample}."""
    steps = theirs(a, task, spec, precision)
    rounds = []
    for _ in range(a.rounds):
        row = {"ours": ours(a, task, spec, precision)}
        for kind, (step, context) in steps.items():
            with context:
                row[kind] = step.milliseconds(a.seconds)
        rounds.append(row)
    return rounds


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--programs", default=str(ROOT / "build/cuda/bin"), help="folder of lra-bench")
    p.add_argument("--backend", choices=["cuda", "cpu"], default="cuda", help="cpu: to see that all works")
    p.add_argument("--tasks", nargs="+", choices=sorted(LENGTHS), default=list(LENGTHS))
    p.add_argument("--precision", nargs="+", choices=["float32", "tf32", "bfloat16"], default=["float32", "bfloat16"])
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--shorter", type=int, default=1, help="lengths are divided by this")
    a = p.parse_args()
    print(f"PyTorch {torch.__version__}, "
          f"{torch.cuda.get_device_name() if a.backend == 'cuda' else 'CPU'}; training samples a second")
    head = f"{'task':<12}{'attention':<30}{'precision':<10}{'ours':>9}{'PyTorch':>9}  {'kind':<8}{'ratio':>6}"
    print(head + "\n" + "-" * len(head))
    failed = False
    for task in a.tasks:
        for spec in ("softmax", CUBE):
            for precision in a.precision:
                try:
                    rounds = measure(a, task, spec, precision)
                except RuntimeError as error:  # mostly too little memory; the other rows still count
                    print(f"{task:<12}{spec:<30}{precision:<10}left out: {str(error).splitlines()[0]}", flush=True)
                    failed = True
                    continue
                middle = {name: statistics.median(row[name] for row in rounds) for name in rounds[0]}
                rate = 1e3 / middle.pop("ours")
                best = min(middle, key=middle.get) if middle else None
                peer = f"{1e3 / middle[best]:>9.1f}  {best:<8}{rate * middle[best] / 1e3:>5.1f}x" if best else ""
                print(f"{task:<12}{spec:<30}{precision:<10}{rate:>9.1f}{peer}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
