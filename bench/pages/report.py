"""
bench/pages/report.py - results as Markdown: docs/BENCHMARKS.md, and README's table

Purpose: turns result files of `stook bench` into one page. What the page says is in these files, so
it is never written by hand.
Place: `stook bench --report OUT.md FILE.json ...`. The results that docs/BENCHMARKS.md is made of
are in docs/figures. The test tools/benchmarks compares the page with them. page.py writes HTML from
the same parts.
"""

import textwrap

import promises
import published
import scale
import suites
import tables
import workloads
from text import measurement_rows, number, verdict_rows

HEAD = """# Benchmarks

This page is written by `stook bench` from the results in `docs/figures`; do not edit it. What the
experiments are, and how they are measured, is in `bench/README.md`. What was measured at other
times is in [PERFORMANCE.md](PERFORMANCE.md).

    stook bench --report docs/BENCHMARKS.md docs/figures
"""
FIGURES_HEAD = "| 64-byte objects | Stook | best peer | ratio | experiment |"


class NoPlace(Exception):
    """Why the table cannot be written into a file."""


class Page:
    """Lines of Markdown. say() and table() have the form that tables.py expects of its printers."""

    def __init__(self):
        self.lines = []

    def say(self, text=""):
        self.lines.append(text.strip())
        self.lines.append("")

    def heading(self, level, text):
        self.say("#" * level + " " + text)

    def table(self, rows, columns):
        def line(cells):
            return "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"

        rows = [list(row)[:columns] for row in rows]
        self.lines += [line(rows[0]), "|" + "---|" * len(rows[0])]
        self.lines += [line(row) for row in rows[1:]] + [""]

    def text(self):
        while self.lines and not self.lines[-1]:
            self.lines.pop()
        return "\n".join(self.lines) + "\n"


def after(machine, words):
    """The load after a run, in @words. A run that was cut short may not have it."""
    return words.format(machine["load_after"]) if "load_after" in machine else ""


def about(results):
    """What was measured where, as sentences."""
    m = results["machine"]
    how = ", ".join(m[key] for key in ("compiler", "backend") if m.get(key))
    short = ", a short run: it shows that everything works" if results["quick"] else \
        ", with short programs" if results.get("short") else ""
    yield (f"{m['date'][:10]}, {m['processor']}, {m['cpus']} CPUs, Linux {m['kernel']}, "
           f"{m['libc']}, {how + ', ' if how else ''}commit {m['commit']}, load {m['load']:.2f} "
           f"before{after(m, ' and {:.2f} after')}; at most {results['pairs']} interleaved rounds"
           f"{short}.")
    if max(m["load"], m.get("load_after", 0)) > 0.5:
        yield "Other programs ran meanwhile: times are noisy, and verdicts may change."


def write_wins(page, results):
    found = workloads.all_of(results)
    if not found:
        return
    page.heading(3, "Wins and losses")
    page.say(workloads.sentence(found, "time", "Time"))
    page.say(workloads.sentence(found, "memory", "Memory"))
    page.say("A ratio is what Stook takes by what the best peer takes, of neighbouring runs; "
             "where more is better, it is turned over: below 1, Stook is ahead. A difference needs "
             "six pairs and an interval without 1. " +
             workloads.WHAT_A_RATIO_IS)
    page.table(workloads.rows(found), len(workloads.HEAD))


def write_published(page, results):
    rows = published.judge(results["results"])
    if not rows:
        return
    page.heading(3, "Published tables, cell by cell")
    page.say("The kernel work's figures, ours, and one word: reached, if the worse end of the "
             "interval reaches what was published; unclear, if only the median does; missed. "
             f"Here: {published.counted(rows)}.")
    page.table(published.table_rows(rows), len(published.HEAD))


def write_experiments(page, results):
    for name, table in results["results"].items():
        page.heading(3, name)
        if name in suites.ALL:
            page.say(" ".join(suites.ALL[name].__doc__.split()))
        if name in tables.PRINTED:
            tables.PRINTED[name](table, page.say, page.table)
        elif table and name not in workloads.PRINTED:
            rows = measurement_rows(table, suites.experiments.SHOWN.get(name))
            page.table(rows, len(rows[0]))


def write_run(page, name, results):
    page.heading(2, name.replace("-", " ").capitalize())
    for text in about(results):
        page.say(text)
    if results.get("command"):
        page.lines += ["    " + results["command"].replace(" --peers", " \\\n        --peers"), ""]
    for left, why in results["left_out"].items():
        page.say(f"Left out: {left}: {why}")
    write_wins(page, results)
    if len(rows := scale.growth_rows(results)) > 1:
        page.heading(3, "Growth")
        page.say("How costs grow: the exponent b of the curve step^b that fits best. 0 is flat, 1 "
                 "grows as the step does.")
        page.table(rows, 7)
    if results["figures"]:
        page.heading(3, "Figures")
        page.say("Ratios are medians of those of neighbouring runs. A figure passes if the worse "
                 "end of its interval passes.")
        page.table(verdict_rows(results["figures"]), 10)
    write_published(page, results)
    write_experiments(page, results)


def markdown(runs):
    """The page of [(name, results)], oldest first."""
    page = Page()
    page.lines += HEAD.splitlines() + [""]
    page.heading(2, "Where Stook must be")
    page.say(promises.sentence(runs))
    page.say(promises.EXPLAINED)
    page.table(promises.rows(runs), len(promises.HEAD))
    for name, results in reversed(runs):
        write_run(page, name, results)
    return page.text()


# README's rows: text, rule, cell. Without a rule, the workload of that experiment and cell.
BEFORE_SHEAVES = workloads.Rule("table11", r"(\S+)", ours="sheaves", unit="cycles",
                                rivals=lambda name: name == "none-cas")
README_ROWS = [
    ("object cache, inlined", "object_pair", "pair"),
    ("malloc and free, preloaded", "malloc_pair", "pair/64"),
    ("the same, sizes mixed", "malloc_pair", "pair_mix"),
    ("64 MiB alive, replaced at random", "malloc_pair", "live_64MiB"),
    ("freed by another thread, objects a us", "prodcons", "64"),
    ("freed by RCU, on the thread that frees", "rcu", "free"),
    ("lookup among 100,000 ranges", "maple_map", "100,000 ranges"),
    ("1,000,000 pairs, SLUB before sheaves, cycles", "table11", "1"),
]


def newest_side(runs, experiment, cell):
    """(results, Side) of the newest results that have this workload's time, or None."""
    for _, results in reversed(runs):
        found = list(workloads.of_rule(BEFORE_SHEAVES, results["results"].get(experiment, {}))) \
            if experiment == BEFORE_SHEAVES.experiment else workloads.all_of(results)
        for w in found:
            if (w.experiment, w.cell) == (experiment, cell) and w.time:
                return results, w.time
    return None


def readme_place(results):
    """Where and how README's rows were measured."""
    m = results["machine"]
    text = (f"{m['processor']}, {m['cpus']} CPUs, Linux {m['kernel'].split('-')[0]}, load "
            f"{m['load']:.1f}{after(m, ' to {:.1f}')}; ns of processor time, ratios with 95 % "
            "intervals. `stook bench --only EXPERIMENT` repeats a row.")
    return [*textwrap.wrap(text, 100), ""]


def readme_rows(runs):
    """The table of README, from the newest results that have each row."""
    lines, place = [FIGURES_HEAD, "|---|---|---|---|---|"], []
    for text, experiment, cell in README_ROWS:
        if found := newest_side(runs, experiment, cell):
            results, s = found
            place = place or readme_place(results)
            low, high = s.cost_bounds()
            lines.append(f"| {text} | {number(s.ours['median'])} | "
                         f"{s.rival}: {number(s.theirs['median'])} | {s.cost():.2f} "
                         f"({low:.2f} to {high:.2f}) | `{experiment}` |")
    return place, lines


def readme(old, runs):
    """README with its table of figures replaced, and the paragraph before it."""
    lines = old.splitlines()
    if FIGURES_HEAD not in lines:
        raise NoPlace("it has no table that begins with " + FIGURES_HEAD)
    first = lines.index(FIGURES_HEAD)
    last = next((i for i in range(first, len(lines)) if not lines[i].startswith("|")), len(lines))
    place, table = readme_rows(runs)
    above = next((i + 1 for i in range(first - 1, -1, -1) if lines[i].startswith("#")), first)
    before = lines[:above] + [""] + place if place else lines[:first]
    return "\n".join(before + table + lines[last:]) + "\n"
