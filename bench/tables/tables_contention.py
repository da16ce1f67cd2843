"""
bench/tables/tables_contention.py - contention counted, and what the counts say of more CPUs

Purpose: prints what bench/counted/contention.cc counted with 1 to 16 threads, and what
bench/counted/slab_turns.cc counted on 1 to 16 CPUs that run in turn, and extrapolates both. The
models are texts of their own, MEETING and QUEUE, because the tables are of no use without them.
Place: run.py prints by way of tables.PRINTED. The counts of an emulated machine are in README.md.
"""

import re

from interval import summary

THREADS = (1, 2, 4, 8, 16)
CPUS = 192
RARE = 1.0      # visits for 1,000 objects: fewer say nothing of how often one meets another
MEETING = (
    f"The model of {CPUS} CPUs: a thread spends a fixed share h of its time where others can meet "
    "it (a lock held; the instructions between a load and its compare-and-swap), wherever the "
    "others are. So (n - 1) * h of its visits meet one of n - 1 others. h is fitted to the counts "
    f"by least squares through the origin. {CPUS} CPUs meet in {CPUS - 1} * h of all visits; at "
    "100 % they wait in a queue. The model leaves out two things. A line takes longer to move "
    "between many CPUs, which makes h larger. Threads that wait visit less often, which makes it "
    "smaller. Where there are more threads than CPUs, h is too large: a thread is stopped with "
    "the lock held, and all others meet it for milliseconds. slab_turns does not have that flaw.")
QUEUE = (
    "Each thread stands for a CPU. They run in turn, four instructions on average, so the host's "
    "CPUs and its load do not matter. All that they do is to take batches of 32 objects of one "
    "cache from one node's slabs and to give them back in random order. No sheaf or barn is in "
    "between. The column held has the instructions with the lock of the node's list held. The "
    "model: n CPUs keep the lock taken for n * held / all of the time. From 1 on they queue up, so "
    f"all / held CPUs do where they do nothing else. {CPUS} CPUs do not if each makes more than "
    f"{CPUS} * held instructions for each object that comes to the slabs. An object that stays in "
    "sheaves and barns does not come there. The model leaves out that cache lines move between "
    "CPUs, which makes more instructions of those with the lock held.")
# Options of bench/slab_turns.
TURNS = {"own": [], "crossing": ["crossing=1"]}
TURNS_TEXTS = {"own": "each gives back its own objects",
               "crossing": "each gives back what its neighbour took"}
TURNS_COLUMNS = {"steps": "all", "held": "held", "slow": "time", "fill_asked": "asks by fills",
                 "fill_busy": "lock taken", "give_asked": "asks by gives"}
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
                        [f"{often['median']:.2f}" if often else "-", at_192(h, often)])
        say(f"  frees in random order; {text}")
        print_table(rows, len(rows[0]))
    say(MEETING)


def at_192(h, often):
    if h is None or not often:
        return "-"
    return "too few visits" if often["median"] < RARE else percent(extrapolated(h))


def print_turns(table, say, print_table):
    for kind, text in TURNS_TEXTS.items():
        rows = [["CPUs in turn"] + [*TURNS_COLUMNS.values()] +
                ["CPUs that queue up", f"instructions with which {CPUS} do not"]]
        for n in THREADS:
            found = {m: summary(table.get(f"{n} CPUs", {}).get(f"{kind} {m}", []))
                     for m in TURNS_COLUMNS}
            if not all(found.values()):
                continue
            of = {metric: s["median"] for metric, s in found.items()}
            rows.append([str(n)] + [f"{of[m]:,.1f}" for m in TURNS_COLUMNS] +
                        [f"{of['steps'] / of['held']:.1f}", f"{CPUS * of['held']:,.0f}"]
                        if of["held"] else [str(n)] + ["-"] * (len(rows[0]) - 1))
        if len(rows) > 1:
            say(f"  {text}; instructions for one object, asks for 1,000")
            print_table(rows, len(rows[0]))
    say(QUEUE)


PRINTED = {"contention": print_contention, "slab_turns": print_turns}
