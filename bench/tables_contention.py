"""
bench/tables_contention.py - contention counted, and what the counts say of more CPUs

Purpose: prints what bench/micro/contention.cc counted with 1 to 16 threads, and extrapolates.
The model: a thread spends a fixed share h of its time where others can meet it (a lock held; the
instructions between a load and its compare-and-swap), wherever the others are. So of its visits
(n - 1) * h meet one of n - 1 others. h is fitted to the counts by least squares through the origin.
At 192 CPUs that is 191 * h of all visits; from 1 on, the lock is always taken: the CPUs wait in a
queue, and only dividing the lock helps. What the model leaves out: a line takes longer to move
between many CPUs, which makes h larger; waiting threads visit less often, which makes it smaller.
Place: run.py prints by way of tables.PRINTED. The counts of an emulated machine are in README.md.
"""

import re

from interval import summary

THREADS = (1, 2, 4, 8, 16)
CPUS = 192
# Options of bench/contention.
KINDS = {"own": ["objects=20000", "rounds=12"],
         "own, 32": ["capacity=32", "objects=2000", "rounds=25"],
         "crossing, 32": ["capacity=32", "objects=2000", "rounds=25", "crossing=1"]}
TEXTS = {"own": "each thread frees its own 20,000 objects; sheaves as they come",
         "own, 32": "each thread frees its own 2,000 objects; sheaves of 32",
         "crossing, 32": "each frees its neighbour's 2,000; sheaves of 32"}
# Name: (how often one was met, of how many visits).
MEETINGS = {"barn, retries": ("barn_retries", "barn_calls"),
            "slab lists, lock taken": ("list_busy", "list_asked"),
            "page bins, lock taken": ("bins_busy", "bins_asked")}


def share(table, threads, kind, met, visits):
    """Of 1; None if it was not measured, or if there were no visits."""
    answers = table.get(f"{threads} threads", {})
    found = [summary(answers.get(f"{kind} {name}", [])) for name in (met, visits)]
    if not all(found) or not found[1]["median"]:
        return None
    return found[0]["median"] / found[1]["median"]


def fitted(points):
    """h of share = (n - 1) * h, for [(n, share)]; None without a point of several threads."""
    below = sum((n - 1) ** 2 for n, _ in points)
    return sum((n - 1) * s for n, s in points) / below if below else None


def extrapolated(h, cpus=CPUS):
    return min((cpus - 1) * h, 1.0)


def points(table, kind, met, visits):
    found = sorted(int(match.group()) for name in table if (match := re.match(r"\d+", name)))
    return [(n, s) for n in found if (s := share(table, n, kind, met, visits)) is not None]


def percent(value):
    return "-" if value is None else f"{100 * value:.2f} %"


def print_contention(table, say, print_table):
    for kind, text in TEXTS.items():
        rows = [["met, of visits"] + [f"{n} threads" for n in THREADS] +
                ["visits for 1,000 objects", f"model, {CPUS} CPUs"]]
        for name, (met, visits) in MEETINGS.items():
            found = points(table, kind, met, visits)
            h = fitted(found)
            often = summary(table.get(f"{THREADS[-1]} threads", {}).get(f"{kind} {visits}", []))
            rows.append([name] + [percent(dict(found).get(n)) for n in THREADS] +
                        [f"{often['median']:.2f}" if often else "-",
                         "-" if h is None else percent(extrapolated(h))])
        say(f"  frees in random order; {text}")
        print_table(rows, len(rows[0]))


PRINTED = {"contention": print_contention}
