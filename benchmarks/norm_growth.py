#!/usr/bin/env python3
"""Draws docs/attention/norm-growth.svg: ‖P‖ and ‖dP/dS‖ of the first layer at the start values of the ListOps model.

    benchmarks/norm_growth.py [--bench build/release/bin/lra-bench] [--examples 4]

Prints the slopes of log norm over log N beside what theory says. Needs gnuplot.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096)
# Spec, title, slope of ‖P‖ in theory.
CURVES = (("softmax", "softmax", 0.0), ("polynomial:power=3,scale=16", "x³/16", 1.0),
          ("polynomial:power=3,scale=sqrt", "x³/√N", 0.5), ("polynomial:power=3,scale=n", "x³/N", 0.0),
          ("polynomial:power=1,scale=sqrt", "x/√N", 0.5))
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#555555")


def slope(points):
    logs = [(math.log(n), math.log(y)) for n, y in points]
    mean_x, mean_y = (sum(axis) / len(logs) for axis in zip(*logs))
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default=str(ROOT / "build/release/bin/lra-bench"))
    parser.add_argument("--examples", type=int, default=4)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "docs/attention/norm-growth.svg")
    a = parser.parse_args()
    command = [a.bench, "norms", "--json", "--batch-size", str(a.examples), "--lengths", ",".join(map(str, LENGTHS))]
    for spec, _, _ in CURVES:
        command += ["--attention", spec]
    rows = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["rows"]
    # The record's spec is the canonical one: rows come in the order asked for.
    curves = [rows[i * len(LENGTHS):(i + 1) * len(LENGTHS)] for i in range(len(CURVES))]
    blocks, plots = [], {"frobenius": [], "jacobian": []}
    for i, ((_, title, theory), points) in enumerate(zip(CURVES, curves)):
        lines = "\n".join(f"{p['length']} {p['frobenius']} {p['jacobian']}" for p in points)
        blocks.append(f"$c{i} << EOD\n{lines}\nEOD\n")
        for column, key in ((2, "frobenius"), (3, "jacobian")):
            plots[key].append(f"$c{i} using 1:{column} with linespoints lw 2 pt 7 ps 0.6 lc '{COLOURS[i]}' "
                              f"title '{title}'")
        grows = slope([(p["length"], p["frobenius"]) for p in points])
        print(f"{title:<8} slope of log ‖P‖ over log N {grows:6.3f}, in theory {theory}")
    a.output.parent.mkdir(parents=True, exist_ok=True)
    script = "".join(blocks) + f"""set terminal svg noenhanced size 860,380 font 'sans,12' background '#ffffff'
set output '{a.output}'
set multiplot layout 1,2 title 'First layer of the ListOps model at its start values, random tokens, mean over heads'
set logscale xy
set xlabel 'tokens N'
set xtics ({", ".join(str(n) for n in LENGTHS)})
set format y '%g'
set xrange [50:5200]
set grid lc '#dddddd'
set key top left
set title 'Frobenius norm of P'
plot {", ".join(plots["frobenius"])}
set title 'Frobenius norm of dP/dS'
unset key
plot {", ".join(plots["jacobian"])}
unset multiplot
"""
    subprocess.run(["gnuplot"], input=script, text=True, check=True)
    print(f"drawn: {a.output}", file=sys.stderr)


if __name__ == "__main__":
    main()
