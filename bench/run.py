#!/usr/bin/env python3
"""
bench/run.py - measure Stook beside other allocators

Purpose: builds the peers, runs the experiments, and prints for each promised figure what was
measured, how sure that is, and whether it holds. Everything measured goes to a JSON file, which
compare.py reads.
Place: `make bench` runs it with what lies in the build folder; README.md says how to read its
tables.

Use: run.py [--list] [--quick] [--only NAMES] [--pairs N] [--peers NAMES] [--no-build] [--build
FOLDER] [--out FILE]
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE / "peers"))

import build as peer_build  # noqa: E402
import experiments          # noqa: E402
import figures              # noqa: E402
import plot                 # noqa: E402
import tables               # noqa: E402
from contenders import OURS, PACKAGED, PLAIN, preloaded  # noqa: E402
from interval import summary            # noqa: E402


def say(text=""):
    print(text, flush=True)


def machine():
    """What the numbers depend on."""
    model = "unknown processor"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    try:
        commit = subprocess.run(["git", "-C", str(HERE), "describe", "--always", "--dirty",
                                 "--abbrev=12"],
                                capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = "unknown"
    thp = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return {
        "processor": model,
        "cpus": len(os.sched_getaffinity(0)),
        "memory_MiB": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20,
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "huge_pages": thp.read_text().strip() if thp.exists() else "none",
        "commit": commit,
        "load": os.getloadavg()[0],
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
    }


def number(value):
    if value is None:
        return "-"
    if value == 0 or 0.01 <= abs(value) < 100:
        return f"{value:.2f}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def print_table(rows, columns):
    widths = [max(len(row[i]) for row in rows) for i in range(columns)]
    for row in rows:
        say("  " + "  ".join(cell.ljust(widths[i]) if i == 0 else cell.rjust(widths[i])
                             for i, cell in enumerate(row)).rstrip())


def measurement_rows(table, shown):
    """A row for each contender (for each metric where there is one contender): median and half the
    interval's width."""
    metrics = shown or sorted({m for answers in table.values() for m in answers if " " not in m})
    metrics = [m for m in metrics if any(m in answers for answers in table.values())]
    rows = [[""] + metrics]
    for contender, answers in table.items():
        row = [contender]
        for metric in metrics:
            s = summary(answers.get(metric, []))
            if s is None:
                row.append("-")
            elif s["n"] < 2 or s["high"] == s["low"]:
                row.append(number(s["median"]))
            else:
                row.append(f"{number(s['median'])} ±{number((s['high'] - s['low']) / 2)}")
        rows.append(row)
    return [list(row) for row in zip(*rows)] if len(table) == 1 else rows


def print_measurements(table, shown):
    rows = measurement_rows(table, shown)
    print_table(rows, len(rows[0]))


def verdict_rows(verdicts):
    rows = [["figure", "Stook", "against", "", "measured", "95 %", "at least", "", "goal", ""]]
    for v in verdicts:
        unit = v["unit"]
        against = [v["rival"], number(v["rival_value"])] if "rival" in v else ["", ""]
        sign = ">=" if v["higher"] else "<="
        interval = f"{number(v['low'])} .. {number(v['high'])}" if v["n"] > 1 else "one run"
        limits = []
        for limit, verdict in ((v["at_least"], v["verdict"]), (v["goal"], v["goal_verdict"])):
            limits += ["" if limit is None else f"{sign} {number(limit)}", verdict]
        rows.append([v["figure"], number(v["value"]), *against,
                     f"{number(v['median'])} {unit}", interval, *limits])
    return rows


def print_verdicts(verdicts):
    print_table(verdict_rows(verdicts), 10)


def command_of(asked, standard_pairs):
    """The command that measures this again; where things lie on this machine is left out."""
    words = ["bench/run.py"] + (["--quick"] if asked.quick else [])
    words += [f"--only {asked.only}"] if asked.only else []
    words += [f"--pairs {asked.pairs}"] if asked.pairs != standard_pairs else []
    words += [f"--peers {asked.peers}"] if asked.peers else []
    return " ".join(words)


def measure(setting, names):
    results = {}
    for name in names:
        experiment = experiments.ALL[name]
        say(f"{name}: {' '.join(experiment.__doc__.split())}")
        start = time.monotonic()
        try:
            results[name] = experiment(setting)
            if name in tables.PRINTED:
                tables.PRINTED[name](results[name], say, print_table)
            else:
                print_measurements(results[name], experiments.SHOWN.get(name))
        except experiments.Failed as why:
            say(f"  left out: {why}")
        say(f"  ({time.monotonic() - start:.0f} s)\n")
    return results


def known_peers():
    return [*peer_build.PEERS, *PACKAGED]


def print_list():
    width = max(len(name) for name in experiments.ALL)
    for name, experiment in experiments.ALL.items():
        say(f"{name:{width}}  {' '.join(experiment.__doc__.split())}")
    say(f"\npeers: {', '.join(known_peers())}; beside {OURS} and {PLAIN}, which always take part")


def arguments():
    parser = argparse.ArgumentParser(description="Measure Stook beside other allocators.")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build",
                        help="build folder (build)")
    parser.add_argument("--quick", action="store_true",
                        help="small and short: shows that everything works, no more")
    parser.add_argument("--only", metavar="NAMES",
                        help="experiments, with commas (all; --list names them)")
    parser.add_argument("--list", action="store_true",
                        help="name the experiments and peers there are, and end")
    parser.add_argument("--pairs", type=int, metavar="N",
                        help="interleaved rounds (10; 3 with --quick)")
    parser.add_argument("--peers", metavar="NAMES",
                        help="peers, with commas; \"none\" for none; "
                        "tcmalloc is built only if named here")
    parser.add_argument("--no-build", action="store_true",
                        help="take the peers that are there, build none")
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE",
                        help="results (bench/results/DATE.json)")
    asked = parser.parse_args()
    if asked.list:
        print_list()
        sys.exit(0)
    asked.names = asked.only.split(",") if asked.only else list(experiments.ALL)
    unknown = [name for name in asked.names if name not in experiments.ALL]
    if unknown:
        parser.error(f"no such experiment: {', '.join(unknown)} (--list names them)")
    if asked.pairs is None:
        asked.pairs = 3 if asked.quick else 10
    if asked.pairs < 1:
        parser.error("--pairs takes 1 or more")
    asked.chosen = None if asked.peers is None else [
        p for p in asked.peers.split(",") if p != "none"]
    unknown = [p for p in asked.chosen or () if p not in known_peers()]
    if unknown:
        parser.error(f"no such peer: {', '.join(unknown)}; "
                     f"there are {', '.join(known_peers())}, and none")
    if not any(f.is_file() and os.access(f, os.X_OK) for f in (asked.build / "bench").glob("*")):
        parser.error(f"no benchmarks are built in {asked.build}: `make bench` builds and runs all; "
                     f"to build only: `meson configure {asked.build} -Dbench=enabled && "
                     f"ninja -C {asked.build} bench-programs`")
    return asked


def main():
    asked = arguments()
    os.environ.pop("LD_PRELOAD", None)
    build = asked.build.resolve()
    peers = build / "peers"
    about = machine()
    say(f"{about['processor']}, {about['cpus']} CPUs, Linux {about['kernel']}, {about['libc']}, "
        f"commit {about['commit']}, load {about['load']:.2f}")
    if about["load"] > 0.5:
        say("something else is running: times will be noisy")
    left_out = {}
    if not asked.no_build:
        wanted = peer_build.DEFAULT if asked.chosen is None else \
            [p for p in asked.chosen if p in peer_build.PEERS]
        if "maple_map" in asked.names:
            wanted = [*wanted, *peer_build.PROGRAMS]
        left_out = peer_build.build_all(wanted, peers, say)
    contenders = preloaded(build, peers, asked.chosen)
    if OURS not in contenders:
        say("libstook-malloc.so is not built: peers only")
    say("preloaded: " + ", ".join(contenders) + f"; {asked.pairs} rounds\n")

    setting = experiments.Setting(build, peers, asked.pairs, asked.quick, asked.chosen,
                                  contenders, say)
    results = measure(setting, asked.names)
    verdicts = figures.judge(results)
    if verdicts:
        say("Figures (ratios of neighbouring runs; "
            "a figure passes when the worse end of its interval passes)")
        print_verdicts(verdicts)

    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    out = asked.out or HERE / "results" / f"{stamp}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    about["load_after"] = os.getloadavg()[0]
    out.write_text(json.dumps({"machine": about, "pairs": asked.pairs, "quick": asked.quick,
                               "left_out": left_out,
                               "command": command_of(asked, 3 if asked.quick else 10),
                               "figures": verdicts, "results": results}, indent=1))
    picture = out.with_suffix(".svg")
    why_not = plot.draw(results, picture)
    say(f"\nresults: {out}" + (f" (no picture: {why_not})" if why_not else f", picture: {picture}"))
    return 0


def end_quietly(program):
    """Runs it; where standard output is a pipe that its reader closed (`| head`), ends as SIGPIPE
    would end it."""
    try:
        status = program()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # At its end Python flushes standard output once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


if __name__ == "__main__":
    sys.exit(end_quietly(main))
