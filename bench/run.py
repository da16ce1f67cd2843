#!/usr/bin/env python3
"""
bench/run.py - `stook bench`: measure Stook beside other allocators

Purpose: runs the suites, and prints for each promised figure what was measured, how sure that is,
and whether it holds. Everything measured goes to a JSON file. Of such files it tells what changed
between two, and writes the page of results.
Place: `stook bench` and `make bench` run it with what lies in the build folder; README.md says how
to read its tables, stook-bench(1) lists its options.
"""

import argparse
import datetime
import functools
import json
import os
import pathlib
import re
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
# Installed, all but peers lie in this folder.
sys.path[:0] = [str(HERE / folder) for folder in (".", "measure", "tables", "pages", "peers")]

import build as peer_build  # noqa: E402
import compare              # noqa: E402
import engine               # noqa: E402
import experiments          # noqa: E402
import figures              # noqa: E402
import page                 # noqa: E402
import plot                 # noqa: E402
import published            # noqa: E402
import report               # noqa: E402
import suites               # noqa: E402
import tables               # noqa: E402
import workloads            # noqa: E402
from contenders import OF_A_BUILD, OURS, PACKAGED, PLAIN, TAKEN, preloaded     # noqa: E402
from engine import Failed                                          # noqa: E402
from interval import PAIRS_ENOUGH                                  # noqa: E402
from machine import machine, title                                 # noqa: E402
from text import end_quietly, print_measurements, print_table, say, verdict_rows  # noqa: E402

FORMAT = 1
PAIRS = 10
# An installed command lies in no source folder: there is no build folder beside it.
INSTALLED = not (HERE.parent / "meson.build").exists()


def command_of(asked):
    """The command that measures this again; where things lie on this machine is left out."""
    words = ["stook bench"] + ["--" + word for word in ("quick", "short") if getattr(asked, word)]
    words += [f"--suite {','.join(asked.suite)}"] if asked.suite else []
    words += [f"--only {','.join(asked.only)}"] if asked.only else []
    words += [f"--seconds {asked.seconds}"] if asked.seconds else []
    words += [f"--pairs {asked.pairs}"] if asked.pairs != standard_pairs(asked) else []
    words += [f"--peers {asked.peers}"] if asked.peers else []
    words += [f"--with {name}=BUILD" for name in asked.builds]
    return " ".join(words)


def standard_pairs(asked):
    return suites.QUICK_PAIRS if asked.quick or asked.short else PAIRS


def seconds_of(asked):
    """How long a run may take; None: as long as it takes."""
    return asked.seconds or (suites.QUICK_SECONDS if asked.quick else
                             suites.SHORT_SECONDS if asked.short else None)


def duration(asked):
    """Said before the run begins."""
    seconds = seconds_of(asked)
    if seconds is None:
        return "takes as long as all rounds take; --seconds, --short and --quick bound it"
    end = datetime.datetime.now() + datetime.timedelta(seconds=seconds)
    return (f"takes {seconds} s at most, to {end:%H:%M:%S}: what does not fit is left out, "
            "and named")


def measure_one(setting, name):
    experiment = suites.ALL[name]
    say(f"{name}: {' '.join(experiment.__doc__.split())}")
    start = time.monotonic()
    try:
        table = experiment(setting)
        if name in tables.PRINTED:
            tables.PRINTED[name](table, say, print_table)
        elif name in workloads.PRINTED:
            workloads.print_standings(name, table, say, print_table)
        else:
            print_measurements(table, experiments.SHOWN.get(name))
        return table
    except Failed as why:
        say(f"  left out: {why}")
        setting.left_out[name] = str(why)
        return None
    finally:
        say(f"  ({time.monotonic() - start:.0f} s)\n")


def measure(setting, names, seconds, keep):
    """The table of each experiment; keep(results) after each."""
    results = {}
    shares = suites.QUICK if setting.few else suites.SHARES
    engine.end_all_at(seconds and time.monotonic() + seconds)
    rounds = seconds and seconds * suites.ROUNDS_PART
    for n, (name, end) in enumerate(suites.ends(names, rounds, shares=shares)):
        if n and end is not None and time.monotonic() >= end:
            setting.left_out[name] = engine.NO_TIME
            say(f"{name}: left out: {engine.NO_TIME}\n")
            continue
        setting.doing, setting.end = f"{n + 1} of {len(names)}, {name}", end
        if (table := measure_one(setting, name)) is not None:
            results[name] = table
            keep(results)
    return results


def known_peers():
    return [*peer_build.PEERS, *PACKAGED, *experiments.POOLS]


def print_list():
    width = max(len(name) for name in suites.ALL)
    for suite, names in suites.SUITES.items():
        say(f"suite {suite}")
        for name in names:
            quick = "" if name not in suites.QUICK else " (--quick)"
            say(f"  {name:{width}}  {' '.join(suites.ALL[name].__doc__.split())}{quick}")
    say(f"\npeers: {', '.join(known_peers())}; beside {OURS} and {PLAIN}, which always take part")


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"{self.prog}: {message} (see stook bench --help)\n" if message.startswith(
            ("unrecognized", "argument ", "ambiguous")) else f"{self.prog}: {message}\n")


def parser_of():
    parser = Parser(
        prog="stook bench", description="Measure Stook beside other allocators.")
    add = parser.add_argument
    add("--suite", metavar="NAMES", help=f"suites, with commas: {', '.join(suites.SUITES)} (all)")
    add("--quick", action="store_true",
        help="some experiments of each suite, shorter, in less than two minutes")
    add("--short", action="store_true",
        help="every experiment, each as short as with --quick, most in six rounds, in "
             f"{suites.SHORT_SECONDS} s")
    add("--only", metavar="NAMES", help="experiments, with commas (--list names them)")
    add("--pairs", type=int, metavar="N",
        help=f"interleaved rounds ({PAIRS}; {suites.QUICK_PAIRS} with --quick); with fewer than "
             f"{PAIRS_ENOUGH} no difference is told")
    add("--seconds", type=int, metavar="N",
        help=f"the run takes so long at most ({suites.QUICK_SECONDS} with --quick, "
             f"{suites.SHORT_SECONDS} with --short): what does not fit is left out")
    add("--peers", metavar="NAMES",
        help="peers, with commas; \"none\" for none; tcmalloc is built only if named here")
    add("--no-build", action="store_true",
        help="take the peers that are there, build none; so does --quick")
    add("--with", action="append", default=[], dest="more", metavar="NAME=FOLDER",
        help="another build of Stook beside this one, such as one without a change")
    add("--list", action="store_true", help="name the experiments and peers there are, and end")
    add("--out", type=pathlib.Path, metavar="FILE",
        help=f"results ({'DATE.json' if INSTALLED else 'bench/results/DATE.json'})")
    add("--compare", nargs="+", metavar="FILE",
        help="OLD.json: after the run, tell what changed since then beyond noise; OLD.json "
             "NEW.json: without a run")
    add("--all", action="store_true", help="with --compare: also what did not change")
    add("--report", nargs="+", metavar="FILE",
        help="OUT.html FILE.json ...: write the page of these results, or of those in a folder; "
             "OUT.md: as Markdown; README.md: its table of figures")
    add("--build", type=pathlib.Path, metavar="FOLDER",
        help="the build folder of a source folder in which `make bench` was run (none: only "
             "`programs` is measured)" if INSTALLED else "build folder (build)")
    add("--drop-in", type=pathlib.Path, help=argparse.SUPPRESS)
    return parser


def builds_of(parser, asked):
    """{name: folder} of what --with names."""
    found = {}
    for more in asked.more:
        name, _, folder = more.partition("=")
        if not re.fullmatch(r"\w+", name) or name in found or name in TAKEN:
            parser.error(f"--with {more}: a build needs a name of its own, of letters and digits")
        found[name] = pathlib.Path(folder).resolve()
        for library in OF_A_BUILD:
            if not (found[name] / library).exists():
                parser.error(f"--with {more}: no {library} there")
    return found


def words(text):
    return [word for word in text.split(",") if word] if text else []


def arguments():
    parser = parser_of()
    asked = parser.parse_args()
    asked.suite, asked.only = words(asked.suite), words(asked.only)
    asked.installed = asked.build is None and INSTALLED
    if asked.build and not asked.build.is_dir():
        parser.error(f"--build {asked.build}: no such folder")
    asked.builds = builds_of(parser, asked)
    asked.build = (asked.build or HERE.parent / "build").resolve()
    if asked.pairs is None:
        asked.pairs = standard_pairs(asked)
    if asked.pairs < 1 or (asked.seconds is not None and asked.seconds < 1):
        parser.error("--pairs and --seconds take 1 or more")
    asked.chosen = None if asked.peers is None else [p for p in words(asked.peers) if p != "none"]
    unknown = [p for p in asked.chosen or () if p not in known_peers()]
    if unknown:
        parser.error(f"no such peer: {', '.join(unknown)}; "
                     f"there are {', '.join(known_peers())}, and none")
    if asked.compare and len(asked.compare) > 2:
        parser.error("--compare takes OLD.json, or OLD.json and NEW.json")
    if asked.report and len(asked.report) < 2:
        parser.error("--report takes the page to write, then one or more result files")
    try:
        asked.names = suites.chosen(asked.suite, asked.only, asked.quick)
    except ValueError as why:
        parser.error(str(why))
    return parser, asked


def load(parser, path):
    """A result file; one clear line if it is none."""
    try:
        results = json.loads(pathlib.Path(path).read_text())
        if results.get("format", FORMAT) > FORMAT:
            parser.error(f"{path}: written by a newer stook bench (format {results['format']})")
        for key in ("machine", "pairs", "results", "figures"):
            results[key]
        return results
    except (AttributeError, KeyError, TypeError):
        parser.error(f"{path}: no results of stook bench")
    except (OSError, ValueError) as why:
        parser.error(f"{path}: {getattr(why, 'strerror', None) or 'no JSON'}")


def only_what_is_built(parser, asked):
    """Where no benchmark programs are, real programs can be measured all the same."""
    if any(f.is_file() and os.access(f, os.X_OK) for f in (asked.build / "bench").glob("*")):
        return
    if asked.drop_in and not asked.only and asked.suite in ([], ["programs"]):
        asked.names = ["programs"]
        if not asked.suite:
            say("the suite programs only: the others need `make bench` in the source folder")
    elif asked.names == ["programs"] and asked.drop_in:
        return
    elif asked.installed:
        parser.error("libstook-malloc.so is not installed beside this command" if
                     asked.names == ["programs"] else
                     "the installed command measures `programs` only: for the others run `make "
                     "bench` in a source folder, then `stook bench --build FOLDER` with its build "
                     "folder")
    else:
        parser.error(f"no benchmarks are built in {asked.build}: `make bench` builds and runs all; "
                     f"to build only: `meson configure {asked.build} -Dbench=enabled && "
                     f"ninja -C {asked.build} bench-programs`")


def peers_of(asked):
    """Builds the peers, where that is asked for. {peer: why it is left out}."""
    wanted = peer_build.DEFAULT if asked.chosen is None else \
        [p for p in asked.chosen if p in peer_build.PEERS]
    if "maple_map" in asked.names:
        wanted = [*wanted, *peer_build.PROGRAMS]
    if not (asked.no_build or asked.quick or asked.installed):
        return peer_build.build_all(wanted, asked.build / "peers", say)
    return {name: "not built here (tools/peers builds it; it needs cargo)" for name in wanted
            if name in peer_build.PEERS and
            not (asked.build / "peers" / "lib" / f"{name}.so").exists()}


def session(parser, asked, out):
    """Measures what was asked for; the results as they go to the file @out. What is measured so far
    is there after each experiment."""
    os.environ.pop("LD_PRELOAD", None)
    only_what_is_built(parser, asked)
    about = machine(asked.build)
    say(title(about))
    if about["load"] > 0.5:
        say("something else is running: times will be noisy")
    left_out = peers_of(asked)
    for name, why in left_out.items():
        say(f"left out: {name}: {why}")
    contenders = preloaded(asked.build, asked.build / "peers", asked.chosen, asked.drop_in,
                           asked.builds)
    if OURS not in contenders:
        say("libstook-malloc.so is not built: peers only")
    say("preloaded: " + ", ".join(contenders) + f"; {asked.pairs} rounds")
    say(duration(asked) + "\n")
    setting = experiments.Setting(asked.build, asked.build / "peers", asked.pairs,
                                  asked.quick or asked.short, asked.chosen, contenders, say,
                                  sys.stderr.isatty(), asked.quick)
    setting.left_out, setting.builds = left_out, asked.builds
    all_results = functools.partial(as_written, asked, about, left_out)
    results = measure(setting, asked.names, seconds_of(asked),
                      lambda so_far: write(parser, out, all_results(so_far)))
    return all_results(results)


def as_written(asked, about, left_out, results):
    """The results with what a reader of the file needs beside them."""
    about["load_after"] = os.getloadavg()[0]
    return {"format": FORMAT, "machine": about, "pairs": asked.pairs, "quick": asked.quick,
            "short": asked.short, "command": command_of(asked), "left_out": left_out,
            "figures": figures.judge(results), "published": published.judge(results),
            "results": results}


def write(parser, out, results):
    try:
        out.write_text(json.dumps(results, indent=1))
    except OSError as why:
        parser.error(f"{out}: {why.strerror}")


def place_of_results(parser, asked):
    """The file for the results; where it cannot be written that is said before minutes pass."""
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    folder = pathlib.Path.cwd() if asked.installed else HERE / "results"
    out = asked.out or folder / f"{stamp}.json"
    try:
        if not asked.out:
            folder.mkdir(exist_ok=True)
        was_there = out.exists()
        with out.open("a"):
            pass
        if not was_there:
            out.unlink()
    except OSError as why:
        parser.error(f"{out}: {why.strerror}")
    return out


def run_and_write(parser, asked):
    old = load(parser, asked.compare[0]) if asked.compare else None
    if old and not (asked.only or asked.suite):
        asked.names = [name for name in old["results"] if name in suites.ALL] or asked.names
    out = place_of_results(parser, asked)
    results = session(parser, asked, out)
    if results["figures"]:
        say("Figures (ratios of neighbouring runs; "
            "a figure passes when the worse end of its interval passes)")
        print_table(verdict_rows(results["figures"]), 10)
        say("measured: " + workloads.WHAT_A_RATIO_IS)
        say()
    if results["published"]:
        say(f"Published tables: {published.counted(results['published'])}")
        print_table(published.table_rows(results["published"]), len(published.HEAD))
        say()
    workloads.print_summary(results, say)
    write(parser, out, results)
    picture = out.with_suffix(".svg")
    why_not = plot.draw(results["results"], picture)
    say(f"\nresults: {out}" + (f" (no picture: {why_not})" if why_not else f", picture: {picture}"))
    if old:
        say()
        compare.print_comparison(old, results, say, print_table, asked.all)


def write_report(parser, asked):
    out = pathlib.Path(asked.report[0])
    files = [file for path in map(pathlib.Path, asked.report[1:])
             for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]
    if not files:
        parser.error(f"{' '.join(asked.report[1:])}: no result files there")
    if out.suffix not in (".html", ".md"):
        parser.error(f"--report writes .html or .md, not {out}")
    runs = []
    for path in files:
        try:
            patterns = json.loads(path.read_text())
        except (OSError, ValueError):
            patterns = {}
        if "standings" in patterns:
            parser.error(f"{path}: bench/patterns.py wrote it; `stook bench --only pattern_rows` "
                         "measures the same for a report")
        runs.append((path.stem, load(parser, path)))
    runs.sort(key=lambda run: run[1]["machine"]["date"])
    try:
        if out.name == "README.md":
            text = report.readme(out.read_text(), runs)
        elif out.suffix == ".md":
            text = report.markdown(runs)
        else:
            text = page.html(runs)
        out.write_text(text)
    except (OSError, report.NoPlace) as why:
        parser.error(f"{out}: {getattr(why, 'strerror', None) or why}")


def main():
    parser, asked = arguments()
    if asked.list:
        print_list()
    elif asked.report:
        write_report(parser, asked)
    elif asked.compare and len(asked.compare) == 2:
        old, new = (load(parser, path) for path in asked.compare)
        compare.print_comparison(old, new, say, print_table, asked.all)
    else:
        run_and_write(parser, asked)
    return 0


if __name__ == "__main__":
    sys.exit(end_quietly(main))
