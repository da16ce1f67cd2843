#!/usr/bin/env python3
"""
bench/run.py - `stook bench`: measure Stook beside other allocators

Purpose: runs the suites and prints what was measured, and how sure that is. Everything measured
goes to a JSON file, after each experiment: an interrupted run is resumed from there. Of such files
it tells what changed between two, and writes the page of results.
Place: `stook bench` and `make bench` run it with what lies in the build folder; README.md says how
to read its tables, stook-bench(1) lists its options.
"""

import argparse
import datetime
import errno
import functools
import json
import os
import pathlib
import re
import signal
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
# Installed, all but peers lie in this folder.
sys.path[:0] = [str(HERE / folder) for folder in (".", "measure", "tables", "pages", "peers")]

import build as peer_build  # noqa: E402
import compare              # noqa: E402
import engine               # noqa: E402
import micro                # noqa: E402
import page                 # noqa: E402
import programs             # noqa: E402
import report               # noqa: E402
import suites               # noqa: E402
import tables               # noqa: E402
import targets              # noqa: E402
import workloads            # noqa: E402
from contenders import OF_A_BUILD, OURS, PACKAGED, PLAIN, TAKEN, preloaded, version  # noqa: E402
from engine import Failed                                          # noqa: E402
from interval import PAIRS_ENOUGH                                  # noqa: E402
from machine import machine, title                                 # noqa: E402
from setting import Setting                                        # noqa: E402
from text import end_quietly, print_measurements, print_table, say  # noqa: E402

FORMAT = 3
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
    words += [f"--programs {','.join(asked.programs)}"] if asked.programs else []
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
            print_measurements(table, suites.SHOWN.get(name))
        return table
    except (Failed, OSError) as why:
        if getattr(why, "errno", None) == errno.EPIPE:
            raise
        reason = getattr(why, "strerror", None) or str(why)
        say(f"  left out: {reason}")
        setting.left_out[name] = reason
        return None
    finally:
        say(f"  ({time.monotonic() - start:.0f} s)\n")


def measure(setting, names, seconds, keep, before=None):
    """The table of each experiment; keep(results) after each, keep(results, name, table) within.
    @before: (results, {name: table of some of its cells}) of an interrupted run."""
    results, begun = before or ({}, {})
    names = [name for name in names if name not in results]
    shares = suites.QUICK if setting.few else suites.SHARES
    engine.end_all_at(seconds and time.monotonic() + seconds)
    rounds = seconds and seconds * suites.ROUNDS_PART
    for n, (name, end) in enumerate(suites.ends(names, rounds, shares=shares)):
        if n and end is not None and time.monotonic() >= end:
            setting.left_out[name] = engine.NO_TIME
            say(f"{name}: left out: {engine.NO_TIME}\n")
            continue
        setting.doing, setting.end = f"{n + 1} of {len(names)}, {name}", end
        setting.begun = begun.get(name, {})
        setting.keep = functools.partial(keep, results, name)
        if (table := measure_one(setting, name)) is not None:
            results[name] = table
            keep(results)
    return results


def known_peers():
    return [*peer_build.PEERS, *PACKAGED, *micro.POOLS]


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
    add("--programs", type=words, default=[], metavar="NAMES",
        help="of the experiment `programs`: these alone, with commas")
    add("--with", action="append", default=[], dest="more", metavar="NAME=FOLDER",
        help="another build of Stook beside this one, such as one without a change")
    add("--list", action="store_true", help="name the experiments and peers there are, and end")
    add("--out", type=pathlib.Path, metavar="FILE",
        help=f"results ({'DATE.json' if INSTALLED else 'bench/results/DATE.json'})")
    add("--resume", type=pathlib.Path, metavar="FILE",
        help="go on with an interrupted run, whose results are in FILE")
    add("--compare", nargs="+", metavar="FILE",
        help="OLD.json: after the run, tell what changed since then beyond noise; OLD.json "
             "NEW.json: without a run")
    add("--all", action="store_true", help="with --compare: also what did not change")
    add("--report", nargs=2, metavar="FILE",
        help="OUT.html FILE.json: write the page of these results; OUT.md: as Markdown; "
             "TARGETS.md: what the developers aim at; README.md: its table of figures")
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


def resumed(parser, asked):
    """The arguments of the run that is resumed, with its results so far."""
    old = load(parser, asked.resume)
    if "unfinished" not in old:
        parser.error(f"{asked.resume}: that run came to its end")
    again = parser.parse_args(old["unfinished"]["arguments"])
    again.resume, again.out, again.before = asked.resume, asked.resume, old
    return again


def arguments():
    parser = parser_of()
    given = sys.argv[1:]
    asked = parser.parse_args(given)
    asked.before = None
    if asked.resume:
        asked = resumed(parser, asked)
        given = asked.before["unfinished"]["arguments"]
    asked.given = given
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
    unknown = [name for name in asked.programs if name not in programs.KNOWN]
    if unknown:
        parser.error(f"no such program: {', '.join(unknown)}; there are "
                     f"{', '.join(programs.KNOWN)}")
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
        for key in ("machine", "pairs", "results", "left_out"):
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
    setting = Setting(asked.build, asked.build / "peers", asked.pairs,
                                  asked.quick or asked.short, asked.chosen, contenders, say,
                                  sys.stderr.isatty(), asked.quick)
    setting.left_out, setting.builds, setting.programs = left_out, asked.builds, asked.programs
    peers = {name: version(c) for name, c in contenders.items()}
    all_results = functools.partial(as_written, asked, about, left_out, peers)
    before = asked.before and (asked.before["results"], asked.before["unfinished"]["begun"])

    def keep(results, name=None, table=None):
        write(parser, out, {**all_results(results), "unfinished": {
            "arguments": asked.given, "begun": {name: table} if table else {}}})

    try:
        keep(before[0] if before else {})
        results = measure(setting, asked.names, seconds_of(asked), keep, before)
    except KeyboardInterrupt:
        parser.exit(128 + signal.SIGINT, f"\n{parser.prog}: interrupted; what was measured is "
                    f"kept: stook bench --resume {out}\n")
    return all_results(results)


def as_written(asked, about, left_out, peers, results):
    """The results with what a reader of the file needs beside them."""
    about["load_after"] = os.getloadavg()[0]
    return {"format": FORMAT, "machine": about, "pairs": asked.pairs, "quick": asked.quick,
            "short": asked.short, "command_line": command_of(asked), "left_out": left_out,
            "peers": peers, "results": results}


def rounded(value):
    """Five digits say all that was measured."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return [rounded(v) for v in value] if isinstance(value, list) else value


def write(parser, out, results):
    """Whole or not at all: what an earlier write left stays where the disk is full."""
    part = out.with_name(out.name + ".part")
    text = ",\n".join(f"{json.dumps(key)}: {json.dumps(rounded(value), separators=(',', ':'))}"
                      for key, value in results.items())
    try:
        part.write_text("{" + text + "}\n")
        part.replace(out)
    except OSError as why:
        part.unlink(missing_ok=True)
        kept = f"; what was measured before is kept: stook bench --resume {out}" \
            if out.exists() and out.stat().st_size else ""
        parser.error(f"{out}: {why.strerror}{kept}")


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
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    out = place_of_results(parser, asked)
    results = session(parser, asked, out)
    if len(found := targets.measured(results)) > 1:
        say("Targets of the developers (the worse end of an interval decides)")
        print_table(found, len(targets.HEAD))
        say()
    workloads.print_summary(results, say)
    write(parser, out, results)
    say(f"\nresults: {out}; a page with plots: stook bench --report page.html {out}")
    if old:
        say()
        compare.print_comparison(old, results, say, print_table, asked.all)


def write_report(parser, asked):
    out, path = map(pathlib.Path, asked.report)
    if out.suffix not in (".html", ".md"):
        parser.error(f"--report writes .html or .md, not {out}")
    results = load(parser, path)
    try:
        if out.name == "README.md":
            text = report.readme(out.read_text(), results)
        elif out.name == "TARGETS.md":
            text = report.target_page(results)
        else:
            text = page.html(results) if out.suffix == ".html" else report.markdown(results)
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
