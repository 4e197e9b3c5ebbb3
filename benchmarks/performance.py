#!/usr/bin/env python3
"""Measures what docs/performance.md shows, and writes it there (see benchmarks/run.sh).

Every cell is measured once and kept in a JSON file, so that a run that was stopped goes on where it was; --fresh
forgets it. Each row of ours carries the FMA peak of its own run: compare shares and ratios, not milliseconds.
"""
import argparse
import datetime
import json
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import types

import torch

import pytorch_peer

ROOT = pathlib.Path(__file__).resolve().parent.parent
CUBE = "polynomial:power=3,scale=16"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
TASKS = ("listops", "text", "retrieval", "image", "pathfinder")


class Measurements:
    """Rows by key, on disk after every one."""

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


def bench(a, mode, *options, threads=None):
    command = [a.bench, mode, "--json", "--threads", str(threads or a.threads), "--seconds", str(a.seconds), *options]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def peer(a, spec, length, attention_dropout):
    """PyTorch's seconds a sample by kind."""
    settings = types.SimpleNamespace(task="listops", dropout=0.1, attention_dropout=attention_dropout, mode="train",
                                     no_compile=False, torch_batch=[1, 4] if length < 4096 else [1],
                                     seconds=a.torch_seconds)
    return pytorch_peer.torch_times(spec, length, settings)


def pathfinder_rate(a, pixels):
    """Seconds a sample of the real program on generated pictures, whose black pixels are padding or not."""
    programs = pathlib.Path(a.bench).parent
    with tempfile.TemporaryDirectory() as folder:
        for command in (["lra-data", "generate", "pathfinder", "--out", f"{folder}/data", "--count", "2000"],
                        ["lra-pathfinder", "--data", f"{folder}/data", "--pixel-tokens", pixels, "--steps", "10",
                         "--warmup", "1", "--batch-size", "64", "--log-every", "5", "--eval-every", "0",
                         "--limit-eval", "1", "--threads", str(a.threads), "--progress", "none", "--out",
                         f"{folder}/run"]):
            done = subprocess.run([programs / command[0], *command[1:]], capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"performance.py: {command[0]}: {done.stderr.strip()}")
        lines = [json.loads(line) for line in open(f"{folder}/run/metrics.jsonl")]
    return 1 / lines[[i for i, line in enumerate(lines) if line["split"] == "train"][-1]]["samples_per_second"]


def measure(a, m):
    lengths = a.lengths
    m.get("peak", lambda: bench(a, "peak"))
    for spec in ("softmax", CUBE):
        for length in lengths:
            size = ("--attention", spec, "--length", str(length))
            m.get(f"ours {spec} {length}", lambda: bench(a, "train", *size, "--profile"))
            m.get(f"bfloat16 {spec} {length}", lambda: bench(a, "train", *size, "--precision", "bfloat16"))
            m.get(f"eval {spec} {length}", lambda: bench(a, "eval", *size))
            m.get(f"ours without {spec} {length}", lambda: bench(a, "train", *size, "--attention-dropout", "0"))
            if length >= 1000 or a.quick:
                m.get(f"torch {spec} {length}", lambda: peer(a, spec, length, 0.1))
                m.get(f"torch without {spec} {length}", lambda: peer(a, spec, length, 0.0))
    for power, length in ((1, lengths[-1]), (2, lengths[-1])):
        spec = f"polynomial:power={power},scale=sqrt"
        for form in ("linear", "quadratic"):
            m.get(f"{form} {spec} {length}",
                  lambda: bench(a, "train", "--attention", f"{spec},form={form}", "--length", str(length)))
        m.get(f"torch {spec} {length}", lambda: peer(a, spec, length, 0.1))
    for task in TASKS:
        for threads in (1, a.threads):
            short = ("--length", "128") if a.quick else ()
            m.get(f"task {task} {threads}", lambda: bench(a, "train", "--task", task, "--batch-size", "8", *short,
                                                          threads=threads))
    for pixels in ("raw", "shifted"):
        m.get(f"pathfinder {pixels}", lambda: pathfinder_rate(a, pixels))


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def best(times):
    return min(times.values()) * 1e3


def milliseconds(value):
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def steps_table(a, rows, prefix):
    out = []
    for spec in ("softmax", CUBE):
        for length in a.lengths:
            ours, theirs = rows[f"ours {prefix}{spec} {length}"], rows.get(f"torch {prefix}{spec} {length}")
            cells = [milliseconds(theirs[kind] * 1e3) if theirs and kind in theirs else "" for kind in
                     ("eager", "compile", "sdpa")]
            ratio = f"{best(theirs) / ours['ms_per_sample']:.1f}×" if theirs else ""
            out.append([f"`{spec}`", str(length), milliseconds(ours["ms_per_sample"]), f"{ours['share_of_peak']:.0%}",
                        f"{ours['peak_rss_bytes'] / 1e6:.0f}", *cells, ratio])
    return table(["attention", "length", "ms a sample", "share of peak", "MB", "PyTorch eager", "compile", "SDPA",
                  "ratio"], out)


def bfloat16_table(a, rows):
    out = []
    for spec in ("softmax", CUBE):
        for length in a.lengths:
            plain, short = rows[f"ours {spec} {length}"], rows[f"bfloat16 {spec} {length}"]
            out.append([f"`{spec}`", str(length), milliseconds(plain["ms_per_sample"]),
                        milliseconds(short["ms_per_sample"]), f"{plain['ms_per_sample'] / short['ms_per_sample']:.2f}×",
                        milliseconds(rows[f"eval {spec} {length}"]["ms_per_sample"]),
                        f"{rows[f'eval {spec} {length}']['share_of_peak']:.0%}"])
    return table(["attention", "length", "float32", "bfloat16", "ratio", "evaluation", "share of peak"], out)


def linear_table(a, rows):
    out, length = [], a.lengths[-1]
    for power in (1, 2):
        spec = f"polynomial:power={power},scale=sqrt"
        linear, quadratic = (rows[f"{form} {spec} {length}"]["ms_per_sample"] for form in ("linear", "quadratic"))
        theirs = best(rows[f"torch {spec} {length}"])
        out.append([str(power), str(length), f"{linear:.2f}", milliseconds(quadratic), milliseconds(theirs),
                    f"{theirs / linear:.0f}×"])
    return table(["power", "length", "`form=linear`, ms a sample", "`form=quadratic`", "PyTorch, dense", "ratio"], out)


def task_table(a, rows):
    out = []
    for task in TASKS:
        one, all_threads = rows[f"task {task} 1"], rows[f"task {task} {a.threads}"]
        out.append([task, str(one["length"]), milliseconds(one["ms_per_sample"]),
                    milliseconds(all_threads["ms_per_sample"]),
                    f"{one['ms_per_sample'] / all_threads['ms_per_sample']:.2f}×"])
    return table(["task", "length", "1 thread, ms a sample", f"{a.threads} threads", "ratio"], out)


def profile_table(a, rows):
    profiles = [rows[f"ours softmax {length}"]["phase_shares"] for length in a.lengths]
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
    share = [[length] + [100 * rows[f"ours {spec} {length}"]["share_of_peak"] for spec in ("softmax", CUBE)]
             for length in a.lengths]
    compared = [n for n in a.lengths if f"torch softmax {n}" in rows]
    ratio = [[length] + [best(rows[f"torch {spec} {length}"]) / rows[f"ours {spec} {length}"]["ms_per_sample"]
                         for spec in ("softmax", CUBE)] for length in compared]
    shown = []
    for name, title, label, data in (
            ("share-of-peak", "Training step, share of the FMA peak", "%", share),
            ("against-pytorch", "Training step, times as fast as the best of PyTorch", "×", ratio)):
        lines = "\n".join(" ".join(map(str, row)) for row in data)
        script = f"""set terminal svg size 640,360 font 'sans,12' background '#ffffff'
set output '{folder / name}.svg'
set title '{title}'
set xlabel 'tokens'
set ylabel '{label}' rotate by 0
set yrange [0:*]
set logscale x 2
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
    raw, shifted = (1e3 * rows[f"pathfinder {pixels}"] for pixels in ("raw", "shifted"))
    bfloat16 = f", bfloat16 {peak['bfloat16_peak_gflops']:.0f}" if peak.get("bfloat16_peak_gflops") else ""
    parts = [
        f"{a.threads} threads of {cpu} ({peak['instruction_set']}); FMA peak {peak['peak_gflops']:.0f} GFLOP/s{bfloat16}"
        f" at the start of the run; PyTorch {torch.__version__.split('+')[0]}. ListOps model, batch 32 (PyTorch: the best"
        " of 1 and 4), dropout 0.1.",
        "Training step with attention dropout 0.1:", steps_table(a, rows, ""),
        "Without attention dropout, where PyTorch has its flash kernel:", steps_table(a, rows, "without "),
        *plots(a, rows, a.document.parent / "performance"),
        "Precision, and evaluation (ms a sample):", bfloat16_table(a, rows),
        "Exact linear forms of small powers, training, attention dropout off:", linear_table(a, rows),
        "Threads, each task at its recipe's sizes (batch 8):", task_table(a, rows),
        f"Pathfinder with black pixels as padding takes {raw:.2f} ms a sample, with all pixels {shifted:.2f}:"
        f" {shifted / raw:.1f} times as long.",
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
    p.add_argument("--bench", default=str(ROOT / "build/release/bin/lra-bench"), help="the lra-bench program")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--lengths", type=int, nargs="+", default=[348, 1024, 2048, 4096])
    p.add_argument("--seconds", type=float, default=5.0, help="time of a measurement of ours")
    p.add_argument("--torch-seconds", type=float, default=10.0, help="time of a measurement of PyTorch")
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
