#!/usr/bin/env python3
"""
bench/report.py - write docs/BENCHMARKS.md from results

Purpose: turns the JSON files that run.py and patterns.py leave into one page. What the page says is
in these files, so it is never written by hand.
Place: after run.py and patterns.py. The results that the page is made of are in docs/figures. The
test tools/benchmarks compares the page with them.

Use: report.py [--out FILE] RESULTS.json ...        (standard output without --out)
     bench/report.py --out docs/BENCHMARKS.md docs/figures/*.json
"""

import argparse
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE / "peers"))

import experiments                                          # noqa: E402
import tables                                               # noqa: E402
from run import measurement_rows, number, verdict_rows      # noqa: E402

HEAD = """# Benchmarks

This page is written by `bench/report.py` from the results in `docs/figures`; do not edit it. What
the experiments are, and how they are measured, is in `bench/README.md`. What was measured at other
times is in [PERFORMANCE.md](PERFORMANCE.md).

    bench/report.py --out docs/BENCHMARKS.md docs/figures/*.json
"""


class Page:
    """Lines of Markdown. say() and table() have the form that tables.py expects of its printers."""

    def __init__(self):
        self.lines = []

    def say(self, text=""):
        self.lines.append(text.strip())
        self.lines.append("")

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


def about(page, results, amount):
    m = results["machine"]
    page.say(f"{m['date'][:10]}, {m['processor']}, {m['cpus']} CPUs, Linux {m['kernel']}, "
             f"{m['libc']}, commit {m['commit']},")
    page.lines.pop()
    page.say(f"load {m['load']:.2f} before and {m['load_after']:.2f} after; {amount}.")
    if max(m["load"], m["load_after"]) > 0.5:
        page.say("Other programs ran meanwhile: times are noisy, and verdicts may change.")
    if results.get("command"):
        page.lines += ["    " + results["command"].replace(" --peers", " \\\n        --peers"), ""]


def write_run(page, results):
    short = ", a short run: it shows that everything works" if results["quick"] else ""
    about(page, results, f"{results['pairs']} interleaved rounds{short}")
    for name, why in results["left_out"].items():
        page.say(f"Left out: {name}: {why}")
    for name, table in results["results"].items():
        page.say(f"### {name}")
        what = experiments.ALL[name].__doc__ if name in experiments.ALL else ""
        page.say(" ".join(what.split()))
        if name in tables.PRINTED:
            tables.PRINTED[name](table, page.say, page.table)
        elif table:
            rows = measurement_rows(table, experiments.SHOWN.get(name))
            page.table(rows, len(rows[0]))
    if results["figures"]:
        page.say("### Figures")
        page.say("Ratios of neighbouring runs. A figure passes if the worse end of its interval "
                 "passes.")
        page.table(verdict_rows(results["figures"]), 10)


def write_patterns(page, results):
    about(page, results, f"{results['rounds']} interleaved rounds of {results['repeat']} repeats")
    names = {"ns": "processor time", "first_ns": "processor time, first repeat",
             "peak_KiB": "peak memory", "end_KiB": "memory at the end"}
    page.say("Geometric means of Stook's figure by that of the peers; above 1, Stook takes more.")
    rows = [["threads", "figure", "to the best", "to the median", "rows", "behind the best in"]]
    for group, metrics in results["means"].items():
        rows += [[group, names[metric], number(m["to_best"]), number(m["to_median"]),
                  str(m["rows"]), str(m["worse"])] for metric, m in metrics.items()]
    page.table(rows, 6)
    rows = [["pattern/threads", "ns", "best", "", "ratio", "peak MiB", "best", "", "ratio"]]
    for s in results["standings"]:
        time, peak = s["metrics"]["ns"], s["metrics"]["peak_KiB"]
        rows.append([s["row"], number(time["ours"]), number(time["best"]), time["best_peer"],
                     number(time["to_best"]), number(peak["ours"] / 1024),
                     number(peak["best"] / 1024), peak["best_peer"], number(peak["to_best"])])
    page.table(rows, 9)


def main():
    parser = argparse.ArgumentParser(description="Write docs/BENCHMARKS.md from results.")
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="RESULTS.json")
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE", help="page (standard output)")
    asked = parser.parse_args()
    page = Page()
    page.lines += HEAD.splitlines() + [""]
    for path in asked.files:
        try:
            results = json.loads(path.read_text())
            page.say(f"## {path.stem.replace('-', ' ').capitalize()}")
            (write_patterns if "standings" in results else write_run)(page, results)
        except (OSError, ValueError, KeyError) as why:
            parser.error(f"{path}: no results of run.py or patterns.py: {why!r}")
    if asked.out:
        asked.out.write_text(page.text())
    else:
        sys.stdout.write(page.text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
