#!/usr/bin/env python3
"""Records SciPy's values for statistics_test: record_statistics.py > data/statistics.json (needs scipy, written with 1.17).

Each case is {"kind", inputs, "want"}; what SciPy leaves undefined is not asked of it here but stated in the test."""
import json
import math

import scipy
from scipy import stats

# Accuracies as seeds give them, far and near, few and many, ties and large offsets.
SAMPLES = [
    [0.3725, 0.3715],
    [0.3725, 0.3690, 0.3755],
    [0.64, 0.652, 0.6485, 0.6391, 0.6602],
    [0.5, 0.5, 0.5, 0.5001],
    [0.1, 0.9, 0.3, 0.7, 0.2, 0.55, 0.41, 0.99],
    [1e6 + 0.1, 1e6 + 0.2, 1e6 + 0.4],
]
PAIRS = [
    ([0.3725, 0.3715, 0.3740], [0.3690, 0.3720, 0.3700]),
    ([0.64, 0.652, 0.6485, 0.6391, 0.6602], [0.60, 0.61, 0.6012, 0.6100, 0.6051]),
    ([0.5, 0.6], [0.4, 0.55]),
    ([0.1, 0.9, 0.3, 0.7], [0.2, 0.55, 0.41, 0.99]),
]
UNEQUAL = [([0.37, 0.38, 0.36], [0.35, 0.36]), ([0.7, 0.7, 0.7], [0.6, 0.65, 0.71, 0.64])]
SHARES = [(0, 10), (10, 10), (1, 2000), (745, 2000), (1999, 2000), (12500, 25000), (1, 1), (8719, 17437)]
RANKED = [
    ([1, 2, 3, 4, 5], [5, 6, 7, 8, 7]),
    ([1, 1, 2, 2, 3, 3], [0.3, 0.1, 0.2, 0.2, 0.5, 0.4]),
    ([1.2, 0.4, 3.1], [0.2, 0.3, 0.1]),
    ([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], [2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4]),
    ([1, 2, 3, 4], [10, 20, 30, 40]),
]
DISCORDANT = [(0, 0), (0, 1), (0, 6), (3, 12), (12, 3), (10, 10), (25, 41), (830, 912), (4000, 3700)]
PVALUES = [[0.01, 0.04, 0.03, 0.005], [0.5, 0.6, 0.9], [0.02], [0.01, 0.01, 0.04]]


def holm(p):
    """The definition, the slow way: SciPy has no Holm."""
    return [min(1.0, max((len(p) - sum(r < q for r in p)) * q for q in p if q <= own)) for own in p]


def test(kind, a, b):
    done = stats.ttest_rel(a, b) if kind == "paired" else stats.ttest_ind(a, b, equal_var=False)
    interval = done.confidence_interval(0.95)
    return {"kind": kind, "a": a, "b": b,
            "want": {"difference": math.fsum(a) / len(a) - math.fsum(b) / len(b), "statistic": done.statistic,
                     "degrees": done.df, "p": done.pvalue, "low": interval.low, "high": interval.high}}


def cases():
    for values in SAMPLES:
        n, mean, deviation = len(values), math.fsum(values) / len(values), float(stats.tstd(values))
        low, high = stats.t.interval(0.95, n - 1, loc=mean, scale=deviation / math.sqrt(n))
        yield {"kind": "mean", "a": values, "want": {"mean": mean, "deviation": deviation, "low": low, "high": high}}
    for a, b in PAIRS:
        yield test("paired", a, b)
    for a, b in PAIRS + UNEQUAL:
        yield test("welch", a, b)
    for successes, trials in SHARES:
        low, high = stats.binomtest(successes, trials).proportion_ci(0.95, "wilson")
        yield {"kind": "wilson", "successes": successes, "trials": trials, "want": {"low": low, "high": high}}
    for x, y in RANKED:
        done = stats.spearmanr(x, y)
        yield {"kind": "spearman", "a": x, "b": y, "want": {"rho": done.statistic}}
    for a, b in DISCORDANT:
        p = stats.binomtest(a, a + b, 0.5).pvalue if a + b else 1.0
        yield {"kind": "mcnemar", "only_a": a, "only_b": b, "want": {"p": p}}
    for p in PVALUES:
        yield {"kind": "holm", "a": p, "want": {"corrected": holm(p)}}


if __name__ == "__main__":
    rows = [json.dumps(case, default=float) for case in cases()]
    print('{"scipy": "%s", "cases": [\n%s\n]}' % (scipy.__version__, ",\n".join(rows)))
