"""
bench/pages/report.py - results as Markdown: docs/BENCHMARKS.md, bench/TARGETS.md, README's table

Purpose: what these pages say is in the result file of one run, so it is never written by hand.
Place: `stook bench --report OUT.md FILE.json`. The run that docs/BENCHMARKS.md is made of is
docs/figures/run.json. The test tools/benchmarks compares the pages with it. page.py writes HTML
from the same parts.
"""

import textwrap

import evidence
import published
import targets
import workloads

HEAD = """# Benchmarks

`stook bench` writes this page from one run, `docs/figures/run.json`; do not edit it. The page with
plots, and with every row of the run, is `stook bench --report page.html docs/figures/run.json`.
"""
TARGETS_HEAD = """# Targets of the developers

`stook bench --report bench/TARGETS.md docs/figures/run.json` writes this page. Targets are aims:
what was measured beside other allocators is in [BENCHMARKS.md](../docs/BENCHMARKS.md).
"""
FIGURES_HEAD = "| | Stook | best peer | ratio (95 %) | measured by |"
HOW = """\
Rows of single calls: all contenders run at the same time and take turns of two milliseconds of
processor time. A calibration loop runs before and behind each; where the two differ by more than 3
%, the slice is left out. Times are by the speed that the loops show. Twelve slices of each
contender, in processes started anew, are a block; its figure is the lower quartile. Blocks go on
until the interval of the ratio is narrower than 3 %, or there are thirty, or the time is over (six
at least).

Programs and other rows: whole runs, one of each contender in turn, forth and back; the first run
counts, none is repeated for a better one. Time is user and system time of the program and its
children; memory is the most that one of its processes had resident, as the kernel counts it.

A ratio is what Stook takes by what the peer takes: the median of the ratios of blocks or of
neighbouring runs, with the interval that encloses the median with 95 % (order statistics, which
assume nothing about the noise). Below 1, Stook takes less. Ahead and behind need six pairs and an
interval without 1. Level: the interval has 1 in it, and is at most a tenth of the ratio. All else
is unclear."""


class NoPlace(Exception):
    """Why the table cannot be written into a file."""


class Page:
    """Lines of Markdown. say() and table() have the form that tables.py expects of its printers."""

    def __init__(self):
        self.lines = []

    def say(self, text=""):
        self.lines += textwrap.wrap(text.strip(), 100) + [""]

    def heading(self, level, text):
        self.lines += ["#" * level + " " + text, ""]

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
        ", some programs with less work than in a whole run" if results.get("short") else ""
    yield (f"{m['date'][:10]}, {m['processor']}, {m['cpus']} CPUs, Linux {m['linux']}, "
           f"{m['libc']}, {how + ', ' if how else ''}commit {m['commit']}; {results['pairs']} "
           f"interleaved runs at most{short}.")
    if max(m["load"], m.get("load_after", 0)) > 0.5:
        yield (f"Other programs ran meanwhile: the load was {m['load']:.1f} "
               f"before{after(m, ' and {:.1f} after')}. Intervals are wider for that.")
    if results.get("peers"):
        yield ("Peers: " + ", ".join(f"{name} {version}".strip()
                                     for name, version in results["peers"].items()) +
               ". Each is a version that a registry of packages has; newer releases of some exist.")


def write_sum(page, results):
    found = workloads.all_of(results)
    page.heading(2, "Wins and losses")
    if not found:
        page.say("No workload was measured on Stook and a peer.")
        return
    some = evidence.shown(found)
    page.say("Geometric means of the ratios of this page's rows, beside each peer alone; below 1, "
             "Stook takes less.")
    table = evidence.single_peers(results)
    page.table(table, len(table[0]))
    page.say("And beside the best peer of each row, which is another one in each:")
    page.say(" ".join(workloads.sentence(rows, which, f"{which.capitalize()}, {what}")
                      for which in ("time", "memory")
                      for rows, what in ((some, "rows of this page"),
                                         (found, "all rows of the run"))))
    for which in ("time", "memory"):
        for says, what in ((workloads.BEHIND, "Losses"), (workloads.AHEAD, "Wins")):
            if words := evidence.named(some, which, says):
                page.say(f"**{what}, {which}.** {words}.")


def write_rows(page, title, text, some):
    if some:
        page.heading(2, title)
        page.say(text)
        page.table(evidence.rows(some), len(evidence.HEAD))


def write_published(page, results):
    rows = [row for row in published.judge(results["results"])
            if row["table"] in published.OF_THE_KERNEL]
    if not rows:
        return
    page.heading(2, "The kernel's published tables, cell by cell")
    page.say("What sheaves gained in the kernel, and here against its front end before them, made "
             "anew from its description (`bench/README.md`). Reached: the worse end of the "
             f"interval reaches what was published. {published.counted(rows)}.")
    page.table(published.compact(rows), len(published.COMPACT))


def command(results):
    """Lines for a shell, broken at blanks and commas."""
    lines = textwrap.wrap(results.get("command_line", "").replace(",", ", "), 94,
                          break_on_hyphens=False)
    lines = [line.replace(", ", ",") for line in lines]
    return [line + ("\\" if line.endswith(",") else " \\") for line in lines[:-1]] + lines[-1:]


def markdown(results):
    """docs/BENCHMARKS.md."""
    page, found = Page(), workloads.all_of(results)
    page.lines += HEAD.splitlines() + [""]
    for text in about(results):
        page.say(text)
    page.lines += ["    " + line for line in command(results)] + [""]
    write_sum(page, results)
    write_rows(page, "Programs", "Whole programs of the distribution, with the library preloaded. "
               "python and php have each object come from malloc (`PYTHONMALLOC=malloc`, "
               "`USE_ZEND_ALLOC=0`).", evidence.of(found, "programs"))
    write_rows(page, "Workloads", "Calls and patterns of calls.", evidence.chosen(found))
    write_rows(page, "Allocation mixes of a fleet", "Published mixes of six programs of a large "
               "fleet, at a steady heap; memory is the peak by what is asked for.",
               evidence.of(found, "fleet_mixes"))
    write_published(page, results)
    page.heading(2, "How it was measured")
    page.lines += HOW.splitlines() + [""]
    if results["left_out"]:
        page.say("Left out: " + left_out(results["left_out"]))
    return page.text()


def left_out(reasons):
    """One sentence for each reason."""
    names = {}
    for name, why in reasons.items():
        names.setdefault(why, []).append(name)
    return "; ".join(f"{', '.join(of)} ({why})" for why, of in names.items()) + "."


def target_page(results):
    """bench/TARGETS.md."""
    page = Page()
    page.lines += TARGETS_HEAD.splitlines() + [""]
    for text in (*about(results), targets.sentence(results), targets.EXPLAINED):
        page.say(text)
    page.table(targets.rows(results), len(targets.HEAD))
    return page.text()


def figures(results):
    """The table of README."""
    return [FIGURES_HEAD, "|---|---|---|---|---|",
            *("| " + " | ".join(row) + " |" for row in evidence.readme_rows(results))]


def readme(old, results):
    """README with its table of figures replaced."""
    lines = old.splitlines()
    if FIGURES_HEAD not in lines:
        raise NoPlace("it has no table that begins with " + FIGURES_HEAD)
    first = lines.index(FIGURES_HEAD)
    last = next((i for i in range(first, len(lines)) if not lines[i].startswith("|")), len(lines))
    return "\n".join(lines[:first] + figures(results) + lines[last:]) + "\n"
