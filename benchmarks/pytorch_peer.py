#!/usr/bin/env python3
"""Times the same training (or evaluation) step in PyTorch and in lra-bench, in turn, and prints one table.

PyTorch runs the model of tests/reference/lra_model.py with lean attention (no mask: all rows are of full length), as
eager code, through torch.compile, and for softmax through scaled_dot_product_attention; the fastest is counted.
Needs torch; lra-bench measures the machine's FMA peak in the same run.

    benchmarks/pytorch_peer.py --bench build/release/bin/lra-bench --lengths 1024 2048
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "reference"))
import attention as reference_attention  # noqa: E402
import lra_model  # noqa: E402


class Dense(nn.Module):
    """Softmax or x^power/scale on full-length rows, written the plain way."""

    def __init__(self, name, options, head_dim):
        super().__init__()
        self.name, self.root = name, 1 / math.sqrt(head_dim)
        if name == "polynomial":
            self.power, self.divisor = options["power"], options["scale"]

    def forward(self, q, k, v, mask, dropout, x):
        s = (q * self.root) @ k.transpose(-1, -2)
        if self.name == "softmax":
            p = s.softmax(-1)
        else:
            n = s.shape[-1]
            c = {"sqrt": math.sqrt(n), "n": n}.get(self.divisor) or float(self.divisor)
            p = s
            for _ in range(self.power - 1):
                p = p * s
            p = p / c
        return F.dropout(p, dropout, dropout > 0) @ v

    def finish(self, y):
        return y


class Sdpa(Dense):
    def forward(self, q, k, v, mask, dropout, x):
        return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout)


def build(spec, kind, arguments, length):
    name, options, _ = reference_attention.parse(spec)
    if name not in ("softmax", "polynomial"):
        sys.exit(f"pytorch_peer.py: --attention {spec}: only softmax and polynomial have a lean PyTorch form here")
    task = dict(lra_model.TASKS[arguments.task], max_len=length)
    config = lra_model.Config(**task, dropout=arguments.dropout, attention_dropout=arguments.attention_dropout)
    torch.manual_seed(0)
    model = lra_model.Classifier(config)
    for block in model.encoder.blocks:
        make = Sdpa if kind == "sdpa" else Dense
        block.attention.kernel = make(name, options, config.dim // config.heads)
    return model, config


def time_step(model, config, batch, length, train, seconds):
    """Median seconds a sample."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, eps=1e-6, weight_decay=0.0)
    inputs = [torch.randint(1, config.vocab_size - 1, (batch, length)) for _ in range(2 if config.pair else 1)]
    labels = torch.randint(0, config.num_classes, (batch,))
    model.train(train)

    def step():
        if not train:
            with torch.no_grad():
                return model(*inputs)
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(*inputs), labels).backward()
        optimizer.step()

    step()
    times, begin = [], time.perf_counter()
    while len(times) < 3 or (time.perf_counter() - begin < seconds and len(times) < 200):
        start = time.perf_counter()
        step()
        times.append((time.perf_counter() - start) / batch)
    return statistics.median(times)


def torch_times(spec, length, a):
    """{kind: best median seconds a sample over the batch sizes}; a kind that fails is left out with its reason."""
    kinds = ["eager"] + ([] if a.no_compile else ["compile"]) + (["sdpa"] if spec == "softmax" else [])
    result = {}
    for kind in kinds:
        for batch in a.torch_batch:
            try:
                model, config = build(spec, kind, a, length)
                run = torch.compile(model) if kind == "compile" else model
                seconds = time_step(run, config, batch, length, a.mode == "train", a.seconds)
            except Exception as error:  # torch.compile fails in many ways; the others still count
                print(f"{spec} {length} {kind} batch {batch}: left out: {str(error).splitlines()[0]}", file=sys.stderr)
                continue
            result[kind] = min(result.get(kind, math.inf), seconds)
    return result


def ours(spec, length, a):
    command = [a.bench, a.mode, "--task", a.task, "--attention", spec, "--length", str(length), "--batch-size",
               str(a.batch_size), "--threads", str(a.threads), "--dropout", str(a.dropout), "--attention-dropout",
               str(a.attention_dropout), "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bench", default=str(ROOT / "build/release/bin/lra-bench"), help="the lra-bench program")
    p.add_argument("--mode", choices=["train", "eval"], default="train")
    p.add_argument("--task", choices=sorted(lra_model.TASKS), default="listops")
    p.add_argument("--attention", nargs="+", default=["softmax", "polynomial:power=3,scale=16"])
    p.add_argument("--lengths", nargs="+", type=int, default=[1024, 2048])
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--batch-size", type=int, default=32, help="of lra-bench")
    p.add_argument("--torch-batch", nargs="+", type=int, default=[1, 4], help="batch sizes tried in PyTorch")
    p.add_argument("--dropout", type=float, default=0.1)
    p.add_argument("--attention-dropout", type=float, default=0.1)
    p.add_argument("--seconds", type=float, default=5.0, help="time a PyTorch measurement")
    p.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    p.add_argument("--json", metavar="FILE", help="also write the rows to FILE")
    a = p.parse_args()
    torch.set_num_threads(a.threads)

    print(f"PyTorch {torch.__version__}, {a.threads} threads, {a.task}, {a.mode}, dropout {a.dropout}, "
          f"attention dropout {a.attention_dropout}; ms a sample")
    head = f"{'attention':<28}{'length':>7}{'ours':>9}{'share':>8}{'eager':>9}{'compile':>9}{'sdpa':>9}{'ratio':>8}"
    print(head + "\n" + "-" * len(head))
    rows = []
    for spec in a.attention:
        for length in a.lengths:
            mine, theirs = ours(spec, length, a), torch_times(spec, length, a)
            best = min(theirs.values()) * 1e3
            row = dict(attention=spec, length=length, ours_ms=mine["ms_per_sample"], share=mine["share_of_peak"],
                       peak_gflops=mine["peak_gflops"], peak_rss_bytes=mine["peak_rss_bytes"],
                       torch_ms={kind: s * 1e3 for kind, s in theirs.items()}, ratio=best / mine["ms_per_sample"])
            rows.append(row)
            cell = lambda kind: f"{theirs[kind] * 1e3:>9.1f}" if kind in theirs else f"{'-':>9}"
            print(f"{spec:<28}{length:>7}{row['ours_ms']:>9.2f}{row['share']:>8.1%}{cell('eager')}{cell('compile')}"
                  f"{cell('sdpa')}{row['ratio']:>7.1f}x", flush=True)
    if a.json:
        pathlib.Path(a.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
