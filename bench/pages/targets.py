"""
bench/pages/targets.py - what the developers aim at, line by line

Purpose: a target is judged by one or more measurements (Line), of which the worst counts; what no
workload measures says so, and where else it is looked at. A comparison is the ratio of neighbouring
runs; it passes when the worse end of its 95 % interval passes, misses when the median misses, and
is unclear in between, and with fewer than six pairs.
Place: run.py prints those that a run measured; bench/TARGETS.md has all. They are aims, and no
promises to users: docs/BENCHMARKS.md has what was measured beside other allocators.
"""

import tables
from contenders import OURS
from interval import (PAIRS_ENOUGH, beside, best_of, geometric_mean, measured_rates, ratios,
                      standing, summary)
from micro import SIZES
from text import interval_text, number

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

NOT_MEASURED = "not measured"
# The verdict of a measurement that has no limit to reach.
ONLY_A_GOAL = ""
ORDER = ("miss", "unclear", "pass", ONLY_A_GOAL)
# Patterns that the field judges allocators by; a row of pattern_rows is PATTERN/THREADS.
FIELD = ("larson", "xmalloc", "alloc_test", "cfrac", "espresso", "glibc_simple", "glibc_thread",
         "mstress", "rptest", "cache_scratch", "cache_thrash", "malloc_large", "sh6", "sh8")
CACHE = OURS + "-cache"


class Target:
    """`lines`: what judges it, or a function of the results that tells. `elsewhere`: where it is
    looked at if no benchmark does."""

    def __init__(self, text, lines=(), elsewhere=""):
        self.text, self.lines, self.elsewhere = text, lines, elsewhere

    def judged(self, results):
        """The verdicts of its lines, the worst first."""
        lines = self.lines(results) if callable(self.lines) else self.lines
        found = [verdict for line in lines if (verdict := line.judge(results))]
        return sorted(found, key=lambda v: (ORDER.index(v["verdict"]), -strain(v)))


def strain(verdict):
    """How much of its limit a measurement takes; more is worse."""
    limit = verdict["at_least"]
    if limit is None or not verdict["median"]:
        return 0
    share = limit / verdict["median"] if verdict["higher"] else \
        verdict["median"] / limit if limit else verdict["median"]
    return share


def field_rows(metric, least, goal):
    """A line for each row of the field's patterns that was measured."""
    def lines(results):
        names = results.get("pattern_rows", {}).get(OURS, {})
        return [Line(name.removesuffix(" " + metric), "pattern_rows", name, least, goal, others)
                for name in names
                if name.endswith(" " + metric) and name.split("/")[0] in FIELD]
    return lines


class MeanOfField:
    """The geometric mean over the field's patterns, against the single peer that is best by it."""

    def __init__(self, metric, at_least, goal):
        self.metric, self.experiment = metric, "pattern_rows"
        self.line = Line("mean", self.experiment, metric, at_least, goal, others)

    def rounds(self, ours, theirs):
        """A mean for each round, over the rows that both have."""
        rows = [ratios(values, theirs[name]) for name, values in ours.items()
                if name.endswith(" " + self.metric) and name.split("/")[0] in FIELD and
                name in theirs]
        return [geometric_mean(of_round) for of_round in zip(*(row for row in rows if row))]

    def judge(self, results):
        table = results.get(self.experiment, {})
        means = {peer: summary(self.rounds(table[OURS], theirs))
                 for peer, theirs in table.items() if peer != OURS and OURS in table}
        means = {peer: mean for peer, mean in means.items() if mean}
        if not means:
            return None
        rival = max(means, key=lambda peer: means[peer]["median"])
        line, mean = self.line, means[rival]
        return {"figure": line.text, "experiment": line.experiment, "unit": "x", "higher": False,
                "at_least": line.at_least, "goal": line.goal, "value": mean["median"],
                "rival": rival, **mean, "verdict": line.verdict(mean, line.at_least),
                "goal_verdict": line.verdict(mean, line.goal)}


def program_rows(metric, least, goal, rivals=others, names=None):
    """A line for each real program that was measured."""
    def lines(results):
        found = results.get("programs", {}).get(OURS, {})
        return [Line(name.removesuffix(" " + metric), "programs", name, least, goal, rivals)
                for name in found
                if name.endswith(" " + metric) and (not names or name.split()[0] in names)]
    return lines


def pairs_of_nodes(results):
    """Each pair that was measured on two made-up nodes and on one."""
    return [Line(metric, "nodes", metric, 1.15, 1.05, only("1 nodes"), ours="2 nodes")
            for metric in results.get("nodes", {}).get("2 nodes", {})]


def cells_11(ours):
    for gains, suffix in ((tables.GAINS_11, ""), (tables.GAINS_11_ACCOUNTED, " accounted")):
        for cell, gain in gains.items():
            yield Line(f"B = {cell}{suffix}", "table11", cell + suffix, 1 - gain / 100,
                       1 - max(2 * gain, 15) / 100, only("none-cas"), ours=ours)


def grown_11():
    """A gain of 64 % is kept, of 29 % where objects are accounted."""
    for gains, suffix, least in ((tables.GAINS_11, "", 0.36),
                                 (tables.GAINS_11_ACCOUNTED, " accounted", 0.71)):
        for cell in gains:
            yield Line(f"B = {cell}{suffix}", "table11", cell + suffix, least, least,
                       only("none-cas"), ours="sheaves")


PACKAGED = those_of("gperftools", "mimalloc2", "jemalloc", "glibc")
TARGETS = [
    Target("object-cache pair, 64 B, inlined / best peer's fastest static call", [
        Line("pair", "object_pair", "pair", 0.60, 0.50, starting("static-"), ours="inline")]),
    Target("the same / a plain private array", [
        Line("pair", "object_pair", "pair", 2.1, 1.8, only("array"), ours="inline")]),
    Target("batches of 64, inlined / the private array", [
        Line("batch", "object_pair", "batch/64", 2.4, 2.0, only("array"), ours="inline")]),
    Target("the same pair out of line / best peer preloaded", [
        Line("pair", "object_pair", "pair", 1.05, 0.95, starting("preloaded-"), ours="cache")]),
    Target("drop-in pair, one size / best peer", [
        Line(f"{size} B", "malloc_pair", f"pair/{size}", 1.0, 0.95, others)
        for size in (16, 64, 512, 4096)]),
    Target("drop-in pair, mixed sizes / best peer", [
        Line("pair", "malloc_pair", "pair_mix", 1.25, 1.0, others)]),
    Target("drop-in batches of 64, mixed sizes / best peer", [
        Line("batch", "malloc_pair", "batch64_mix", 1.05, 1.0, others)]),
    Target("drop-in with 64 MiB alive / best peer", [
        Line("64 MiB", "malloc_pair", "live_64MiB", 1.0, 0.92, others)]),
    Target("free of a large live set in random order / jemalloc", [
        Line(cell, "random_order", f"{cell} free_ns", 1.0, 0.7, those_of("jemalloc"))
        for cell in SETS]),
    Target("allocation after it / mimalloc", [
        Line(cell, "random_order", f"{cell} again_ns", 1.5, 1.0, those_of("mimalloc"))
        for cell in SETS]),
    Target("two nodes / one, every pair", pairs_of_nodes),
    Target("the field's patterns, time / best peer of each row", field_rows("ns", 1.03, 1.0)),
    Target("the field's patterns, peak memory / best peer of each row",
            field_rows("peak_KiB", 1.0, 1.0)),
    Target("the same, time, geometric mean / best single peer", [MeanOfField("ns", 1.0, 0.95)]),
    Target("the same, peak memory, geometric mean / best single peer", [
        MeanOfField("peak_KiB", 1.0, 0.95)]),
    Target("a cache without sheaves / a build without their code", [
        Line(f"B = {cell}", "table11", cell, 1.024, 1.0, only("slabs-alone"), ours="no-sheaves")
        for cell in tables.GAINS_11]),
    Target("bulk allocation, an object, from sheaves", [
        Line(f"{size} B", "bulk", f"warm_alloc/size:{size}/batch:{batch}", 2.0, 1.0, ours=CACHE,
             unit="ns") for size, batch in SIZES]),
    Target("bulk allocation / storing the pointers", [
        Line(f"{size} B", "bulk", f"warm_alloc/size:{size}/batch:{batch}", None, 1.5, only(CACHE),
             ours=CACHE, rival_metric=f"store_alloc/size:{size}/batch:{batch}")
        for size, batch in SIZES]),
    Target("table 1.1 at capacity 32, 14 cells / none", list(cells_11("sheaves-32"))),
    Target("table 1.1, grown sheaves, 14 cells / none", list(grown_11())),
    Target("table 1.2, 12 cells: after / before", [
        Line(f"{size} B {order}", "table12", f"{size} {order}", 1 - drop / 100, 0.2,
             only("before"), ours="after") for (size, order), drop in tables.DROPS_12.items()]),
    Target("resident for each parked thread", [
        Line("thread", "parked", "per_thread_KiB", 18, 12, unit="KiB")]),
    Target("one object in each of 1,000 caches of 600 B, a cache", [
        Line("cache", "sparse_caches", "cache_KiB", 5, 4.7, ours=CACHE, unit="KiB")]),
    Target("100,000 x 256 B freed in random order: left", [
        Line("malloc", "random_order", "256 B x 100,000 random left_MiB", 5, 2, unit="MiB")]),
    Target("producer to consumer, objects / best packaged peer", [
        Line(cell, "prodcons", f"{cell} objects_per_cpu_us", 1.5, 3.0, PACKAGED, higher=True)
        for cell in ("64", "mix")]),
    Target("producer to consumer, objects / snmalloc", [
        Line(cell, "prodcons", f"{cell} objects_per_cpu_us", 1.0, 1.2, only("snmalloc"),
             higher=True) for cell in ("64", "mix")]),
    Target("memory after that test / best peer", [
        Line(cell, "prodcons", f"{cell} resident_KiB", 1.0, 0.7, others)
        for cell in ("64", "mix")]),
    Target("page_fault3 that allocates: faults of each of two threads / of one", [
        Line("2 threads", "page_fault3_alloc", "2 faults", 0.95, 1.0, only("sheaves"),
             ours="sheaves", higher=True, rival_metric="1 faults")]),
    Target("64 threads on one barn: retries for 1,000 gets and puts", [
        Line("64 threads", "barn", "retries_per_1000_barn_calls", 10, 1, ours="64 threads",
             unit="")]),
    Target("mmap2: sheaves / none", [
        Line(f"{n} threads", "mmap2", f"{n} pairs", 1.34, 1.6, only("cpu-slab-cas"),
             ours="sheaves", higher=True) for n in (1, 2)]),
    Target("mmap2: sheaves / the double cache", [
        Line(f"{n} threads", "mmap2", f"{n} pairs", 1.0, 1.0, only("double"), ours="sheaves",
             higher=True) for n in (1, 2)]),
    Target("empty program: resident beyond plain", [
        Line("resident", "empty", "resident_KiB", 300, 200, unit="KiB")]),
    Target("empty program: time beyond plain", [
        Line("time", "empty", "added_us", 150, 100, unit="us")]),
    Target("empty program: core beyond plain", [
        Line("core", "empty", "core_KiB", 4096, 512, unit="KiB")]),
    Target("empty program: mlockall beyond plain", [
        Line("mlockall", "empty", "mlockall_KiB", 2048, 1024, unit="KiB")]),
    Target("1 GiB spike freed: left after 10 s idle", [
        Line(cell, "spike", f"{cell} idle_percent", 5, 1, unit="%")
        for cell in ("small", "mix", "large")]),
    Target("128 threads, every size class, in a group of 64 MiB: killed", [
        Line("killed", "cgroup", "killed", 0, 0, unit="")]),
    Target("the same: peak of the group", [
        Line("peak", "cgroup", "group_peak_KiB", 8192, 6144, unit="KiB")]),
    Target("realloc in 4 KiB steps to 1 GiB: time / glibc", [
        Line("time", "realloc", "seconds", 0.5, 0.5, only("glibc"))]),
    Target("the same: peak / glibc", [
        Line("peak", "realloc", "peak_KiB", 1.0, 1.0, only("glibc"))]),
    Target("fresh calloc of 1 GiB: resident", [
        Line("resident", "calloc", "resident_KiB", 156, 64, unit="KiB")]),
    Target("drifting sizes, 100 B to 10 KiB: peak / best peer", [
        Line("peak", "churn", "peak_KiB", 1.0, 0.9, others)]),
    Target("python: peak / glibc", program_rows("peak_KiB", 1.12, 1.05, only("glibc"),
                                                 ("python",))),
    Target("sqlite: peak / glibc", program_rows("peak_KiB", 1.09, 1.05, only("glibc"),
                                                 ("sqlite",))),
    Target("signal handler allocating at 10 kHz: no fault",
            elsewhere="`meson test --suite race`; each instruction: tests/proof"),
    Target("forks while threads allocate: clean", elsewhere="`meson test --suite fork`"),
    Target("free by RCU, the thread that frees / call_rcu for each object", [
        Line("free", "rcu", "free", 0.2, 0.1, only("call_rcu"), ours="free_rcu")]),
    Target("sheaves recycled after free by RCU", [
        Line(text, "rcu", metric, 50, 90, ours="free_rcu", unit="%", higher=True)
        for text, metric in (("all at once", "recycled_percent"),
                             ("one by one", "replace recycled_percent"))]),
    Target("maple tree / the kernel's in user space",
            elsewhere="maple_map measures it beside other maps"),
    Target("real programs, processor time / best peer", program_rows("cpu_s", 1.0, 0.95)),
    Target("real programs, peak memory / best peer", program_rows("peak_KiB", 1.0, 0.95)),
]

HEAD = ["target", "verdict", "off by", "measured", "95 %", "at least", "goal", "", "judged by",
        "the worst", "against", "experiment"]
EXPLAINED = ("Of each target: how many measurements judge it, the worst of them, and its verdict. "
             "Off by: how far the median is on the wrong side of the limit, in per cent of it; "
             "below 0, how much room is left. `stook bench --only EXPERIMENT` measures a line "
             "again.")


def limit_text(verdict, limit):
    value = verdict[limit]
    return "" if value is None else (">= " if verdict["higher"] else "<= ") + number(value)


def off_by(verdict):
    """How much worse than the limit the median is, in per cent of the limit."""
    limit = verdict["at_least"] if verdict["at_least"] is not None else verdict["goal"]
    if not limit or verdict["median"] is None:
        return ""
    return f"{100 * (verdict['median'] / limit - 1) * (-1 if verdict['higher'] else 1):+.0f} %"


def row(target, results):
    if found := target.judged(results["results"]):
        worst = found[0]
        passed = sum(v["verdict"] == "pass" for v in found)
        count = "1" if len(found) == 1 else f"{len(found)}, {passed} pass"
        return [target.text, worst["verdict"], off_by(worst),
                f"{number(worst['median'])} {worst['unit']}",
                interval_text(worst), limit_text(worst, "at_least"),
                limit_text(worst, "goal"), worst["goal_verdict"], count,
                worst["figure"] if len(found) > 1 else "", worst.get("rival", ""),
                worst["experiment"]]
    return [target.text, NOT_MEASURED] + [""] * (len(HEAD) - 3) + [target.elsewhere]


def rows(results):
    return [HEAD] + [row(target, results) for target in TARGETS]


def measured(results):
    """The rows of what a run measured."""
    return [HEAD] + [line for line in rows(results)[1:] if line[1] != NOT_MEASURED]


def sentence(results):
    """Every target is in one of its numbers."""
    words = [line[1] for line in rows(results)[1:]]
    goals = words.count(ONLY_A_GOAL)
    only_goals = f"{goals} {'has' if goals == 1 else 'have'} only a goal, " if goals else ""
    return (f"{words.count('pass')} of {len(words)} targets pass, {words.count('unclear')} are "
            f"unclear, {words.count('miss')} miss, {only_goals}{words.count(NOT_MEASURED)} were "
            "not measured in this run, or are by no benchmark. The worst measurement of a target "
            "counts.")
