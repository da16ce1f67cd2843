"""
bench/measure/setting.py - what experiments have in common

Purpose: where programs lie and how long to measure; contenders by what they are linked to; rounds
and cells. A table is {contender: {metric: [one value for each round]}}; a contender that failed in
a round has None there, so that the rounds of two contenders stay neighbours.
Place: run.py makes the Setting; micro.py, between_threads.py, held_memory.py, kernel_tables.py,
scale.py and programs.py have the experiments.
"""

import time

from contenders import OURS, Contender, Linked, name_of_build
from engine import NO_TIME, Failed, Progress, in_turn, macro


class Setting:
    """Where programs lie and how long to measure. `quick`: programs are short. `few`: even where a
    figure is promised of the long ones. `end`: the time of time.monotonic() from which on an
    experiment makes no further round, or None. `begun`: cells of an experiment that an interrupted
    run measured; `keep(table)` keeps those of this one."""

    def __init__(self, build, peers, pairs, quick, chosen, contenders, say, show=False, few=None):
        self.build, self.peers, self.pairs, self.quick = build, peers, pairs, quick
        self.few = quick if few is None else few
        self.chosen, self.contenders, self.say, self.show = chosen, contenders, say, show
        self.doing, self.end, self.left_out = "", None, {}
        self.builds = {}        # other builds of Stook: {name: folder}
        self.programs = []      # of the experiment of that name; empty: all
        self.begun, self.keep = {}, lambda table: None

    def program(self, name):
        return self.build / "bench" / name

    def is_late(self):
        return self.end is not None and time.monotonic() > self.end


def rounds(setting, contenders, count, once, what=""):
    """once(contender) -> metrics, `count` times for each contender in turn; failures are told once
    each."""
    doing = " ".join(filter(None, (setting.doing, what)))
    progress = Progress(doing, count * len(contenders), quiet=0) if setting.show else None
    return in_turn(contenders, count, once, setting.say, progress, setting.is_late)


def cells(setting, contenders, count, jobs):
    """A table of several cells, {cell: once}: metrics are named "CELL METRIC". Where time is
    short, each cell has its part of it; when it is over, the remaining cells are left out."""
    table, end = {name: dict(answers) for name, answers in setting.begun.items()}, setting.end
    for i, (cell, once) in enumerate(jobs.items()):
        if any(name.startswith(cell + " ") for answers in table.values() for name in answers):
            continue
        if i and end is not None and time.monotonic() > end:
            setting.left_out[f"{setting.doing.split(', ')[-1]} {cell}"] = NO_TIME
            continue
        if end is not None:
            now = time.monotonic()
            setting.end = now + max(end - now, 0) / (len(jobs) - i)
        for name, answers in rounds(setting, contenders, count, once, cell).items():
            for metric, values in answers.items():
                table.setdefault(name, {})[f"{cell} {metric}"] = values
        setting.keep(table)
    setting.end = end
    return table


def preloaded(setting, only=None):
    return [c for n, c in setting.contenders.items() if only is None or n in only]


def linked(setting, kind):
    """A program linked to Stook, and the same with the libraries of each other build."""
    return [Contender(f"{OURS}-{kind}")] + [Linked(f"{name_of_build(build)}-{kind}", folder)
                                            for build, folder in setting.builds.items()]


def malloc_and_cache(setting, program):
    """The contenders of a program that is built with malloc, and with an object cache (-cache), and
    what runs it: once(contender, options)."""
    caches = linked(setting, "cache")

    def once(contender, options):
        built = program + ("-cache" if contender in caches else "")
        return macro([setting.program(built), *options], contender)

    return [*caches, *preloaded(setting)], once


# What samples cost: how a program gets them. FILE is its own.
SAMPLING = {"off": {}, "on": {"STOOK_SAMPLE": "on"}, "guard": {"STOOK_SAMPLE": "guard"},
            "on-64K": {"STOOK_SAMPLE": "on,64K"},
            "on-8K": {"STOOK_SAMPLE": "on,8K,most=1000000"},
            "watched": {"STOOK_PROFILE": "FILE"},
            "exact": {"STOOK_PROFILE": "FILE,interval=1"}}


def ours_sampled(setting, only, folder=""):
    """Our library to be preloaded, with samples by these of SAMPLING."""
    ours = setting.contenders.get(OURS)
    if ours is None:
        raise Failed("libstook-malloc.so is not built")
    return [Contender(f"{OURS}-{name}", ours.library,
                      {variable: value.replace("FILE", f"{folder}/{name}")
                       for variable, value in SAMPLING[name].items()}) for name in only]
