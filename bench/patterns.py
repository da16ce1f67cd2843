#!/usr/bin/env python3
"""
bench/patterns.py - patterns of allocation, Stook beside other allocators

Purpose: runs each pattern of bench/patterns with 1, 2 and 16 threads, all contenders in turn, and
prints how Stook stands to the best peer and to the median of the peers: processor time, peak and
final memory.
Place: beside run.py, which measures promised figures. The peers are the same (contenders.py,
peers/build.py).
Figures: time is processor time of all threads for an operation, the lower quartile of rounds: what
disturbs a run only adds to it. Each answer says how long fixed loops took around it: longer if the
clock rate is lower, or another program uses the core's other thread. An answer is of a quiet
machine if that is within QUIET of the least of all answers. With --patience N a row goes on, up to
N times the rounds, until each contender has such an answer. Memory is anonymous memory, the median
of the rounds. A ratio above 1 means that Stook takes more. Rows whose median peer takes less than 1
MiB are left out of the geometric means of memory. A library given by --with is no peer; Stook's
ratio to it has columns of its own.

Use: patterns.py [--list] [--filter REGEX] [--rounds N] [--patience N] [--with NAME=LIBRARY] ...
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Installed, all but peers lie in this folder.
sys.path[:0] = [str(HERE / folder) for folder in (".", "measure", "tables", "pages", "peers")]

import build as peer_build                                  # noqa: E402
import patterns_plot                                        # noqa: E402
from contenders import OURS, PACKAGED, PLAIN, Contender, preloaded  # noqa: E402
from engine import Failed, Progress, macro, turn            # noqa: E402
from interval import geometric_mean, median                 # noqa: E402
from machine import machine, title                          # noqa: E402
from text import end_quietly, print_table, say              # noqa: E402

QUIET = 1.06                    # the loops repeat within 2 % where nothing disturbs them
MEMORY_FLOOR_KIB = 1024         # arbitrary: below it, memory is what the library itself needs


def known_peers():
    return [*peer_build.PEERS, *PACKAGED]


def tell(text, end="\n"):
    """Progress; results alone go to standard output."""
    print(text, end=end, file=sys.stderr, flush=True)


class Row:
    """One pattern with one number of threads."""

    def __init__(self, pattern, threads, what):
        self.pattern, self.threads, self.what = pattern, threads, what
        self.name = f"{pattern}/{threads}"


def every_pattern():
    """(name, numbers of threads, what it is) of each pattern, from the tables in the sources: what
    `patterns list` prints, without a build."""
    for name in ("programs", "handed", "shapes", "large"):
        text = (HERE / "patterns" / f"{name}.cc").read_text()
        numbers = dict(re.findall(r'\*(\w+) = "([\d,]+)"', text))
        for pattern, threads, what in re.findall(
                r'^ +\{"(\w+)", ("?[\w,]+"?), [^"}]*?"((?:[^"]|"\s*")*)"\},', text, re.M):
            threads = numbers[threads] if threads in numbers else threads.strip('"')
            yield pattern, [int(n) for n in threads.split(",")], re.sub(r'"\s*"', "", what)


def rows_of(chosen, threads):
    rows = [Row(pattern, n, what) for pattern, numbers, what in every_pattern() for n in numbers]
    return [r for r in rows if re.search(chosen, r.name) and (not threads or r.threads in threads)]


def measure(program, rows, contenders, asked):
    """{row: {contender: [answer or None]}}, one for each round; a slow minute falls into one."""
    results = {r.name: {c.name: [] for c in contenders} for r in rows}
    try:
        for n in range(asked.rounds * asked.patience):
            left = rows if n < asked.rounds else loud_rows(results, rows)
            measure_round(results, program, left, contenders, asked, n)
    except KeyboardInterrupt:
        tell("\ninterrupted; what was measured until now follows")
    return results


def measure_round(results, program, rows, contenders, asked, n):
    progress = Progress(f"round {n + 1}", len(rows) * len(contenders))
    for row in rows:
        for contender in turn(contenders, n):
            progress.step(f"{row.name}, {contender.name}")
            command = [program, row.pattern, f"threads={row.threads}", f"seed={asked.seed}",
                       f"percent={asked.percent}", f"repeat={asked.repeat}"]
            answers = results[row.name][contender.name]
            try:
                answers.append(macro(command, contender))
            except Failed as why:
                if None not in answers:
                    tell(f"\n{row.name}, {contender.name}: {why}")
                answers.append(None)
    progress.clear()


def quiet_limit(results):
    """What the loops take at most on a quiet machine."""
    spins = [a["spin_ns"] for of in results.values() for answers in of.values()
             for a in answers if a]
    return min(spins, default=0) * QUIET


def loud(by_contender, limit):
    """The contenders without an answer of a quiet machine; not those that never answered."""
    return [c for c, answers in by_contender.items()
            if any(answers) and not any(a and a["spin_ns"] <= limit for a in answers)]


def loud_rows(results, rows):
    limit = quiet_limit(results)
    return [r for r in rows if loud(results[r.name], limit)]


def low(values):
    """The lower quartile; of fewer than five the least. Single rounds of two threads showed half
    of the usual time, so the least of many is not of use."""
    return sorted(values)[(len(values) - 1) // 4]


METRICS = {"ns": low, "first_ns": low, "wall_ns": low, "peak_KiB": median, "end_KiB": median}


def condensed(answers):
    """One value of each metric from the rounds that gave an answer, or None."""
    have = [a for a in answers if a]
    return {m: how([a[m] for a in have]) for m, how in METRICS.items()} if have else None


def over(ours, theirs):
    return ours / theirs if theirs else None


def standing(name, by_contender, more):
    """Ours beside the best and the median peer, for each metric; None if either side is missing."""
    values = {c: v for c, answers in by_contender.items() if (v := condensed(answers))}
    peers = {c: v for c, v in values.items() if c != OURS and c not in more}
    if OURS not in values or not peers:
        return None
    metrics = {}
    for metric in METRICS:
        best = min(peers, key=lambda c: peers[c][metric])
        ours, least = values[OURS][metric], peers[best][metric]
        middle = median([v[metric] for v in peers.values()])
        metrics[metric] = {"ours": ours, "best": least, "best_peer": best, "median": middle,
                           "to_best": over(ours, least), "to_median": over(ours, middle),
                           "to_more": {c: over(ours, values[c][metric])
                                       for c in more if c in values},
                           "all": {c: v[metric] for c, v in values.items()}}
    return {"row": name, "metrics": metrics}


def means(standings, more):
    """{group: {metric: {to_best, to_median, ...}}} for all rows and for each number of threads."""
    groups = {"all": standings}
    for s in standings:
        groups.setdefault(s["row"].split("/")[1] + " threads", []).append(s)
    table = {}
    for group, members in groups.items():
        for metric in ("ns", "first_ns", "peak_KiB", "end_KiB"):
            cells = [s["metrics"][metric] for s in members]
            if metric.endswith("KiB"):
                cells = [c for c in cells if c["median"] >= MEMORY_FLOOR_KIB]
            cells = [c for c in cells if c["to_best"] and c["to_median"]]
            table.setdefault(group, {})[metric] = {
                "to_best": geometric_mean([c["to_best"] for c in cells]),
                "to_median": geometric_mean([c["to_median"] for c in cells]),
                "to_more": {m: geometric_mean([r for c in cells if (r := c["to_more"].get(m))])
                            for m in more},
                "rows": len(cells), "worse": sum(c["to_best"] > 1 for c in cells)}
    return table


def amount(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def ratio(value):
    return "-" if value is None else f"{value:.2f}"


def print_standings(standings, more):
    to_more = ["to " + name for name in more]
    table = [["pattern/threads", "ns", "best", "", "to best", "median", *to_more,
              "peak MiB", "best", "", "to best", "median", *to_more, "end MiB", "best"]]
    for s in standings:
        cells = [s["row"]]
        for metric, scale in (("ns", 1), ("peak_KiB", 1024)):
            m = s["metrics"][metric]
            cells += [amount(m["ours"] / scale), amount(m["best"] / scale), m["best_peer"],
                      ratio(m["to_best"]), ratio(m["to_median"]),
                      *(ratio(m["to_more"].get(name)) for name in more)]
        end = s["metrics"]["end_KiB"]
        table.append(cells + [amount(end["ours"] / 1024), amount(end["best"] / 1024)])
    print_table(table, len(table[0]))


def print_means(table, more):
    names = {"ns": "processor time", "first_ns": "processor time, first repeat",
             "peak_KiB": "peak memory", "end_KiB": "memory at the end"}
    lines = [["geometric means", "", "to best", "to median", *("to " + name for name in more),
              "rows", "behind the best in"]]
    for group, metrics in table.items():
        for metric, m in metrics.items():
            lines.append([group, names[metric], ratio(m["to_best"]), ratio(m["to_median"]),
                          *(ratio(m["to_more"][name]) for name in more), str(m["rows"]),
                          str(m["worse"])])
    print_table(lines, len(lines[0]))


def print_loud(results):
    """Which figures say little about time."""
    limit = quiet_limit(results)
    found = [f"  {row}: {', '.join(names)}" for row, of in results.items()
             if (names := loud(of, limit))]
    if found:
        say("\nThe machine was never quiet while these ran (--patience lets them run more often):")
        for line in found:
            say(line)


def arguments():
    parser = argparse.ArgumentParser(description="Patterns of allocation, Stook beside its peers.")
    add = parser.add_argument
    add("--build", type=pathlib.Path, default=HERE.parent / "build", help="build folder (build)")
    add("--list", action="store_true", help="name the rows and end")
    add("--filter", default="", metavar="REGEX",
        help="rows to run: with a match anywhere in PATTERN/THREADS; cfrac/1$ leaves out "
             "cfrac/16, ^queue/ leaves out queue_mixed")
    add("--threads", default="", metavar="N,N", help="numbers of threads (all)")
    add("--rounds", type=int, default=8, metavar="N", help="interleaved rounds (8)")
    add("--patience", type=int, default=1, metavar="N",
        help="times as many rounds at most, for rows that met no quiet moment (1)")
    add("--repeat", type=int, default=3, metavar="N", help="repeats in a process (3)")
    add("--percent", type=int, default=100, metavar="P", help="of the usual work and memory (100)")
    add("--seed", type=int, default=1, metavar="N", help="of the random sizes (1)")
    add("--peers", metavar="NAMES", help='peers, with commas (all there are); "none" for none')
    add("--with", action="append", default=[], dest="more", metavar="NAME=LIBRARY",
        help="one more contender, preloaded: an older build, say")
    add("--no-build", action="store_true", help="take the peers that are there, build none")
    add("--out", type=pathlib.Path, metavar="FILE",
        help="results (bench/results/patterns-DATE.json)")
    asked = parser.parse_args()
    asked.program = asked.build.resolve() / "bench" / "patterns"
    if not asked.list and not asked.program.exists():
        parser.error(f"{asked.program} is not built: "
                     f"`ninja -C {asked.build} bench/patterns libstook-malloc.so`")
    if min(asked.rounds, asked.patience, asked.repeat, asked.percent) < 1:
        parser.error("--rounds, --patience, --repeat and --percent take 1 or more")
    if asked.seed < 0:
        parser.error(f"--seed takes 0 or more, not {asked.seed}")
    try:
        threads = [int(n) for n in asked.threads.split(",") if n]
    except ValueError:
        parser.error(f"--threads takes numbers with commas, such as 1,16, not '{asked.threads}'")
    try:
        asked.rows = rows_of(asked.filter, threads)
    except re.error as why:
        parser.error(f"--filter '{asked.filter}': {why}")
    if not asked.rows:
        parser.error("no such row (--list names them)")
    asked.chosen = (None if asked.peers is None
                    else [p for p in asked.peers.split(",") if p != "none"])
    unknown = [p for p in asked.chosen or () if p not in known_peers()]
    if unknown:
        parser.error(f"no such peer: {', '.join(unknown)}; "
                     f"there are {', '.join(known_peers())}, and none")
    asked.more = {name: pathlib.Path(library).resolve()
                  for name, _, library in (text.partition("=") for text in asked.more)}
    for name, library in asked.more.items():
        if not library.is_file():
            parser.error(f"--with {name}: there is no library {library}")
        if name in (OURS, PLAIN, *peer_build.PEERS, *PACKAGED):
            parser.error(f"--with {name}: the name is taken")
    return asked


def take_part(asked):
    peers = asked.build.resolve() / "peers"
    if not asked.no_build:
        wanted = peer_build.DEFAULT if asked.chosen is None else \
            [p for p in asked.chosen if p in peer_build.PEERS]
        peer_build.build_all(wanted, peers, tell)
    found = preloaded(asked.build.resolve(), peers, asked.chosen)
    found |= {name: Contender(name, library) for name, library in asked.more.items()}
    return list(found.values())


def main():
    asked = arguments()
    if asked.list:
        for row in asked.rows:
            say(f"{row.name:20}  {row.what}")
        return 0
    os.environ.pop("LD_PRELOAD", None)
    contenders = take_part(asked)
    about = machine(asked.build.resolve())
    say(title(about))
    say(f"preloaded: {', '.join(c.name for c in contenders)}; "
        f"{asked.rounds} rounds of {asked.repeat} repeats\n")
    results = measure(asked.program, asked.rows, contenders, asked)
    more = list(asked.more)
    standings = [s for r in asked.rows if (s := standing(r.name, results[r.name], more))]
    table = means(standings, more) if standings else {}
    if standings:
        print_standings(standings, more)
        say()
        print_means(table, more)
        print_loud(results)
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    out = asked.out or HERE / "results" / f"patterns-{stamp}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    about["load_after"] = os.getloadavg()[0]
    out.write_text(json.dumps({"machine": about, "rounds": asked.rounds, "repeat": asked.repeat,
                               "percent": asked.percent, "means": table, "standings": standings,
                               "results": results}, indent=1))
    picture = out.with_suffix(".svg")
    why_not = patterns_plot.draw(standings, picture)
    say(f"\nresults: {out}" + (f" (no picture: {why_not})" if why_not else f", picture: {picture}"))
    return 0


if __name__ == "__main__":
    sys.exit(end_quietly(main))
