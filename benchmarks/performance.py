#!/usr/bin/env python3
"""Measures what docs/performance.md shows, and writes it there (see benchmarks/run.sh).

What is compared with each other is measured in turn, several times round, and a ratio is the median of the ratios of the
rounds: on a shared machine speed changes from minute to minute. Each figure of ours carries the FMA peak measured beside
its steps. A group is kept in a JSON file, so that a run that was stopped goes on with the next one; --fresh forgets it.
"""
import argparse
import datetime
import json
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

import torch

import pytorch_peer

ROOT = pathlib.Path(__file__).resolve().parent.parent
CUBE = "polynomial:power=3,scale=16"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
TASKS = ("listops", "text", "retrieval", "image", "pathfinder")


class Measurements:
    """Groups by name, on disk after every one."""

    def __init__(self, path, fresh):
        self.path = path
        self.rows = json.loads(path.read_text()) if path.exists() and not fresh else {}

    def get(self, key, measure):
        if key not in self.rows:
            print(f"{datetime.datetime.now():%H:%M:%S}  {key}", flush=True)
            self.rows[key] = measure()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            temporary = self.path.with_suffix(".new")
            temporary.write_text(json.dumps(self.rows, indent=1) + "\n")
            temporary.rename(self.path)
        return self.rows[key]


def program(a, name, *options):
    """Standard output of a program of ours."""
    done = subprocess.run([pathlib.Path(a.programs) / name, *options], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"performance.py: {name}: {done.stderr.strip()}")
    return done.stdout


def bench(a, mode, *options, threads=None, seconds=None):
    return json.loads(program(a, "lra-bench", mode, "--json", "--threads", str(threads or a.threads), "--repeats", "1",
                              "--seconds", str(a.seconds if seconds is None else seconds), *options))


def in_turn(a, members):
    """Every member measured once a round: {name: {"ms": [...], field: [...]}} of the fields they return."""
    rows = {name: {} for name in members}
    for _ in range(a.rounds):
        for name, measure in members.items():
            for field, value in measure().items():
                rows[name].setdefault(field, []).append(value)
    return rows


def ours(a, mode, *options, threads=None):
    def measure():
        row = bench(a, mode, *options, threads=threads)
        return {"ms": row["ms_per_sample"], "share": row["share_of_peak"], "peak": row["peak_gflops"]}
    return measure


def theirs(a, spec, length, attention_dropout):
    batches = [1, 4] if length < 4096 else [1]
    steps = pytorch_peer.training_steps(spec, length, attention_dropout, batches)
    return {f"torch {name}": lambda step=step: {"ms": step.milliseconds(a.torch_seconds)}
            for name, step in steps.items()}


def pathfinder(a, folder, pixels):
    """The real program on generated pictures, whose black pixels are padding or not."""
    def measure():
        program(a, "lra-pathfinder", "--data", f"{folder}/data", "--pixel-tokens", pixels, "--steps", "10",
                "--warmup", "1", "--batch-size", "64", "--log-every", "5", "--eval-every", "0", "--limit-eval", "1",
                "--threads", str(a.threads), "--progress", "none", "--out", f"{folder}/run", "--force")
        lines = [json.loads(line) for line in open(f"{folder}/run/metrics.jsonl")]
        return {"ms": 1e3 / [line for line in lines if line["split"] == "train"][-1]["samples_per_second"]}
    return measure


def pathfinder_pixels(a):
    with tempfile.TemporaryDirectory() as folder:
        program(a, "lra-data", "generate", "pathfinder", "--out", f"{folder}/data", "--count", "2000")
        return in_turn(a, {pixels: pathfinder(a, folder, pixels) for pixels in ("raw", "shifted")})


def measure(a, m):
    m.get("peak", lambda: bench(a, "peak"))
    for spec in ("softmax", CUBE):
        for length in a.lengths:
            # A step of 8 long sequences lasts as long a sample as one of 32, but for a hundredth.
            size = ("--attention", spec, "--length", str(length), "--batch-size", "32" if length <= 1024 else "8")
            torch_too = length >= 1000 or a.quick
            m.get(f"step {spec} {length}", lambda: in_turn(a, {
                "float32": ours(a, "train", *size), "bfloat16": ours(a, "train", *size, "--precision", "bfloat16"),
                "evaluation": ours(a, "eval", *size), **(theirs(a, spec, length, 0.1) if torch_too else {})}))
            if torch_too:
                m.get(f"without {spec} {length}", lambda: in_turn(a, {
                    "float32": ours(a, "train", *size, "--attention-dropout", "0"), **theirs(a, spec, length, 0.0)}))
            m.get(f"memory {spec} {length}", lambda: bench(a, "train", "--attention", spec, "--length", str(length),
                                                           "--batch-size", "32", seconds=0.01)["peak_rss_bytes"])
    length = a.lengths[-1]
    for power in (1, 2):
        spec = f"polynomial:power={power},scale=sqrt"
        size = ("--length", str(length), "--batch-size", "8")
        m.get(f"linear {power}", lambda: in_turn(a, {
            **{form: ours(a, "train", "--attention", f"{spec},form={form}", *size) for form in ("linear", "quadratic")},
            **theirs(a, spec, length, 0.1)}))
    for task in TASKS:
        size = ("--task", task, "--batch-size", "32" if task in ("image", "pathfinder") else "8",
                *(("--length", "128") if a.quick else ()))
        m.get(f"task {task}", lambda: in_turn(a, {
            str(threads): ours(a, "train", *size, threads=threads) for threads in (1, a.threads)}))
    m.get("pathfinder", lambda: pathfinder_pixels(a))
    for length in a.lengths:
        m.get(f"profile {length}", lambda: bench(a, "train", "--length", str(length), "--batch-size", "8",
                                                 "--profile")["phase_shares"])


def middle(group, name, field="ms"):
    return statistics.median(group[name][field])


def ratio(group, above, below, field="ms"):
    return statistics.median(x / y for x, y in zip(group[above][field], group[below][field]))


def best_torch(group, kind=""):
    """Name of the fastest member of PyTorch (of a kind), or None."""
    names = [name for name in group if name.startswith(f"torch {kind}")]
    return min(names, key=lambda name: middle(group, name)) if names else None


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def milliseconds(value):
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"


def steps_table(a, rows, kind):
    out = []
    for spec in ("softmax", CUBE):
        for length in a.lengths:
            group = rows.get(f"{kind} {spec} {length}")
            if group is None:
                continue
            best = best_torch(group)
            cells = [milliseconds(middle(group, name)) if name else ""
                     for name in (best_torch(group, kind) for kind in ("eager", "compile", "sdpa"))]
            out.append([f"`{spec}`", str(length), milliseconds(middle(group, "float32")),
                        f"{middle(group, 'float32', 'share'):.0%}", f"{rows[f'memory {spec} {length}'] / 1e6:.0f}",
                        *cells, f"{ratio(group, best, 'float32'):.1f}×" if best else ""])
    return table(["attention", "length", "ms a sample", "share of peak", "MB, batch 32", "PyTorch eager", "compile",
                  "SDPA", "ratio"], out)


def bfloat16_table(a, rows):
    out = []
    for spec in ("softmax", CUBE):
        for length in a.lengths:
            group = rows[f"step {spec} {length}"]
            out.append([f"`{spec}`", str(length), milliseconds(middle(group, "float32")),
                        milliseconds(middle(group, "bfloat16")), f"{ratio(group, 'float32', 'bfloat16'):.2f}×",
                        milliseconds(middle(group, "evaluation")), f"{middle(group, 'evaluation', 'share'):.0%}"])
    return table(["attention", "length", "float32", "bfloat16", "ratio", "evaluation", "share of peak"], out)


def linear_table(a, rows):
    out = []
    for power in (1, 2):
        group = rows[f"linear {power}"]
        best = best_torch(group)
        out.append([str(power), str(a.lengths[-1]), f"{middle(group, 'linear'):.2f}",
                    milliseconds(middle(group, "quadratic")), milliseconds(middle(group, best)),
                    f"{ratio(group, best, 'linear'):.0f}×"])
    return table(["power", "length", "`form=linear`, ms a sample", "`form=quadratic`", "PyTorch, dense", "ratio"], out)


def task_table(a, rows):
    out = []
    for task in TASKS:
        group, many = rows[f"task {task}"], str(a.threads)
        out.append([task, milliseconds(middle(group, "1")), milliseconds(middle(group, many)),
                    f"{ratio(group, '1', many):.2f}×", f"{ratio(group, many, '1', 'peak'):.2f}×"])
    return table(["task", "1 thread, ms a sample", f"{a.threads} threads", "ratio", "FMA peak, ratio"], out)


def profile_table(a, rows):
    profiles = [rows[f"profile {length}"] for length in a.lengths]
    names = sorted({name for p in profiles for name in p}, key=lambda name: -sum(p.get(name, 0) for p in profiles))
    body = [[name] + [f"{p.get(name, 0):.1%}" for p in profiles] for name in names]
    body.append(["idle, other"] + [f"{1 - sum(p.values()):.1%}" for p in profiles])
    return table(["phase"] + [str(length) for length in a.lengths], body)


def plots(a, rows, folder):
    """Two SVG files by gnuplot; the lines of markdown that show them."""
    if shutil.which("gnuplot") is None:
        print("gnuplot is missing: no plots", file=sys.stderr)
        return []
    folder.mkdir(parents=True, exist_ok=True)
    share = [[length] + [100 * middle(rows[f"step {spec} {length}"], "float32", "share") for spec in ("softmax", CUBE)]
             for length in a.lengths]
    groups = {n: [rows[f"step {spec} {n}"] for spec in ("softmax", CUBE)] for n in a.lengths}
    faster = [[length] + [ratio(group, best_torch(group), "float32") for group in pair]
              for length, pair in groups.items() if all(best_torch(group) for group in pair)]
    shown = []
    for name, title, label, data in (
            ("share-of-peak", "Training step, share of the FMA peak", "%", share),
            ("against-pytorch", "Training step, times as fast as the best of PyTorch", "×", faster)):
        lines = "\n".join(" ".join(map(str, row)) for row in data)
        script = f"""set terminal svg size 640,360 font 'sans,12' background '#ffffff'
set output '{folder / name}.svg'
set title '{title}'
set xlabel 'tokens'
set ylabel '{label}' rotate by 0
set yrange [0:*]
set logscale x 2
set xrange [{data[0][0] * 0.85}:{data[-1][0] * 1.2}]
set grid ytics lc '#dddddd'
set key bottom right
$rows << EOD
{lines}
EOD
plot $rows using 1:2:xtic(1) with linespoints lw 2 pt 7 lc '#0072b2' title 'softmax', \\
     $rows using 1:3 with linespoints lw 2 pt 5 lc '#d55e00' title 'x³ / 16'
"""
        subprocess.run(["gnuplot"], input=script, text=True, check=True)
        shown.append(f"![{title}](performance/{name}.svg)")
    return shown


def render(a, m):
    rows = m.rows
    peak = rows["peak"]
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
               platform.processor())
    pictures = rows["pathfinder"]
    bfloat16 = f", bfloat16 {peak['bfloat16_peak_gflops']:.0f}" if peak.get("bfloat16_peak_gflops") else ""
    parts = [
        f"{a.threads} threads of {cpu} ({peak['instruction_set']}); FMA peak {peak['peak_gflops']:.0f} GFLOP/s{bfloat16}"
        f" at the start; PyTorch {torch.__version__.split('+')[0]}. ListOps model, batch 32 up to 1,024 tokens, 8 beyond"
        f" (PyTorch: the best of 1 and 4), dropout 0.1. Medians of {a.rounds} rounds of all that stands in a row.",
        "Training step with attention dropout 0.1:", steps_table(a, rows, "step"),
        "Without attention dropout, where PyTorch has its flash kernel:", steps_table(a, rows, "without"),
        *plots(a, rows, a.document.parent / "performance"),
        "Precision, and evaluation (ms a sample):", bfloat16_table(a, rows),
        "Exact linear forms of small powers, training (they have no P, so attention dropout is in the others alone):", linear_table(a, rows),
        "Threads, each task at its recipe's sizes and full length (batch 32 for pictures, 8 for the others):", task_table(a, rows),
        f"Pathfinder with black pixels as padding takes {middle(pictures, 'raw'):.2f} ms a sample, with all pixels"
        f" {middle(pictures, 'shifted'):.2f}: {ratio(pictures, 'shifted', 'raw'):.1f} times as long.",
        "Where the time of a training step with softmax goes, by number of tokens:", profile_table(a, rows)]
    block = "\n\n".join([BEGIN, *parts, END])
    text = a.document.read_text() if a.document.exists() else f"# Performance\n\n{BEGIN}\n{END}\n"
    pattern = re.compile(re.escape(BEGIN) + ".*" + re.escape(END), re.S)
    if not pattern.search(text):
        sys.exit(f"performance.py: {a.document} has no lines {BEGIN} and {END}")
    a.document.write_text(pattern.sub(lambda _: block, text))
    print(f"written: {a.document}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--programs", default=str(ROOT / "build/release/bin"), help="folder of lra-bench and the others")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--lengths", type=int, nargs="+", default=[348, 1024, 2048, 4096])
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=2.0, help="time of a measurement of ours")
    p.add_argument("--torch-seconds", type=float, default=2.0, help="time of a measurement of PyTorch")
    p.add_argument("--quick", action="store_true", help="short lengths and times, into build/performance")
    p.add_argument("--fresh", action="store_true", help="forget what an earlier run measured")
    p.add_argument("--document", type=pathlib.Path, default=ROOT / "docs/performance.md")
    p.add_argument("--json", type=pathlib.Path, default=ROOT / "build/performance/measured.json")
    a = p.parse_args()
    if a.quick:
        a.lengths, a.seconds, a.torch_seconds = [64, 128], 0.1, 0.1
        a.document, a.json = ROOT / "build/performance/quick.md", ROOT / "build/performance/quick.json"
    torch.set_num_threads(a.threads)
    m = Measurements(a.json, a.fresh)
    measure(a, m)
    render(a, m)


if __name__ == "__main__":
    main()
