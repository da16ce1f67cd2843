#!/usr/bin/env python3
"""
bench/peaks.py - the peak of real programs, one by one

Purpose: what a program has resident at most, on Stook, on other builds of it, and on its peers: all
contenders in turn. `stook bench --only programs` measures time and memory of all programs; this
measures the peak of a few in seconds.
Place: beside run.py; the programs and what they read are those of programs.py.
Figures: the peak is the kernel's own (ru_maxrss), as `time -f %M` of the Debian package "time"
prints it. No sample of it can be missed, as in programs.py. Medians, least and most of the rounds,
and the median by glibc's. The peak of sqlite repeats within 1 %, and hardly depends on other work.

Use: peaks.py [--build B] [--rounds N] [--programs NAME,...] [--peers NAME,...]
               [--with NAME=LIBRARY]
     peaks.py --programs sqlite --rounds 5          # 300,000 rows in memory, an index, deletes
Exit status: 0 all was measured; 1 some runs failed, as was said; 2 misused
"""

import argparse
import pathlib
import shutil
import statistics
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# Installed, all but peers lie in this folder.
sys.path[:0] = [str(HERE / folder) for folder in (".", "measure", "tables", "pages", "peers")]

import build as peer_build                                  # noqa: E402
from contenders import OURS, PACKAGED, PLAIN, Contender, preloaded      # noqa: E402
from engine import Failed, run, turn                        # noqa: E402
from machine import machine, title                          # noqa: E402
from programs import PROGRAMS, is_missing                   # noqa: E402
from text import end_quietly, print_table, say              # noqa: E402

# Programs without a server, whose most is that of one process.
KNOWN = {p.name: p for p in PROGRAMS if not p.client}


def peak_kib(program, contender, folder, quick):
    """Runs a program once."""
    answer = folder / "peak"
    shell = ["sh", "-c", 'cd "$0" && exec "$@" >/dev/null 2>&1', folder]
    words = [f"{name}={value}" for name, value in program.environment.items()]
    command = program.command(folder, quick)
    run(["time", "-q", "-o", answer, "-f", "%M", *shell, "env", *words, *command], contender)
    return int(answer.read_text().split()[-1])


def measure(program, contenders, rounds, quick):
    """{contender: [KiB]}; what failed is told, and left out."""
    found = {c.name: [] for c in contenders}
    with tempfile.TemporaryDirectory(prefix="stook-peaks-") as place:
        folder = pathlib.Path(place)
        if program.prepare:
            program.prepare(folder, quick)
        for n in range(rounds):
            for contender in turn(contenders, n):
                try:
                    found[contender.name].append(peak_kib(program, contender, folder, quick))
                except Failed as why:
                    say(f"{program.name}, {contender.name}: {why}")
    return found


def print_peaks(name, found):
    plain = statistics.median(found[PLAIN]) if found.get(PLAIN) else None
    rows = [[name, "peak KiB", "least", "most", f"by {PLAIN}'s"]]
    for contender, peaks in found.items():
        if peaks:
            middle = statistics.median(peaks)
            rows.append([contender, f"{middle:.0f}", f"{min(peaks)}", f"{max(peaks)}",
                         f"{middle / plain:.3f}" if plain else "-"])
    print_table(rows, len(rows[0]))


def names(text):
    return [name for name in text.split(",") if name]


def of_names(parser, more):
    """{name: library} of the texts NAME=LIBRARY."""
    found = {}
    for text in more:
        name, _, library = text.partition("=")
        if not name or not library:
            parser.error(f"--with takes NAME=LIBRARY, not '{text}'")
        if name in (OURS, PLAIN, *peer_build.PEERS, *PACKAGED):
            parser.error(f"--with {name}: the name is taken")
        found[name] = pathlib.Path(library).resolve()
    return found


def check_peers(parser, asked):
    """A peer that is not there would be left out in silence."""
    there = [name for name in preloaded(asked.build, asked.build / "peers")
             if name not in (OURS, PLAIN)]
    missing = [name for name in asked.peers or () if name not in (*there, "none")]
    if missing:
        parser.error(f"no such peer here: {', '.join(missing)}; "
                     f"there are {', '.join([*there, 'none'])}")


def arguments(words=None):
    """@words: of the command line; None: of this program's."""
    parser = argparse.ArgumentParser(description="The peak of real programs, one by one.")
    add = parser.add_argument
    add("--build", type=pathlib.Path, default=HERE.parent / "build", help="build folder (build)")
    add("--rounds", type=int, default=3, metavar="N", help="interleaved rounds (3)")
    add("--programs", type=names, default=["sqlite", "python"], metavar="NAME,...",
        help="sqlite,python unless it is given; there are " + ", ".join(KNOWN))
    add("--peers", type=names, metavar="NAME,...",
        help="all that are built, unless it is given; \"none\" for none")
    add("--quick", action="store_true", help="a tenth of the work or less")
    add("--with", action="append", default=[], dest="more", metavar="NAME=LIBRARY",
        help="one more contender: a libstook-malloc.so of another build")
    asked = parser.parse_args(words)
    asked.build = asked.build.resolve()
    if asked.rounds < 1:
        parser.error("--rounds takes 1 or more")
    if not shutil.which("time"):
        parser.error("there is no program `time` (Debian's package of that name)")
    if not asked.programs:
        parser.error(f"--programs names none; there are {', '.join(KNOWN)}")
    for name in asked.programs:
        if name not in KNOWN:
            parser.error(f"no such program: {name}; there are {', '.join(KNOWN)}")
        if missing := is_missing(KNOWN[name]):
            parser.error(f"{name}: not installed: {missing}")
    asked.more = of_names(parser, asked.more)
    for library in (asked.build / "libstook-malloc.so", *asked.more.values()):
        if not library.is_file():
            parser.error(f"there is no library {library}")
    check_peers(parser, asked)
    return asked


def main():
    asked = arguments()
    found = preloaded(asked.build, asked.build / "peers", asked.peers)
    found |= {name: Contender(name, library) for name, library in asked.more.items()}
    say(title(machine(asked.build)))
    missed = False
    for name in asked.programs:
        say()
        peaks = measure(KNOWN[name], list(found.values()), asked.rounds, asked.quick)
        print_peaks(name, peaks)
        missed = missed or any(len(measured) < asked.rounds for measured in peaks.values())
    return int(missed)


if __name__ == "__main__":
    sys.exit(end_quietly(main))
