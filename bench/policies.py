#!/usr/bin/env python3
"""
bench/policies.py - what is given back when: speed against memory, for several policies

Purpose: a page that is purged and asked for again is faulted in again; one that is kept is memory
that no other process has. This runs the same work with several settings of the purge policy, and
with peers, all in turn. It prints what each setting costs in faults and what it keeps.
Place: beside run.py. docs/POLICIES.md is what --out wrote: rows that its command measures again. So
settings that need another library (the constants of src/pages/purge.c are no options), which --with
gives, are printed only.
Figures: medians of the rounds. Faults and memory hardly depend on how busy the machine is.
  faults    pages faulted in by a phase for each page of its objects; all phases but the first
  kept      resident in the pauses between phases, in percent of what a phase allocates
  silent    the same --wait ms after the last phase, without a call; called: as long with few calls
  ms, end   pattern malloc_large, its first 30 objects: processor time for one; MiB at the end

Use: policies.py [--build B] [--rounds N] [--with NAME=LIBRARY] [--out FILE] ...
"""

import argparse
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Installed, all but peers lie in this folder.
sys.path[:0] = [str(HERE / folder) for folder in (".", "measure", "tables", "pages", "peers")]

from contenders import OURS, PACKAGED, Contender, preloaded     # noqa: E402
from engine import Failed, macro, turn                      # noqa: E402
from held_memory import PHASES                              # noqa: E402
from machine import machine                                 # noqa: E402
from text import end_quietly                                # noqa: E402

DEFAULT = "as it is"
# Name: environment. Decay times in ms; 0 purges all that lies free at each step that is due.
SETTINGS = {
    "decay 0": {"STOOK_DECAY_MS": "0"},
    "decay 100": {"STOOK_DECAY_MS": "100"},
    DEFAULT: {},
    "decay 10000": {"STOOK_DECAY_MS": "10000"},
    "with its thread": {"STOOK_MAINTENANCE": "1"},
}
# Debian's packages, or what is built in their place; and two that are not packaged.
PEERS = [*PACKAGED, *(peer for _, peer in PACKAGED.values() if peer), "mimalloc3", "tcmalloc"]
LARGE = "malloc_large"
WIDTH, HEIGHT = 64, 16

HEAD = """# What is given back when

This page is written by a command; do not edit it. A row is a setting of the purge policy, or a peer
that is installed, or built by `tools/peers` (Google's tcmalloc where it is named). The same work
runs with each, in turn: phases that allocate, write and free so many MiB with so long a pause
between them, and 8 objects of 5 to 25 MiB that are replaced at random.

    {command}
{settings}

- **faults**: pages faulted in by a phase for each page of its objects, without the first phase
- **kept**: resident in the pauses, in percent of what a phase allocates, mean of the five columns
- **silent**: the same {wait} ms after the last phase, without a call; **called**: after as long
  again with 20 small calls a second
- **large**: ms of processor time for each of the first 30 large objects, and MiB at the end. Times
  of a busy machine say little: they may be several times as long. The faults a page of two runs may
  differ by 0.2.

"""


class Setting:
    """A contender with a name of its own, and what was measured with it in each round."""

    def __init__(self, name, library, environment):
        self.name, self.contender = name, Contender(OURS, library, environment)
        self.rounds = []

    def value(self, metric):
        values = [r[metric] for r in self.rounds if metric in r]
        return statistics.median(values) if values else None


def megabytes(options):
    """The MiB that a phase allocates."""
    return float(dict(o.split("=") for o in options.split())["mib"])


def measure_once(contender, programs, wait):
    """{metric: value} of one round; what failed is left out, and said."""
    values, parts = {}, {"kept": [], "silent": [], "called": []}
    for cell, options in PHASES.items():
        answer = macro([programs / "phases", *options.split(), f"wait={wait}"], contender)
        values[cell] = answer["faults"]
        for name, key in zip(parts, ("pause_MiB", "silent_MiB", "trickle_MiB")):
            parts[name].append(answer[key] / megabytes(options) * 100)
    values.update({name: statistics.mean(part) for name, part in parts.items()})
    values["faults"] = statistics.mean(values[cell] for cell in PHASES)
    answer = macro([programs / "patterns", LARGE, "repeat=1"], contender)
    values["ms"], values["end"] = answer["ns"] / 1e6, answer["end_KiB"] / 1024
    return values


def measure(settings, programs, rounds, wait):
    for n in range(rounds):
        for s in turn(settings, n):
            print(f"round {n + 1} of {rounds}: {s.name}", file=sys.stderr, flush=True)
            try:
                s.rounds.append(measure_once(s.contender, programs, wait))
            except Failed as why:
                print(f"{s.name}: {why}", file=sys.stderr, flush=True)


def cell(value, form):
    return "-" if value is None else format(value, form)


def table(settings):
    """Lines of Markdown."""
    columns = [(c, c, ".2f") for c in PHASES]
    columns += [("faults", "mean", ".2f"), ("kept", "kept %", ".0f"), ("silent", "silent %", ".0f"),
                ("called", "called %", ".0f"), ("ms", "large ms", ".2f"), ("end", "end MiB", ".0f")]
    lines = ["| setting | " + " | ".join(title for _, title, _ in columns) + " |",
             "|---|" + "---|" * len(columns)]
    for s in settings:
        cells = [cell(s.value(metric), form) for metric, _, form in columns]
        lines.append("| " + " | ".join([s.name] + cells) + " |")
    return lines


def curve(points, width=WIDTH, height=HEIGHT):
    """A picture in letters: (name, x, y) by its letter, x to the right and y up. Returns lines."""
    most_x = max((x for _, x, _ in points), default=0) or 1
    most_y = max((y for _, _, y in points), default=0) or 1
    rows = [[" "] * (width + len(points) + 1) for _ in range(height + 1)]
    names = []
    for i, (name, x, y) in enumerate(points):
        letter = chr(ord("a") + i)
        row = rows[height - round(y / most_y * height)]
        at = round(x / most_x * width)
        while row[at] != " ":                           # beside the one that has its place
            at += 1
        row[at] = letter
        names.append(f"{letter}  {name}")
    lines = [f"{most_y if n == 0 else 0:6.2f} |" if n in (0, height) else "       |"
             for n in range(height + 1)]
    lines = [(edge + "".join(row)).rstrip() for edge, row in zip(lines, rows)]
    lines.append("       +" + "-" * (width + 1))
    lines.append("        0" + f"{most_x:.0f} %".rjust(width))
    return lines + [""] + names


def command_of(rounds, wait):
    return f"bench/policies.py --rounds {rounds} --wait {wait} --out docs/POLICIES.md"


def page(settings, about, rounds, wait):
    named = [f"- **{name}**: " + (" ".join(f"`{key}={value}`" for key, value in env.items()) or
                                  "without an option") for name, env in SETTINGS.items()]
    lines = HEAD.format(command=command_of(rounds, wait), settings="\n".join(["", *named]),
                        wait=wait).splitlines()
    kernel = about["linux"].split("-")[0]              # behind it, a host's own suffix
    lines += [f"{about['processor']}, {about['cpus']} CPUs, Linux {kernel}, {about['libc']}.",
              f"Medians of {rounds} rounds in turn.", ""]
    lines += table(settings)
    lines += ["", "Faults a page in the mean (up), against what is kept in pauses (to the right):",
              "", "```"]
    lines += curve([(s.name, s.value("kept"), s.value("faults"))
                    for s in settings if s.value("kept") is not None])
    return "\n".join(lines + ["```"]) + "\n"


def arguments():
    parser = argparse.ArgumentParser(description="Speed against memory, for several policies.")
    add = parser.add_argument
    add("--build", type=pathlib.Path, default=HERE.parent / "build", help="build folder (build)")
    add("--rounds", type=int, default=3, metavar="N", help="interleaved rounds (3)")
    add("--wait", type=int, default=1500, metavar="MS", help="idle time after the work (1500)")
    add("--with", action="append", default=[], dest="more", metavar="NAME=LIBRARY",
        help="one more setting: a libstook-malloc.so built with other constants; not with --out")
    add("--out", type=pathlib.Path, metavar="FILE", help="the page (standard output)")
    asked = parser.parse_args()
    asked.build = asked.build.resolve()
    if min(asked.rounds, asked.wait) < 1:
        parser.error("--rounds and --wait take 1 or more")
    if asked.out and asked.more:
        parser.error("--out writes a page that its command can write again: not with --with")
    for program in ("libstook-malloc.so", "bench/phases", "bench/patterns"):
        if not (asked.build / program).exists():
            parser.error(f"{asked.build / program} is not built")
    asked.more = {name: pathlib.Path(library).resolve()
                  for name, _, library in (text.partition("=") for text in asked.more)}
    for name, library in asked.more.items():
        if not library.is_file():
            parser.error(f"--with {name}: there is no library {library}")
    return asked


def all_settings(asked):
    found = preloaded(asked.build, asked.build / "peers", PEERS)
    settings = [Setting(name, found[OURS].library, env) for name, env in SETTINGS.items()]
    settings += [Setting(name, library, {}) for name, library in asked.more.items()]
    for name, contender in found.items():
        if name != OURS:
            settings.append(Setting(name, contender.library, contender.extra))
    return settings


def main():
    asked = arguments()
    settings = all_settings(asked)
    measure(settings, asked.build / "bench", asked.rounds, asked.wait)
    text = page(settings, machine(), asked.rounds, asked.wait)
    if asked.out:
        asked.out.write_text(text)
    else:
        print(text, end="")
    return 0 if all(s.rounds for s in settings) else 1


if __name__ == "__main__":
    sys.exit(end_quietly(main))
