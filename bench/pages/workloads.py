"""
bench/pages/workloads.py - where Stook wins, and where it loses

Purpose: a workload is a cell of an experiment in which Stook and rivals do the same. It has a time,
a size in memory, or both. Stook stands against the rival with the best median, by the ratios of
neighbouring runs; medians are of the rounds that both ran. interval.py decides what may be said.
Place: run.py prints the sum of it, report.py and page.py tell all.
"""

import re
import textwrap

from contenders import OURS
from interval import (LESS, MORE, beside, best_of, geometric_mean, has_interval,
                      measured_rates, standing)
from text import interval_text, number

AHEAD, BEHIND, LEVEL, UNCLEAR = WORDS = "ahead", "behind", "level", "unclear"
NARROW = 0.10           # an interval, as a share of its ratio, that allows to say "level"


def peers(name):
    return not name.startswith(OURS)


class Rule:
    """Which metrics of an experiment are a workload's time and memory. `time` is a pattern that
    finds the cell; `memory` is a name with {cell} in it. Without `time`, `memory` is the
    pattern. Memory below `floor` is what the library itself needs, and is no workload's."""

    def __init__(self, experiment, time, memory=None, unit="ns", memory_unit="KiB", ours=OURS,
                 rivals=None, higher=False, what="", floor=0):
        self.experiment, self.time, self.memory, self.unit = experiment, time, memory, unit
        self.memory_unit, self.ours, self.higher, self.what = memory_unit, ours, higher, what
        self.rivals, self.floor = rivals or peers, floor


def begins(*prefixes):
    return lambda name: name.startswith(prefixes)


RULES = [
    Rule("object_pair", r"(pair|batch/\d+)", ours="inline",
         rivals=begins("static-", "preloaded-"), what="inlined, against malloc"),
    Rule("object_pair", r"(pair|batch/\d+)", ours="inline", what="inlined, against pools",
         rivals=lambda name: name in ("pool-dpdk", "pool-boost")),     # safe in several threads
    Rule("malloc_pair", r"((?!live)[\w/]+)"),
    Rule("malloc_pair", r"(live_64MiB)", "{cell} held_KiB"),
    Rule("malloc_calls", r"([\w/]+)"),
    Rule("mixtures", r"(\w+)"),
    Rule("rcu", r"(free)", ours="free_rcu", rivals=lambda name: name == "call_rcu",
         what="against a call_rcu for each object"),
    Rule("rcu", r"(free)", ours="free_rcu", rivals=lambda name: name == "call_rcu_array",
         what="against arrays handed to call_rcu"),
    Rule("prodcons", r"(.+) objects_per_cpu_us", "{cell} resident_KiB", unit="objects/us",
         higher=True),
    Rule("realloc", r"(seconds)", "peak_KiB", unit="s"),
    Rule("calloc", r"(seconds)", "resident_KiB", unit="s"),
    Rule("pattern_rows", r"(.+) ns", "{cell} peak_KiB", floor=1024),
    Rule("oversubscribed", r"(.+) ns", "{cell} peak_KiB"),
    Rule("heap_size", r"(.+) ns", "{cell} peak_KiB"),
    Rule("churn", r"(ns|seconds)", "peak_KiB", unit="s"),
    Rule("parked", None, r"(per_thread_KiB)"),
    Rule("empty", r"(added_us)", "resident_KiB", unit="us"),
    Rule("spike", None, r"(\w+) idle_KiB"),
    Rule("cgroup", None, r"(group_peak_KiB)"),
    Rule("random_order", r"(.+) free_ns", "{cell} left_MiB", memory_unit="MiB", what="free"),
    Rule("random_order", r"(.+) again_ns", what="allocate again"),
    Rule("freed_once", r"(.+) free_ns", "{cell} left_MiB", memory_unit="MiB"),
    Rule("replay", r"(.+) ns_per_event", "{cell} peak_KiB"),
    Rule("sizes", r"(.+) ns_per_event", "{cell} peak_KiB"),
    Rule("maple_map", r"(.+) lookup_ns", "{cell} bytes", ours="maple-external",
         memory_unit="bytes an entry", rivals=begins("std", "btree", "rangemap"), what="lookup"),
    Rule("programs", r"(.+) cpu_s", "{cell} peak_KiB", unit="s"),
    Rule("fleet_mixes", r"(.+) ns_per_op", "{cell} peak_share",
         memory_unit="by what is asked for"),
]
# Experiments that run.py prints as standings, not as a row for each contender.
PRINTED = ("malloc_calls", "pattern_rows", "oversubscribed", "heap_size", "programs",
           "fleet_mixes")


class Side:
    """Ours beside the best rival in one metric, in the rounds that both ran."""

    def __init__(self, ours, theirs, rival, ratio, unit, higher):
        self.ours, self.theirs, self.rival, self.unit = ours, theirs, rival, unit
        self.ratio, self.higher = ratio, higher
        better, worse = (MORE, LESS) if higher else (LESS, MORE)
        narrow = has_interval(ratio) and ratio["high"] - ratio["low"] <= NARROW * ratio["median"]
        self.says = {better: AHEAD, worse: BEHIND}.get(ratio["says"], LEVEL if narrow else UNCLEAR)

    def cost(self):
        """The ratio's median, turned over where more is better: below 1, Stook is ahead."""
        return 1 / self.ratio["median"] if self.higher else self.ratio["median"]

    def cost_bounds(self):
        low, high = self.ratio["low"], self.ratio["high"]
        return (1 / high, 1 / low) if self.higher else (low, high)


class Workload:
    def __init__(self, rule, cell, time, memory):
        self.experiment, self.cell, self.what = rule.experiment, cell, rule.what
        self.time, self.memory = time, memory

    def short_name(self):
        """Without its experiment."""
        return self.cell + (f" ({self.what})" if self.what else "")

    def name(self):
        return f"{self.experiment} {self.short_name()}"


def side_of(table, rule, metric, unit, higher=False):
    """Side, or None if no rival ran in a round of ours."""
    table = {name: {metric: measured_rates(answers[metric]) if higher else answers[metric]}
             for name, answers in table.items() if metric in answers}
    ours = table.get(rule.ours, {}).get(metric, [])
    sides = beside(ours, {name: answers[metric] for name, answers in table.items()
                          if name != rule.ours and rule.rivals(name)})
    if not sides:
        return None
    best = best_of(sides, higher)
    ratio = standing(ours, table[best][metric])
    if not ratio or ratio["median"] <= 0:
        return None
    return Side(*sides[best], best, ratio, unit, higher)


def of_rule(rule, table):
    pattern = re.compile(rule.time or rule.memory)
    for metric in table.get(rule.ours, {}):
        found = pattern.fullmatch(metric)
        if not found:
            continue
        cell = found.group(1)
        time = side_of(table, rule, metric, rule.unit, rule.higher) if rule.time else None
        name = metric if not rule.time else (rule.memory or "").format(cell=cell)
        memory = side_of(table, rule, name, rule.memory_unit) if name else None
        if memory and memory.theirs["median"] < rule.floor:
            memory = None
        if time or memory:
            yield Workload(rule, cell, time, memory)


def all_of(results):
    """Every workload of a result file, in the order of the rules."""
    return [w for rule in RULES for w in of_rule(rule, results["results"].get(rule.experiment, {}))]


def sides(workloads, which):
    return [(w, side) for w in workloads if (side := getattr(w, which))]


def count(workloads, which):
    """{says: number} and the geometric mean of the costs."""
    found = [side for _, side in sides(workloads, which)]
    return ({word: sum(s.says == word for s in found) for word in WORDS},
            geometric_mean([s.cost() for s in found]))


def sentence(workloads, which, subject):
    counts, mean = count(workloads, which)
    if mean is None:
        return f"{subject}: nothing was measured beside a peer."
    return (f"{subject}: ahead of the best peer in {counts[AHEAD]} of {sum(counts.values())} "
            f"workloads, behind in {counts[BEHIND]}, level in {counts[LEVEL]}, unclear in "
            f"{counts[UNCLEAR]}; geometric mean of the ratios {mean:.2f}.")


def print_summary(results, say):
    found = all_of(results)
    if found:
        say(sentence(found, "time", "Time"))
        say(sentence(found, "memory", "Memory"))


def side_cells(side):
    if side is None:
        return ["", "", "", "", ""]
    low, high = side.cost_bounds()
    interval = interval_text({**side.ratio, "low": low, "high": high}, lambda v: f"{v:.2f}")
    return [number(side.ours["median"]), f"{side.rival}: {number(side.theirs['median'])}",
            f"{side.cost():.2f}", interval, side.says]


WHAT_A_RATIO_IS = ("The ratio is the median of the ratios of the pairs, a pair being two runs of "
                   "one round; the ratio of the medians beside it, of the same rounds, may differ.")
HEAD = ["workload", "Stook", "best peer", "ratio", "95 %", "time",
        "Stook", "best peer", "ratio", "95 %", "memory"]


def rows(workloads):
    return [HEAD] + [[w.name(), *side_cells(w.time), *side_cells(w.memory)] for w in workloads]


def units(workloads):
    """What the numbers of one experiment's workloads are in."""
    found = {which: side.unit for which in ("time", "memory")
             for _, side in sides(workloads, which)}
    return ", ".join(f"{which} in {unit}" for which, unit in found.items())


def print_standings(name, table, say, print_table):
    found = [w for w in all_of({"results": {name: table}})]
    if found:
        say(f"  {units(found)}")
        print_table(rows(found), len(HEAD))
        say(textwrap.indent(textwrap.fill(WHAT_A_RATIO_IS, 98), "  "))
    else:
        say("  nothing was measured on Stook and a peer")
