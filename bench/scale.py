"""
bench/scale.py - what grows with threads, with caches, with the heap

Purpose: experiments whose cells are steps of one quantity. AXES names, for each, what is plotted:
page.py draws a line for each contender, and slope() says in one number how its cost grows.
Place: run.py runs these like those of experiments.py.
"""

import math

import patterns
from contenders import OURS, Contender
from engine import macro
from experiments import cells, preloaded
from interval import PAIRS_ENOUGH, summary

# Experiment: [(what is plotted, its metric, unit), ...]; the first word of a cell is the step.
AXES = {
    "oversubscribed": [("threads", "ns", "ns of processor time"), ("threads", "peak_KiB", "KiB")],
    "many_caches": [("caches", "ns", "ns for a pair"), ("caches", "cache_KiB", "KiB a cache"),
                    ("caches", "create_us", "us to make one")],
    "heap_size": [("MiB alive", "ns", "ns to replace one")],
}
# Rows of bench/patterns that the suites run; patterns.py runs all of them.
QUICK_ROWS = "^(cfrac/1|larson/2|xmalloc/2|lifo/1|malloc_large/1|threads_short/16)$"


def oversubscribed(setting):
    """1 to 2,000 threads that allocate on few processors, the same work in all."""
    steps = (64, 1000) if setting.quick else (1, 2, 4, 16, 64, 256, 1000, 2000)
    operations = 100_000 if setting.quick else 400_000

    def job(threads):
        return lambda c: macro([setting.program("oversubscribed"), f"threads={threads}",
                                f"operations={operations}"], c)

    return cells(setting, preloaded(setting), min(setting.pairs, 10),
                 {f"{n} threads": job(n) for n in steps})


def many_caches(setting):
    """One to thousands of object caches, used in turn."""
    steps = (10, 1000) if setting.quick else (1, 10, 100, 1000, 4000, 8000)

    def job(caches):
        return lambda c: macro([setting.program("many_caches"), f"caches={caches}"], c)

    return cells(setting, [Contender(OURS + "-cache")], min(setting.pairs, 10),
                 {f"{n} caches": job(n) for n in steps})


def heap_size(setting):
    """Objects of 64 bytes replaced at random in a live set of 1 to 1,024 MiB."""
    def job(mib):
        return lambda c: macro([setting.program("heap_size"), f"mib={mib}"], c)

    return cells(setting, preloaded(setting), min(setting.pairs, PAIRS_ENOUGH),
                 {f"{n} MiB": job(n) for n in ((4, 64) if setting.quick
                                               else (1, 4, 16, 64, 256, 1024))})


def pattern_rows(setting):
    """Patterns of allocation by which the field judges allocators (bench/patterns)."""
    rows = patterns.rows_of(QUICK_ROWS if setting.quick else "", [])
    percent, repeat = (20, 1) if setting.quick else (100, 3)

    def job(row):
        command = [setting.program("patterns"), row.pattern, f"threads={row.threads}",
                   f"percent={percent}", f"repeat={repeat}"]
        return lambda c: macro(command, c)

    return cells(setting, preloaded(setting), min(setting.pairs, 10),
                 {row.name: job(row) for row in rows})


def points(table, contender, metric):
    """[(step, summary)] of one contender, in order of the steps."""
    found = []
    for name, values in table.get(contender, {}).items():
        cell, _, last = name.rpartition(" ")
        if last == metric and (s := summary(values)) and s["median"] > 0:
            found.append((float(cell.split()[0].replace(",", "")), s))
    return sorted(found, key=lambda point: point[0])


def slope(found):
    """The exponent b of cost = a * step^b that fits best; 0: flat, 1: grows as the step does. None
    where there are not two steps."""
    xs = [math.log(x) for x, _ in found]
    ys = [math.log(s["median"]) for _, s in found]
    if len(set(xs)) < 2:
        return None
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    return (sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys)) /
            sum((x - x_mean) ** 2 for x in xs))


ALL = {e.__name__: e for e in (pattern_rows, oversubscribed, many_caches, heap_size)}
