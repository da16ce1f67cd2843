"""
bench/pages/figures.py - what was promised, and whether it holds

Purpose: each line names a figure that Stook must reach ("at least") and one it aims at ("goal"),
the measurement it is read from, and against which contender. A comparison is the ratio of
neighbouring runs; it passes when the worse end of its 95 % interval passes, misses when the median
misses, and is unclear in between, and with fewer than six pairs.
Place: run.py prints the verdicts; compare.py reads them from the result files.
"""

from contenders import OURS
import tables
from interval import PAIRS_ENOUGH, beside, best_of, measured_rates, standing, summary


def starting(prefix):
    return lambda name: name.startswith(prefix)


def others(name):
    """No build of Stook's: neither this one nor those of --with."""
    return not name.startswith(OURS)


def only(wanted):
    return lambda name: name == wanted


class Line:
    """
    One figure. `rivals` tells which contenders are compared with (the best of them is); None: the
    value itself counts. `higher`: more is better. `rival_metric`: what of theirs is compared, if
    not the same.
    """

    def __init__(self, text, experiment, metric, at_least, goal, rivals=None, ours=OURS,
                 higher=False, unit="x", rival_metric=None):
        self.text, self.experiment, self.metric = text, experiment, metric
        self.at_least, self.goal, self.rivals, self.ours = at_least, goal, rivals, ours
        self.higher, self.unit, self.rival_metric = higher, unit, rival_metric or metric

    def judge(self, results):
        """A dictionary for the table, or None if the experiment was not run or Stook took no
        part."""
        table = results.get(self.experiment, {})
        ours = table.get(self.ours, {}).get(self.metric)
        if not ours or all(v is None for v in ours):
            return None
        verdict = {"figure": self.text, "experiment": self.experiment, "unit": self.unit,
                   "higher": self.higher, "at_least": self.at_least, "goal": self.goal,
                   "value": summary(ours)["median"]}
        if self.rivals is None:
            measured = summary(ours)
        else:
            clean = measured_rates if self.higher else list
            ours = clean(ours)
            rivals = {n: clean(answers[self.rival_metric]) for n, answers in table.items()
                      if self.rival_metric in answers and self.rivals(n) and
                      (n, self.rival_metric) != (self.ours, self.metric)}
            sides = beside(ours, rivals)
            rival = best_of(sides, self.higher)
            measured = rival and standing(ours, rivals[rival])
            if not measured:
                return None
            del measured["says"]
            mine, theirs = sides[rival]
            verdict.update(value=mine["median"], rival=rival, rival_value=theirs["median"])
        verdict.update(measured)
        verdict["verdict"] = self.verdict(measured, self.at_least)
        verdict["goal_verdict"] = self.verdict(measured, self.goal)
        return verdict

    def verdict(self, measured, limit):
        if limit is None:
            return ""
        if self.rivals and measured["n"] < PAIRS_ENOUGH:
            return "unclear"
        sign = -1 if self.higher else 1
        worse = measured["low"] if self.higher else measured["high"]
        if sign * worse <= sign * limit:
            return "pass"
        return "unclear" if sign * measured["median"] <= sign * limit else "miss"


def those_of(*prefixes):
    """By the beginning of names: a packaged peer stands in for one that was not built."""
    return lambda name: name.startswith(prefixes)


# Frees in random order: cells of random_order.
SETS = ("64 B x 1,000,000 random", "256 B x 100,000 random", "1024 B x 100,000 random")

SIZES = ((16, 256), (32, 128), (64, 64), (128, 32), (256, 32), (512, 32))

LINES = [
    Line("object-cache pair inlined / best peer's fastest static call", "object_pair", "pair",
         0.60, 0.50, starting("static-"), ours="inline"),
    Line("the same, Stook linked statically, too", "object_pair", "pair", 0.60, 0.50,
         starting("static-"), ours="inline-static"),
    Line("the same, inlined into a plug-in that may be unloaded", "object_pair", "pair", 0.60, 0.50,
         starting("static-"), ours="inline-unloadable"),
    Line("object-cache pair inlined / private array", "object_pair", "pair", 2.1, 1.8,
         only("array"), ours="inline"),
    Line("object-cache batches of 64 inlined / private array", "object_pair", "batch/64", 2.4, 2.0,
         only("array"), ours="inline"),
    Line("object-cache pair out of line / best peer preloaded", "object_pair", "pair", 1.05, 0.95,
         starting("preloaded-"), ours="cache"),
    Line("drop-in pair, 64 B / best peer", "malloc_pair", "pair/64", 1.0, 0.95, others),
    Line("drop-in pair, 512 B / best peer", "malloc_pair", "pair/512", 1.0, 0.95, others),
    Line("drop-in batches of 64, 64 B / best peer", "malloc_pair", "batch64/64", 1.0, 0.95, others),
    Line("drop-in pair, mixed sizes / best peer", "malloc_pair", "pair_mix", 1.25, 1.0, others),
    Line("drop-in batches of 64, mixed sizes / best peer", "malloc_pair", "batch64_mix", 1.05, 1.0,
         others),
    Line("drop-in with 64 MiB alive / best peer", "malloc_pair", "live_64MiB", 1.0, 0.92, others),
] + [
    Line(f"bulk allocation, {size} B, an object", "bulk", f"warm_alloc/size:{size}/batch:{batch}",
         2.0, 1.0, ours="stook-cache", unit="ns")
    for size, batch in SIZES
] + [
    Line(f"bulk allocation, {size} B, 256 MiB anew, an object", "bulk",
         f"cold_alloc/size:{size}/batch:{batch}", 2.0, 1.0, ours="stook-cache", unit="ns")
    for size, batch in SIZES
] + [
    Line(f"table 1.1, B = {cell}: sheaves / none, {form}", "table11", cell, least, goal,
         only(rival), ours="sheaves")
    for cell, gain in tables.GAINS_11.items()
    for form, rival, least, goal in (
        ("compare-and-swap", "none-cas", 1 - gain / 100, 1 - max(2 * gain, 15) / 100),
        ("section", "none-rseq", 1.0, None))
] + [
    Line(f"table 1.1, B = {cell}, accounted: sheaves / none, {form}", "table11",
         f"{cell} accounted", least, goal, only(rival), ours="sheaves")
    for cell, gain in tables.GAINS_11_ACCOUNTED.items()
    for form, rival, least, goal in (
        ("compare-and-swap", "none-cas", 1 - gain / 100, 1 - max(2 * gain, 15) / 100),
        ("section", "none-rseq", 1.0, None))
] + [
    Line(f"table 1.2, {size} B {order}: after / before", "table12", f"{size} {order}",
         1 - drop / 100, 0.2, only("before"), ours="after")
    for (size, order), drop in tables.DROPS_12.items()
] + [
    Line("bulk allocation, 64 B / storing the pointers", "bulk", "warm_alloc/size:64/batch:64",
         None, 1.5, only("stook-cache"), ours="stook-cache",
         rival_metric="store_alloc/size:64/batch:64"),
    Line("RCU free / call_rcu, the freeing thread", "rcu", "free", 0.2, 0.1, only("call_rcu"),
         ours="free_rcu"),
    Line("RCU free / call_rcu, until all are free", "rcu", "all", 0.5, 0.2, only("call_rcu"),
         ours="free_rcu"),
    Line("64 threads on one barn: retries for 1,000 gets and puts", "barn",
         "retries_per_1000_barn_calls", 10, 1, ours="64 threads", unit=""),
    Line("64 threads on one barn: objects for processor time / 1 thread", "barn",
         "objects_per_cpu_us", 0.95, 1.0, only("1 threads"), ours="64 threads", higher=True),
    Line("producer to consumer, 64 B, objects / best peer", "prodcons", "64 objects_per_cpu_us",
         1.5, 3.0, others, higher=True),
    Line("producer to consumer, mixed, objects / best peer", "prodcons", "mix objects_per_cpu_us",
         1.5, 3.0, others, higher=True),
    Line("resident after it, 64 B / best peer", "prodcons", "64 resident_KiB", 1.0, 0.7, others),
    Line("resident after it, mixed / best peer", "prodcons", "mix resident_KiB", 1.0, 0.7, others),
    Line("resident for each parked thread", "parked", "per_thread_KiB", 18, 12, unit="KiB"),
    Line("empty program: resident beyond plain", "empty", "resident_KiB", 300, 200, unit="KiB"),
    Line("empty program: time beyond plain", "empty", "added_us", 150, 100, unit="us"),
    Line("empty program: core beyond plain", "empty", "core_KiB", 4096, 512, unit="KiB"),
    Line("empty program: mlockall beyond plain", "empty", "mlockall_KiB", 2048, 1024, unit="KiB"),
    Line("1 GiB of 64 B freed: left after 10 s idle", "spike", "small idle_percent", 5, 1,
         unit="%"),
    Line("1 GiB of mixed sizes freed: left after 10 s idle", "spike", "mix idle_percent", 5, 1,
         unit="%"),
    Line("1 GiB of 1 MiB freed: left after 10 s idle", "spike", "large idle_percent", 5, 1,
         unit="%"),
    Line("128 threads, all classes, 64 MiB group: killed", "cgroup", "killed", 0, 0, unit=""),
    Line("the same: peak of the group", "cgroup", "group_peak_KiB", 8192, 6144, unit="KiB"),
    Line("realloc to 1 GiB by 4 KiB: time / glibc", "realloc", "seconds", 0.5, 0.5, only("glibc")),
    Line("realloc to 1 GiB by 4 KiB: peak / glibc", "realloc", "peak_KiB", 1.0, 1.0,
         only("glibc")),
    Line("fresh calloc of 1 GiB: resident", "calloc", "resident_KiB", 156, 64, unit="KiB"),
    Line("drifting sizes: peak / best peer", "churn", "peak_KiB", 1.0, 0.9, others),
] + [
    Line(f"{cell}: {text}", "random_order", f"{cell} {metric}", least, goal, those_of(peer))
    for cell in SETS
    for metric, peer, least, goal, text in (
        ("free_ns", "jemalloc", 1.0, 0.7, "free / jemalloc"),
        ("free_ns", "mimalloc", None, 1.2, "free / mimalloc"),
        ("again_ns", "mimalloc", 1.5, 1.0, "allocate again / mimalloc"))
] + [
    Line(f"256 B x 100,000 random, {text}: MiB left, {what}", "random_order",
         f"256 B x 100,000 random{cell} left_MiB", least, goal, ours=ours, unit="MiB")
    for cell, text, least, goal in (("", "none kept", 5, 2), (", 1,000 kept", "1,000 kept", 10, 8))
    for ours, what in ((OURS, "malloc"), (OURS + "-cache", "cache"))
] + [
    Line(f"a cache of 600 B with one object, {text}", "sparse_caches", metric, 5, 4.7,
         ours=OURS + "-cache", unit="KiB")
    for text, metric in (("at once", "cache_KiB"), ("after idle time", "idle_KiB"))
] + [
    Line(f"{text} replayed: peak / glibc", "replay", f"{name} peak_KiB", least, 1.05, only("glibc"))
    for name, text, least in (("sqlite", "sqlite", 1.09), ("python3_malloc", "python", 1.12))
]


def judge(results):
    return [verdict for line in LINES if (verdict := line.judge(results))]
