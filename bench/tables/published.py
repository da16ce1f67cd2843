"""
bench/tables/published.py - each published figure beside ours, with a verdict

Purpose: one row for each cell of the kernel work's tables: what was published, what was measured
here, and one word. A comparison is taken from the ratios of neighbouring runs, with the 95 %
interval of their median (interval.py). A count is the same in each run, and needs no interval.
Place: run.py puts the rows into the result file, under "published"; report.py and page.py print
them. tables*.py have the tables in the kernel's layout.

| word | meaning |
|---|---|
| reached | the worse end of the interval reaches what was published |
| unclear | the median does, the worse end does not, or there are fewer than six pairs |
| missed | the median does not |
"""

import re

import between_threads
import tables
import tables_aspace
from contenders import OURS, PLAIN
from interval import PAIRS_ENOUGH, common, ratios, summary
from text import interval_text

REACHED, UNCLEAR, MISSED = "reached", "unclear", "missed"


def verdict(low, middle, least, enough):
    """For figures of which more is better; the caller turns others over."""
    if middle < least:
        return MISSED
    return REACHED if enough and low >= least else UNCLEAR


class Row:
    """
    A cell. `ours`, `theirs`: (contender, metric) of the experiment. How they are compared:
      gain    per cent that ours is below theirs; at least `limit`
      rise    per cent that ours is above theirs; at least `limit`
      times   ours by theirs; at most `limit`
      at most, at least   ours alone
    """

    UNITS = {"gain": "%", "rise": "%", "times": "x"}

    def __init__(self, table, text, published, experiment, how, ours, theirs, limit, unit=None):
        self.table, self.text, self.published, self.experiment = table, text, published, experiment
        self.how, self.ours, self.theirs, self.limit = how, ours, theirs, limit
        self.unit = self.UNITS.get(how, "") if unit is None else unit

    def measured(self, table):
        """(ours, theirs or None, compared): summaries; None if one of them was not measured."""
        mine = table.get(self.ours[0], {}).get(self.ours[1], [])
        ours = summary(mine)
        if self.theirs is None:
            return (ours, None, ours) if ours else None
        yours = table.get(self.theirs[0], {}).get(self.theirs[1], [])
        pairs = summary(ratios(mine, yours))
        if not pairs:
            return None
        mine, yours = common(mine, yours)
        return summary(mine), summary(yours), self.compared(pairs)

    def compared(self, pairs):
        if self.how == "gain":
            turn = {"median": "median", "low": "high", "high": "low"}
            return {"n": pairs["n"],
                    **{k: 100 * (1 - pairs[v]) for k, v in turn.items()}}
        if self.how == "rise":
            return {"n": pairs["n"],
                    **{k: 100 * (pairs[k] - 1) for k in ("median", "low", "high")}}
        return pairs

    def word(self, compared):
        if self.how in ("times", "at most"):
            low, middle, least = -compared["high"], -compared["median"], -self.limit
        else:
            low, middle, least = compared["low"], compared["median"], self.limit
        enough = compared["n"] >= PAIRS_ENOUGH or self.theirs is None
        return verdict(low, middle, least, enough)

    def judge(self, results):
        """A dictionary for the result file, or None if it was not measured."""
        found = self.measured(results.get(self.experiment) or {})
        if not found:
            return None
        ours, theirs, compared = found
        return {"table": self.table, "row": self.text, "published": self.published,
                "experiment": self.experiment, "how": self.how, "limit": self.limit,
                "unit": self.unit, "contender": self.ours[0],
                "rival": self.theirs[0] if self.theirs else None, "ours": ours["median"],
                "theirs": theirs["median"] if theirs else None,
                "measured": compared["median"], "low": compared["low"], "high": compared["high"],
                "n": compared["n"], "verdict": self.word(compared)}


def rows_11():
    for front, text in (("sheaves-32", "capacity 32"), ("sheaves", "grown")):
        for gains, suffix in ((tables.GAINS_11, ""), (tables.GAINS_11_ACCOUNTED, " accounted")):
            for batch, gain in gains.items():
                cell = batch + suffix
                yield Row("1.1", f"{cell}, {text}", f"{gain} %", "table11", "gain", (front, cell),
                          ("none-cas", cell), gain)
    for batch in tables.GAINS_11:
        yield Row("1.1", f"{batch}, no sheaves: cost of their code", "at most 2.4 %", "table11",
                  "times", ("no-sheaves", batch), ("slabs-alone", batch), 1.024)


def rows_12():
    for (size, order), drop in tables.DROPS_12.items():
        later = tables.ITERATOR_12[size, order]
        for text, least in ((f"{size} B, {order}", drop),
                            (f"{size} B, {order}, general iterator", later)):
            yield Row("1.2", text, f"-{least} %", "table12", "gain", ("after", f"{size} {order}"),
                      ("before", f"{size} {order}"), least)


def rows_13():
    loops, prefill = "bulk calls turned into loops", "preallocation replaced by prefill"
    own = "prefill of the CPU's own sheaf"
    k = tables_aspace.KERNEL_STAGES
    array, fast, slow = k[loops][:3]
    least = array / (array + fast + slow)
    yield Row("1.3", f"{loops}: nodes from sheaves, of all", f"{least:.3f}", "node_counts",
              "at least", (loops, "from_sheaves"), None, least, "of 1")
    for stage in (prefill, own):
        yield Row("1.3", f"{stage}: nodes allocated, of those of loops",
                  f"{k[prefill][0] / array:.3f}", "node_counts", "at most",
                  (stage, "of_loops"), None, k[prefill][0] / array, "of 1")
    yield Row("1.3", "map, read-fault, unmap (phone)", "+1.8 %", "phone", "rise",
              ("sheaves", "1 loops"), ("cpu-slab-cas", "1 loops"), 1.8)


def rows_14():
    for experiment, steps, what in (("mmap2_processes", tables_aspace.PROCESSES, "processes"),
                                    ("mmap2", tables_aspace.THREADS, "threads")):
        for n in steps:
            metric = f"{n} pairs"
            for ours, theirs, text, published, least in (
                    ("sheaves", "cpu-slab-cas", "sheaves without per-CPU slabs",
                     "-2.1 %; asked: +34 %", 34),
                    ("double", "cpu-slab-cas", "the double cache", "+33.7 %", 33.7),
                    ("sheaves", "double", "sheaves against the double cache",
                     "-26.8 %; asked: level", 0)):
                yield Row("1.4", f"{n} {what}: {text}", published, experiment, "rise",
                          (ours, metric), (theirs, metric), least)


def rows_15():
    for experiment, text in (("page_fault3", "one mapping"),
                             ("page_fault3_alloc", "every fault allocates")):
        for n in tables_aspace.THREADS:
            yield Row("1.5", f"{n} threads, {text}: sheaves against none",
                      "-10.7 %; asked: no loss", experiment, "rise", ("sheaves", f"{n} faults"),
                      ("cpu-slab-cas", f"{n} faults"), 0)
            yield Row("1.5", f"{n} threads, {text}: retries of 1,000 gets and puts",
                      "10.3 % in the spinlock; asked: 10", experiment, "at most",
                      ("sheaves", f"{n} retries_per_1000_barn_calls"), None, 10)
    for n in tables_aspace.THREADS:
        yield Row("1.5", f"{n} threads, every fault allocates: sheaves against a spinning barn",
                  "no loss", "page_fault3_alloc", "rise", ("sheaves", f"{n} faults"),
                  (tables_aspace.SPINNING, f"{n} faults"), 0)


    for n in tables_aspace.PROCESSES:
        yield Row("1.5", f"{n} processes, one mapping each: sheaves against none",
                  "not published; asked: no loss", "page_fault3_processes", "rise",
                  ("sheaves", f"{n} faults"), ("cpu-slab-cas", f"{n} faults"), 0)


def rows_16():
    for size in (64, 256, 1024):
        for front in ("sheaves-32", "sheaves"):
            for metric, text in (("touched_100", "pages under 1,000 allocations, in the end"),
                                 ("pinned_slabs", "slabs kept by what is cached"),
                                 ("left_KiB", "left after all was freed at random")):
                yield Row("1.6", f"{size} B, {front}: {text}", "said to lose", "locality", "times",
                          (front, f"{size} B {metric}"), ("no sheaves", f"{size} B {metric}"), 1)


def rows_rcu():
    for kind, text in (("", "all at once"), ("replace ", "replaced one by one")):
        for rival, limit in (("call_rcu", 0.20), ("call_rcu_array", 1.0)):
            yield Row("RCU", f"{text}: the freeing thread, against {rival}", "not published", "rcu",
                      "times", ("free_rcu", kind + "free"), (rival, kind + "free"), limit)
        yield Row("RCU", f"{text}: sheaves recycled", "not published; asked: 50 %", "rcu",
                  "at least", ("free_rcu", kind + "recycled_percent"), None, 50, "%")
    for ours, theirs in (("told", "untold"), ("epoch", "epoch_none")):
        yield Row("RCU", f"{ours}: KiB that wait, any grace period ends it", "-33 to -41 %",
                  "rcu_waits", "gain", (ours, "mean_KiB"), (theirs, "mean_KiB"), 33)


def rows_malloc():
    """will-it-scale's two for malloc. No table of the kernel's has them: beside the C library's."""
    for experiment in ("malloc1", "malloc2"):
        for cell in between_threads.TASKS:
            yield Row("will-it-scale", f"{experiment}, {cell}: pairs a second and task",
                      "not published; asked: no loss", experiment, "rise",
                      (OURS, f"{cell} pairs"), (PLAIN, f"{cell} pairs"), 0)


def rows_one_side():
    """An allocator that refused refills to callers which may not block lost most of its speed
    where one side allocates and the other frees."""
    for cell in between_threads.ONE_SIDE_CELLS:
        for how in list(between_threads.ONE_SIDE)[1:]:
            for side in ("alloc_ns", "free_ns"):
                yield Row("ublk", f"{cell}, {how}: {side} against calls that may wait",
                          "-64 % operations; asked: within 5 %", "one_side", "times",
                          (how, f"{cell} {side}"), ("blocking", f"{cell} {side}"), 1.05)


ROWS = [row for rows in (rows_11, rows_12, rows_13, rows_14, rows_15, rows_16, rows_rcu,
                         rows_malloc, rows_one_side)
        for row in rows()]


def judge(results):
    """Rows that were measured, in the order of the tables."""
    results = {**results, "node_counts": tables_aspace.with_shares(results.get("node_counts"))}
    return [row for each in ROWS if (row := each.judge(results))]


def counted(rows):
    words = [row["verdict"] for row in rows]
    return ", ".join(f"{words.count(word)} {word}" for word in (REACHED, UNCLEAR, MISSED))


def number(value):
    return "-" if value is None else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


HEAD = ["table", "cell", "published", "rival", "its figure", "Stook", "measured", "95 %", ""]


def table_rows(rows):
    """For the printers of a page: published figure, ours, verdict word."""
    return [HEAD] + [
        [row["table"], row["row"], row["published"], row["rival"] or "", number(row["theirs"]),
         number(row["ours"]), f"{number(row['measured'])} {row['unit']}".strip(),
         interval_text(row, number), row["verdict"]] for row in rows]


# What a line of the page has: all that was measured for one published figure stands in it.
COMPACT = ["table", "cell", "published", "measured here (95 %)"]
FORMS = re.compile(r", (capacity 32|grown|sheaves-32|sheaves)\b|^(\d+ (?:threads|processes))[:,] |"
                   r"^(.*), (?=no sheaves: cost)")
OF_THE_KERNEL = ("1.1", "1.2", "1.3", "1.4", "1.5", "1.6")


def compact(rows):
    """A line for each cell of the kernel's tables. The lines of a cell whose published figure is
    another, with the same measurement, are left to table_rows()."""
    lines = {}
    for row in rows:
        if row["table"] not in OF_THE_KERNEL or row["row"].endswith("general iterator"):
            continue
        form = FORMS.search(row["row"])
        text = FORMS.sub("", row["row"], 1)
        interval = interval_text(row, number)
        words = (f"{form[form.lastindex]}: " if form else "") + \
            f"{number(row['measured'])} {row['unit']}".strip() + \
            (f" ({interval})" if row["rival"] else "") + f" {row['verdict']}"
        lines.setdefault((row["table"], text, row["published"]), []).append(words)
    return [COMPACT] + [[*key, "; ".join(words)] for key, words in lines.items()]
