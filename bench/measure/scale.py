"""
bench/measure/scale.py - what grows with threads, slots, nodes, caches, with the heap

Purpose: experiments in which one quantity grows by steps. AXES names, for each, what is plotted:
page.py draws a line for each contender, and slope() says in one number how its cost grows. In the
experiments of STEPS, Stook at each step is a contender of its own, so steps run in turn; there is
a line for each of its metrics.
Place: run.py runs these like the others.
"""

import math
import pathlib
import re

import patterns
from contenders import OURS, PLAIN, Contender
from engine import Failed, macro
from interval import PAIRS_ENOUGH, summary
from setting import cells, preloaded, rounds
from slices import Job, measure
from text import number

# Experiment: [(what is plotted, its metric, unit), ...]; the first word of a cell is the step.
AXES = {
    "oversubscribed": [("threads", "ns", "ns of processor time"), ("threads", "peak_KiB", "KiB")],
    "many_caches": [("caches", "ns", "ns for a pair"), ("caches", "cache_KiB", "KiB a cache"),
                    ("caches", "create_us", "us to make one")],
    "heap_size": [("MiB alive", "ns", "ns to replace one")],
}
# What `nodes` runs of malloc_pair, and of object_pair's programs for object caches.
NODE_MALLOC = ["pair/64", "batch64/64", "pair_mix", "batch64_mix", "live_64MiB"]
NODE_CACHE = ["pair", "batch/64", "batch/1000"]
CACHE_KINDS = "cache", "inline"
# Experiment: (what grows, the metrics that are plotted); the first word of a contender is the step.
STEPS = {
    "slots": ("slots", ["ns", "create_us", "stats_us", "shrink_us", "destroy_us", "cache_KiB"]),
    "nodes": ("nodes", NODE_MALLOC + [f"{kind}_{what}" for kind in CACHE_KINDS
                                      for what in NODE_CACHE]),
    "barn": ("threads", ["objects_per_cpu_us"]),
}
LARGE_MIB = 1024    # above it, on glibc and Stook alone, three times: filling takes the time
# Rows of bench/patterns that the suites run; patterns.py runs all of them.
QUICK_ROWS = "^(cfrac/1|larson/2|xmalloc/2|lifo/1|malloc_large/1|threads_short/16)$"
SHORT_ROWS = ("^(larson|xmalloc|alloc_test|cfrac|espresso|glibc_|mstress|rptest|cache_|"
              "malloc_large|sh6|sh8).*/[12]$")


def oversubscribed(setting):
    """1 to 2,000 threads that allocate on few processors, the same work in all."""
    steps = (64, 1000) if setting.quick else (1, 2, 4, 8, 16, 32, 64, 256, 1000, 2000)
    operations = 100_000 if setting.quick else 400_000

    def job(threads):
        return lambda c: macro([setting.program("oversubscribed"), f"threads={threads}",
                                f"operations={operations}"], c)

    return cells(setting, preloaded(setting), min(setting.pairs, 10),
                 {f"{n} threads": job(n) for n in steps})


def many_caches(setting):
    """One to thousands of object caches, used in turn."""
    steps = (10, 1000) if setting.quick else (1, 10, 100, 1000, 4000, 8000, 10_000)

    def job(caches):
        return lambda c: macro([setting.program("many_caches"), f"caches={caches}"], c)

    return cells(setting, [Contender(OURS + "-cache")], min(setting.pairs, 10),
                 {f"{n} caches": job(n) for n in steps})


def slots(setting):
    """Object caches where there are up to 4,096 slots: a pair, making, reading, shrinking and
    destroying one, memory."""
    steps = (16, 1024) if setting.quick else (2, 16, 64, 256, 1024, 4096)

    contenders = [Contender(f"{n} slots", extra={"STOOK_TOPOLOGY": f"nodes=1:slots={n}"})
                  for n in steps]
    return rounds(setting, contenders, min(setting.pairs, 10),
                  lambda c: macro([setting.program("many_caches"), "caches=200", "pairs=100000"],
                                  c))


def nodes(setting):
    """malloc and free, and object caches, on 1 to 16 made-up nodes, ns an object: pairs, batches,
    mixes, 64 MiB alive."""
    if OURS not in setting.contenders:
        raise Failed("libstook-malloc.so is not built")
    library, table = setting.contenders[OURS].library, {}
    for program, rows, preload, prefix in (
            ("malloc_pair", NODE_MALLOC, library, ""),
            *((f"object_pair-{kind}", NODE_CACHE, None, kind + "_") for kind in CACHE_KINDS)):
        jobs = [Job(Contender(f"{n} nodes", preload, {"STOOK_TOPOLOGY": f"nodes={n}"}),
                    [setting.program(program)], lambda row, prefix=prefix: prefix + row)
                for n in (1, 2, 4, 8, 16)]
        for name, answers in measure(setting, jobs, rows).items():
            table.setdefault(name, {}).update(answers)
    return table


def available_mib():
    found = re.search(r"^MemAvailable:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text(), re.M)
    return int(found.group(1)) >> 10 if found else 0


def heap_size(setting):
    """Objects of 64 bytes replaced at random in a live set of 1 MiB to 16 GiB: as much as half of
    the memory that is free."""
    def job(mib):
        return lambda c: macro([setting.program("heap_size"), f"mib={mib}"], c)

    steps = (4, 64) if setting.quick else (1, 4, 16, 64, 256, 1024)
    table = cells(setting, preloaded(setting), min(setting.pairs, PAIRS_ENOUGH),
                  {f"{n} MiB": job(n) for n in steps if n <= LARGE_MIB})
    large = [] if setting.quick else [n for n in (4096, 8192, 16384)]
    for n in [n for n in large if n > available_mib() // 2]:
        large.remove(n)
        setting.left_out[f"heap_size {n} MiB"] = "more than half of the memory that is free"
    more = cells(setting, preloaded(setting, (OURS, PLAIN)), 3, {f"{n} MiB": job(n) for n in large})
    for name, answers in more.items():
        table.setdefault(name, {}).update(answers)
    return table


def pattern_rows(setting):
    """Patterns of allocation by which the field judges allocators (bench/patterns)."""
    chosen = QUICK_ROWS if setting.few else SHORT_ROWS if setting.quick else ""
    rows = patterns.rows_of(chosen, [])
    percent = 20 if setting.quick else 100

    def job(row):
        command = [setting.program("patterns"), row.pattern, f"threads={row.threads}",
                   f"percent={percent}", "repeat=3"]
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


def series_of(name, table, metric):
    """{line: [(step, summary)]} of an experiment: a line for each contender, or, of an experiment
    of STEPS, one for Stook."""
    if name not in STEPS:
        return {c: found for c in table if (found := points(table, c, metric))}
    found = sorted((float(step.split()[0]), s) for step, answers in table.items()
                   if (s := summary(answers.get(metric, []))) and s["median"] > 0)
    return {OURS: found} if found else {}


def axes():
    """(experiment, what grows, metric, unit) of all that is plotted."""
    for name, of in AXES.items():
        yield from ((name, *axis) for axis in of)
    for name, (what, metrics) in STEPS.items():
        yield from ((name, what, metric, "") for metric in metrics)


def growth_rows(results):
    """A table of slopes: what grows, from where to where, Stook's cost there, its exponent and
    those of the peers."""
    table_rows = [["experiment", "cost", "steps", "Stook, first", "last", "exponent", "peers'"]]
    for name, what, metric, _ in axes():
        lines = series_of(name, results["results"].get(name, {}), metric)
        ours = next((line for line in lines if line.startswith(OURS)), None)
        if ours is None or (b := slope(lines[ours])) is None:
            continue
        first, last = lines[ours][0], lines[ours][-1]
        peers = [f"{line} {exponent:+.2f}" for line in lines if line != ours
                 if (exponent := slope(lines[line])) is not None]
        table_rows.append([name, metric, f"{first[0]:,.0f} to {last[0]:,.0f} {what}",
                           number(first[1]["median"]), number(last[1]["median"]), f"{b:+.2f}",
                           ", ".join(peers)])
    return table_rows


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


ALL = {e.__name__: e for e in (pattern_rows, oversubscribed, many_caches, heap_size, slots, nodes)}
