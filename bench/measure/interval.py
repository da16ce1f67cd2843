"""
bench/measure/interval.py - medians, how sure one may be of them, and what may be said

Purpose: all figures are compared by ratios of neighbouring runs (A B A B ...), so that a slow
minute of the machine hits both. The interval of the median is the one of order statistics: it
assumes nothing about how noise is distributed. With ten pairs the 2nd and 9th smallest ratio
enclose the median with 97.9 %, with thirty the 10th and 21st with 95.7 %; below six pairs no
interval reaches 95 %: bounds() gives the smallest and largest, which are no such interval. One of
95 % excludes 1 exactly where the sign test finds a difference.
Place: whatever is said of two contenders is said by standing(). cli/run/compare.c has the
same rule.
"""

import math
import statistics

PAIRS_ENOUGH = 6
LESS, MORE, NO_DIFFERENCE = "less", "more", "no difference seen"


def median(values):
    return statistics.median(values)


def bounds(values):
    """The narrowest pair of order statistics that encloses the median with at least 95 %."""
    ordered = sorted(values)
    n = len(ordered)
    below, tail = 0, 0.0
    # tail: probability that fewer than `below` + 1 values lie under the median
    while below < n // 2:
        tail += math.comb(n, below) / 2.0 ** n
        if tail > 0.025:
            break
        below += 1
    k = max(below - 1, 0)
    return ordered[k], ordered[n - 1 - k]


def ratios(ours, theirs):
    """Ratio for each round in which both were measured and theirs is not 0."""
    return [a / b for a, b in zip(ours, theirs) if a is not None and b]


def common(ours, theirs):
    """What each gave in the rounds that both ran. Medians that stand beside a ratio are of these: a
    round that only one of them ran would change its median, and not the ratio."""
    both = [(a, b) for a, b in zip(ours, theirs) if a is not None and b is not None]
    return [a for a, _ in both], [b for _, b in both]


def measured_rates(values):
    """Rates, without those of 0: nothing was done in that round, so nothing was measured."""
    return [v or None for v in values]


def summary(values):
    """Median, bounds and number of what was measured."""
    have = [v for v in values if v is not None]
    if not have:
        return None
    low, high = bounds(have)
    return {"median": median(have), "low": low, "high": high, "n": len(have)}


def beside(ours, rivals):
    """{rival: (summary of ours, summary of theirs)} of the rounds that both ran, of the values of
    each rival in @rivals; without rivals that have no such round."""
    found = {name: common(ours, theirs) for name, theirs in rivals.items()}
    return {name: (summary(a), summary(b)) for name, (a, b) in found.items() if a}


def best_of(sides, higher=False):
    """The rival with the best median, of what beside() found; None without one."""
    return (max if higher else min)(sides, key=lambda n: sides[n][1]["median"], default=None)


def has_interval(s):
    """Whether a summary's bounds enclose the median with 95 %."""
    return s["n"] >= PAIRS_ENOUGH


def says(ratio):
    """What a ratio's summary allows to say: a difference needs six pairs, and an interval without
    1."""
    if not has_interval(ratio) or ratio["low"] <= 1 <= ratio["high"]:
        return NO_DIFFERENCE
    return LESS if ratio["high"] < 1 else MORE


def standing(ours, theirs):
    """Summary of the ratios ours / theirs, of how many rounds, and what it says; None without a
    pair."""
    ratio = summary(ratios(ours, theirs))
    return ratio and {**ratio, "rounds": max(len(ours), len(theirs)), "says": says(ratio)}


def are_apart(old, new):
    """Whether two summaries of different sessions differ beyond noise: both have six rounds, and
    their intervals have no point in common."""
    enough = min(old["n"], new["n"]) >= PAIRS_ENOUGH
    return enough and (new["low"] > old["high"] or new["high"] < old["low"])


def geometric_mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else None
