#!/usr/bin/env python3
"""
bench/compare.py - two result files side by side

Purpose: shows what changed between two runs of run.py: figures first, then every measurement of
Stook whose intervals do not overlap. Absolute times of different machines, or of a machine that was
busy, mean nothing: compare ratios.

Use: compare.py BEFORE.json AFTER.json [--all]
"""

import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from interval import summary                # noqa: E402
from run import number, print_table, say    # noqa: E402


def figure_rows(before, after):
    old = {f["figure"]: f for f in before["figures"]}
    rows = [["figure", "before", "after", "at least", "before", "after"]]
    for new in after["figures"]:
        was = old.get(new["figure"])
        rows.append([new["figure"], f"{number(was['median'])} {was['unit']}" if was else "-",
                     f"{number(new['median'])} {new['unit']}", number(new["at_least"]),
                     was["verdict"] if was else "-", new["verdict"]])
    return rows


def measurement_rows(before, after, everything):
    rows = [["measurement", "before", "after", "change"]]
    for experiment, table in after["results"].items():
        for contender, metrics in table.items():
            for metric, values in metrics.items():
                new = summary(values)
                old = summary(before["results"].get(experiment, {}).get(contender, {})
                              .get(metric, []))
                if not new or not old:
                    continue
                apart = new["low"] > old["high"] or new["high"] < old["low"]
                if not everything and not apart:
                    continue
                change = (f"{100 * (new['median'] / old['median'] - 1):+.1f} %" if old["median"]
                          else "-")
                rows.append([f"{experiment} {contender} {metric}", number(old["median"]),
                             number(new["median"]), change])
    return rows


def main():
    parser = argparse.ArgumentParser(description="Compare two result files of run.py.")
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("--all", action="store_true",
                        help="also what did not change beyond its spread")
    asked = parser.parse_args()
    try:
        before, after = json.loads(asked.before.read_text()), json.loads(asked.after.read_text())
    except (OSError, ValueError) as why:
        print(f"compare.py: {why}", file=sys.stderr)
        return 2
    for name, run in (("before", before), ("after", after)):
        m = run["machine"]
        say(f"{name}: {m['commit']}, {m['processor']}, Linux {m['kernel']}, {m['date']}, "
            f"{run['pairs']} rounds")
    if before["machine"]["processor"] != after["machine"]["processor"]:
        say("different processors: only ratios can be compared")
    say()
    print_table(figure_rows(before, after), 6)
    say()
    print_table(measurement_rows(before, after, asked.all), 4)
    return 0


if __name__ == "__main__":
    sys.exit(main())
