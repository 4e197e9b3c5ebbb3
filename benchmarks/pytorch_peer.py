"""The training step of lra-bench in PyTorch, for benchmarks/performance.py and benchmarks/gpu.py.

The model is that of tests/reference/lra_model.py with lean attention (no mask: all rows are of full length), as eager
code, through torch.compile, and for softmax through scaled_dot_product_attention.
"""
import math
import pathlib
import statistics
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


class TrainingStep:
    """One step of a task's model over `batch` examples whose sequences have `length` tokens, by AdamW."""

    def __init__(self, spec, kind, batch, length, attention_dropout, task="listops", device="cpu"):
        name, options, _ = reference_attention.parse(spec)
        task = dict(lra_model.TASKS[task], max_len=length)
        config = lra_model.Config(**task, dropout=0.1, attention_dropout=attention_dropout)
        torch.manual_seed(0)
        model = lra_model.Classifier(config)
        for block in model.encoder.blocks:
            block.attention.kernel = (Sdpa if kind == "sdpa" else Dense)(name, options, config.dim // config.heads)
        model.train().to(device)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, eps=1e-6, weight_decay=0.0)
        sides = 2 if config.pair else 1
        self.inputs = [torch.randint(1, config.vocab_size - 1, (batch, length), device=device) for _ in range(sides)]
        self.labels = torch.randint(0, config.num_classes, (batch,), device=device)
        self.wait = torch.cuda.synchronize if device == "cuda" else lambda: None
        self.model = torch.compile(model) if kind == "compile" else model
        self.batch = batch
        self.run()  # compiles, fills caches

    def run(self):
        self.optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(self.model(*self.inputs), self.labels).backward()
        self.optimizer.step()
        self.wait()

    def milliseconds(self, seconds):
        """Median of a sample, over that time, at least one step."""
        times, begin = [], time.perf_counter()
        while not times or time.perf_counter() - begin < seconds:
            start = time.perf_counter()
            self.run()
            times.append((time.perf_counter() - start) / self.batch * 1e3)
        return statistics.median(times)


def training_steps(spec, length, attention_dropout, batches):
    """{"kind batch": TrainingStep}; one that fails is left out with its reason."""
    steps = {}
    for kind in ["eager", "compile"] + (["sdpa"] if spec == "softmax" else []):
        for batch in batches:
            try:
                steps[f"{kind} {batch}"] = TrainingStep(spec, kind, batch, length, attention_dropout)
            except Exception as error:  # torch.compile fails in many ways; the others still count
                print(f"{spec} {length} {kind} batch {batch}: left out: {str(error).splitlines()[0]}", file=sys.stderr)
    return steps
