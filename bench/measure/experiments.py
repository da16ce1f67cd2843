"""
bench/measure/experiments.py - what is measured, and with which commands

Purpose: each experiment runs one program once for each contender in each round; the contenders take
turns, every other round in reverse order. What comes back is a table {contender: {metric: [one
value for each round]}}; a contender that failed in a round has None there, so that the rounds of
two contenders stay neighbours.
Place: run.py calls measure(); figures.py judges the tables.
"""

import json
import lzma
import os
import pathlib
import resource
import signal
import subprocess
import tempfile
import time

import tables_aspace
from contenders import OURS, PLAIN, Contender, Linked, name_of_build
from engine import (NO_TIME, PROGRAM_SECONDS, Failed, Progress, allowed, checked, in_turn, macro,
                    micro, run)
from interval import PAIRS_ENOUGH


class Setting:
    """Where programs lie and how long to measure. `quick`: programs are short. `few`: even where a
    figure is promised of the long ones. `end`: the time of time.monotonic() from which on an
    experiment makes no further round, or None."""

    def __init__(self, build, peers, pairs, quick, chosen, contenders, say, show=False, few=None):
        self.build, self.peers, self.pairs, self.quick = build, peers, pairs, quick
        self.few = quick if few is None else few
        self.chosen, self.contenders, self.say, self.show = chosen, contenders, say, show
        self.doing, self.end, self.left_out = "", None, {}
        self.builds = {}        # other builds of Stook: {name: folder}

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
    table, end = {}, setting.end
    for i, (cell, once) in enumerate(jobs.items()):
        if i and end is not None and time.monotonic() > end:
            setting.left_out[f"{setting.doing.split(', ')[-1]} {cell}"] = NO_TIME
            continue
        if end is not None:
            now = time.monotonic()
            setting.end = now + max(end - now, 0) / (len(jobs) - i)
        for name, answers in rounds(setting, contenders, count, once, cell).items():
            for metric, values in answers.items():
                table.setdefault(name, {})[f"{cell} {metric}"] = values
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


# Pools of objects of one size: the program's name, and the package that it is built from.
POOLS = {"pool-dpdk": "libdpdk-dev", "pool-boost": "libboost-dev",
         "pool-boost-private": "libboost-dev"}


def object_pair(setting):
    """Pair and batches of 64-byte objects, ns an object: object cache, private array, pools, and
    peers linked statically."""
    seconds = 0.02 if setting.quick else 0.1
    programs = {name: setting.program("object_pair-" + name)
                for name in ("array", "cache", "inline", "inline-unloadable", "inline-static")}
    for path in sorted((setting.peers / "bin").glob("pair-*")):
        peer = path.name.removeprefix("pair-")
        if setting.chosen is None or peer in setting.chosen:
            programs["static-" + peer] = path
    for pool in POOLS:
        if setting.chosen is None or pool in setting.chosen:
            programs[pool] = setting.program("object_pair-" + pool)
            if not programs[pool].exists():
                setting.left_out[pool] = f"not built: needs {POOLS[pool]}"
    programs = {name: path for name, path in programs.items() if path.exists()}
    contenders = [Contender(name, extra={"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
                            if "tcmalloc" in name else {})
                  for name in programs]
    for c in contenders:
        c.is_behind = lambda malloc_from: True          # linked statically: malloc may be theirs
    preload = {"preloaded-" + c.name: c for c in preloaded(setting) if c.name != OURS}
    for name, c in preload.items():
        clone = Contender(name, c.library, c.extra)
        contenders.append(clone)
        programs[name] = setting.program("object_pair-malloc")
    return rounds(setting, contenders, setting.pairs,
                  lambda c: micro([programs[c.name]], c, seconds))


def memory_cells(setting):
    """What random_order runs: {name: options}. No cell holds more than 512 MiB."""
    if setting.few:
        return {f"{size} B x 100,000 random": [f"size={size}", "objects=100000", "rounds=3"]
                for size in (64, 1024)}
    if setting.quick:
        return {f"{size} B x {n:,} random": [f"size={size}", f"objects={n}", "rounds=3"]
                for size, n in ((64, 1_000_000), (256, 100_000), (1024, 100_000))}
    found = {}
    for size in (16, 64, 256, 1024, 8192):
        for n in (10_000, 100_000, 1_000_000, 4_000_000):
            if size * n <= 512 << 20:
                found[f"{size} B x {n:,} random"] = [f"size={size}", f"objects={n}", "rounds=3"]
    for size in (64, 1024):
        how = [f"size={size}", "objects=100000"]
        found[f"{size} B x 100,000 lifo"] = [*how, "order=lifo"]
        found[f"{size} B x 100,000 fifo"] = [*how, "order=fifo"]
        found[f"{size} B x 100,000 random, by another thread"] = [*how, "by=other"]
    found["256 B x 100,000 random, 1,000 kept"] = ["size=256", "objects=100000", "kept=1000"]
    return found


def random_order(setting):
    """A large live set freed in random order: frees, allocations after them, what stays."""
    contenders, once = malloc_and_cache(setting, "random_order")
    return cells(setting, contenders, min(setting.pairs, PAIRS_ENOUGH),
                 {cell: lambda c, options=options: once(c, options)
                  for cell, options in memory_cells(setting).items()})


def freed_once(setting):
    """100,000 x 256 B, written, freed once in random order: what is left at once."""
    contenders, once = malloc_and_cache(setting, "random_order")
    options = ["size=256", "objects=100000", "touch=256", "rounds=0"]
    return cells(setting, contenders, min(setting.pairs, PAIRS_ENOUGH),
                 {f"{name} kept": lambda c, kept=kept: once(c, [*options, kept])
                  for name, kept in (("none", "kept=0"), ("1,000", "kept=1000"))})


def sparse_caches(setting):
    """1,000 object caches of which one object is used: resident for each."""
    options = ["caches=200"] if setting.few else []
    return rounds(setting, [Contender(OURS + "-cache")], min(setting.pairs, PAIRS_ENOUGH),
                  lambda c: macro([setting.program("sparse_caches"), *options], c))


RECORDED = pathlib.Path(__file__).resolve().parents[1] / "data"


def of_programs(setting, options_of):
    """Answers of bench/replay for each recorded program: "PROGRAM METRIC"."""
    def job(path):
        command = [setting.program("replay"), *options_of(path)]
        return lambda c: macro(command, c)

    return cells(setting, preloaded(setting), min(setting.pairs, PAIRS_ENOUGH),
                 {path.stem: job(path) for path in sorted(RECORDED.glob("*.tsv"))})


def replay(setting):
    """What recorded programs allocated, resized and freed, event by event: peak memory, time."""
    with tempfile.TemporaryDirectory() as folder:
        def options(path):
            events = pathlib.Path(folder) / path.stem
            events.write_bytes(lzma.decompress(path.with_suffix(".events.xz").read_bytes()))
            return [f"events={events}", "copies=" + ("1" if setting.quick else "4")]

        return of_programs(setting, options)


def sizes(setting):
    """Sizes of recorded programs, drifting, replaced at random: peak memory, time."""
    mib = "8" if setting.quick else "32"
    return of_programs(setting, lambda path: [f"sizes={path}", "mib=" + mib])


def malloc_pair(setting):
    """malloc and free preloaded, ns an object: pairs, batches, mixes, and a live set of 64 MiB."""
    seconds = 0.02 if setting.quick else 0.1
    few = "--benchmark_filter=^(pair/64|pair/40000|batch64/64|pair_mix|batch64_mix|live_64MiB)"
    return rounds(setting, preloaded(setting), setting.pairs,
                  lambda c: micro([setting.program("malloc_pair")] + [few] * setting.quick, c,
                                  seconds))


def malloc_calls(setting):
    """realloc, calloc, aligned allocation, strdup, new and delete, containers, preloaded: each by
    itself."""
    return rounds(setting, preloaded(setting), setting.pairs,
                  lambda c: micro([setting.program("malloc_calls")], c,
                                  0.02 if setting.quick else 0.1))


def least_pair(setting):
    """A pair and batches of 16, the least of many short rounds: tells builds apart."""
    contenders, once = malloc_and_cache(setting, "least_pair")
    options = ["rounds=" + ("300" if setting.quick else "3000")]
    return rounds(setting, contenders, setting.pairs, lambda c: once(c, options))


def heap_pair(setting):
    """A heap beside malloc: pairs, batches, what a heap takes, and what its end costs."""
    options = ["rounds=100", "objects=100000"] if setting.quick else []
    return rounds(setting, [Contender("stook-cache")], setting.pairs,
                  lambda c: macro([setting.program("heap_pair"), *options], c))


def mixtures(setting):
    """Cycles of malloc and free in six mixtures, counted by a loop beside them: tells builds apart
    where the clock rate changes."""
    options = ["parts=" + ("300" if setting.quick else "2000")]
    return rounds(setting, preloaded(setting), setting.pairs,
                  lambda c: macro([setting.program("mixtures"), *options], c))


def bulk(setting):
    """Bulk calls of an object cache beside storing pointers, ns an object."""
    command = ([setting.program("bulk")] +
               (["--benchmark_filter=warm|store"] if setting.quick else []))
    return rounds(setting, [Contender("stook-cache")], setting.pairs,
                  lambda c: micro(command, c, 0.02))


def maple_map(setting):
    """The maple tree beside std::map, absl::btree_map and Rust's maps: stores, lookups, walks,
    lookups beside a writer."""
    programs = dict.fromkeys(("maple", "maple-external", "maple-gaps", "std", "btree"),
                             setting.program("maple_map"))
    contenders = [Contender(name) for name in programs]
    contenders += [Linked(f"{name}-{build}", folder) for name in ("maple", "maple-external")
                   for build, folder in setting.builds.items()]
    rust = setting.peers / "bin" / "rust_maps"
    if rust.exists():
        programs.update(dict.fromkeys(("btreemap", "rangemap"), rust))
        contenders += [Contender("btreemap"), Contender("rangemap")]
    else:
        setting.say("  Rust's maps are left out: bench/peers/build.py rust_maps")

    def once(contender):
        metrics = {}
        for kind, options in tables_aspace.MAPLE_KINDS.items():
            if setting.quick and "n=10000000" in options:
                continue
            name = contender.name if contender.name in programs else \
                contender.name.rpartition("-")[0]
            answer = macro([programs[name], "map=" + name] + options, contender)
            metrics.update({f"{kind} {k}": v for k, v in answer.items()})
        return metrics

    return rounds(setting, contenders, setting.pairs, once)


def barn(setting):
    """Several threads on one barn: what gets and puts cost, and how many are tried again."""
    ms = 100 if setting.quick else 400
    contenders = [Contender(f"{n} threads") for n in (1, 2, 8, 64)]
    return rounds(setting, contenders, min(setting.pairs, 10),
                  lambda c: macro([setting.program("barn"), "threads=" + c.name.split()[0],
                                   f"ms={ms}"], c))


# Batches, and how many of a hundred objects cross. Grown sheaves of a slot hold 2,048 objects of 64
# bytes: of batches that fit, everything is handed out again.
EXCHANGES = (1, 10), (1, 50), (1000, 10), (1000, 50), (4000, 10), (4000, 50)
# Objects in a batch that one thread allocates and another frees, in turn.
HANDED = 2048, 32768


def remote(setting):
    """One thread allocates, another frees, freely and in turn; two exchange objects: on one node,
    and on two."""
    ms = 200 if setting.quick else 700
    ours = setting.contenders.get(OURS)
    if ours is None:
        raise Failed("libstook-malloc.so is not built")
    libraries = {"": ours.library}
    libraries.update({f", {build}": setting.contenders[name_of_build(build)].library
                      for build in setting.builds})
    contenders = [Contender(nodes + build, library, extra) for build, library in libraries.items()
                  for nodes, extra in (("one node", {}),
                                       ("two nodes", {"STOOK_TOPOLOGY": "nodes=2"}))]

    def once(contender):
        metrics = macro([setting.program("prodcons"), "size=64", f"ms={ms}"], contender)
        for batch in HANDED:
            answer = macro([setting.program("handover"), f"batch={batch}",
                            f"batches={ms * 6000 // batch}"], contender)
            metrics.update({f"{batch} in turn {k}": v for k, v in answer.items()})
        for batch, crossing in EXCHANGES:
            options = [f"batch={batch}", f"crossing={crossing}", f"ms={ms}"]
            answer = macro([setting.program("exchange")] + options, contender)
            metrics.update({f"{batch}, {crossing} % {k}": v for k, v in answer.items()
                            if "two" in contender.name or "percent" not in k})
        return metrics

    return rounds(setting, contenders, setting.pairs, once)


# Name: the calls that allocate, and those that free. Of malloc there is no call with
# STOOK_ALLOC_NOWAIT.
ONE_SIDE = {"blocking": ("blocking", "blocking"), "nolock": ("nolock", "nolock"),
            "nolock, blocking frees": ("nolock", "blocking"), "nowait": ("nowait", "blocking")}
ONE_SIDE_CELLS = {f"{what}{nodes}": (what, extra) for what in ("cache", "malloc")
                  for nodes, extra in (("", {}), (", two nodes", {"STOOK_TOPOLOGY": "nodes=2"}))}


def one_side(setting):
    """Threads that only allocate, and threads that only free, by calls that wait for nobody beside
    calls that may wait: an object cache and malloc, on one node and on two."""
    ms = 100 if setting.quick else 400

    def job(what, extra):
        def once(contender):
            alloc, free = ONE_SIDE[contender.name]
            if what == "malloc" and alloc == "nowait":
                return {}
            return macro([setting.program("one_side"), f"what={what}", f"alloc={alloc}",
                          f"free={free}", f"ms={ms}"], Contender(contender.name, extra=extra))
        return once

    return cells(setting, [Contender(name) for name in ONE_SIDE], setting.pairs,
                 {cell: job(*how) for cell, how in ONE_SIDE_CELLS.items()})


# Of will-it-scale's malloc1 and malloc2.
TASKS = {f"{n} {kind}": [f"tasks={n}", f"processes={int(kind == 'processes')}"]
         for kind in ("threads", "processes") for n in (1, 2, 16)}


def scale_malloc(setting, size, more=()):
    ms = "ms=" + ("100" if setting.quick else "300")
    jobs = {**TASKS, **{f"{cell}, touched": [*options, "touch=1"] for cell, options in more}}
    return cells(setting, preloaded(setting), setting.pairs,
                 {cell: lambda c, options=options: macro(
                     [setting.program("scale_malloc"), f"size={size}", ms, *options], c)
                  for cell, options in jobs.items()})


def malloc1(setting):
    """Tasks that allocate and free 128 MiB each, as threads and as processes (will-it-scale)."""
    return scale_malloc(setting, 128 << 20, [("1 threads", TASKS["1 threads"])])


def malloc2(setting):
    """The same with 1 KiB (will-it-scale)."""
    return scale_malloc(setting, 1024)


def prodcons(setting):
    """One thread allocates, another frees."""
    ms = 200 if setting.quick else 700

    def once(contender):
        metrics = {}
        for name, size in (("64", 64), ("mix", 0)):
            answer = macro([setting.program("prodcons"), f"size={size}", f"ms={ms}"], contender)
            metrics.update({f"{name} {k}": v for k, v in answer.items()})
        return metrics

    return rounds(setting, preloaded(setting), setting.pairs, once)


def parked(setting):
    """256 parked threads."""
    return rounds(setting, preloaded(setting), min(setting.pairs, PAIRS_ENOUGH),
                  lambda c: macro([setting.program("parked"),
                                   "threads=" + ("64" if setting.few else "256")], c))


def empty(setting):
    """What a preload adds to a program that does nothing."""
    program = setting.program("empty")
    plain = setting.contenders[PLAIN]

    def resident(mode, contender):
        return json.loads(run([program, mode], contender))["resident_KiB"]

    def core_bytes(contender):
        with tempfile.TemporaryDirectory() as folder:
            try:
                done = subprocess.run([program, "core"], cwd=folder, env=contender.environment(),
                                      capture_output=True, timeout=allowed(PROGRAM_SECONDS),
                                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE,
                                                                            (-1, -1)))
            except subprocess.TimeoutExpired:
                raise Failed(NO_TIME) from None
            files = list(pathlib.Path(folder).iterdir())
            if done.returncode != -signal.SIGABRT or len(files) != 1:
                raise Failed("no core file")
            return files[0].stat().st_size

    def once(contender):
        metrics = {"resident_KiB": resident("rss", contender) - resident("rss", plain)}
        # Some peers reserve gigabytes that mlockall would make resident, and a core file would
        # hold.
        if contender.name in (OURS, PLAIN):
            metrics["mlockall_KiB"] = resident("locked", contender) - resident("locked", plain)
            try:
                metrics["core_KiB"] = (core_bytes(contender) - core_bytes(plain)) / 1024
            except Failed as why:
                setting.say(f"  {contender.name}: {why}")
        if contender.library:
            answer = json.loads(run([setting.program("spawn"), contender.library, program,
                                     "pairs=" + ("100" if setting.quick else "1000")], plain))
            metrics.update({name: answer[name] for name in ("plain_us", "added_us", "added_low_us",
                                                            "added_high_us")})
        return metrics

    return rounds(setting, preloaded(setting), min(setting.pairs, PAIRS_ENOUGH), once)


def answer_of(process):
    """What a program wrote that runs beside others."""
    try:
        return process.communicate(timeout=allowed(PROGRAM_SECONDS))[0]
    except (subprocess.TimeoutExpired, Failed):
        process.kill()
        process.communicate()
        raise Failed(NO_TIME) from None


def spike(setting):
    """1 GiB allocated and freed, then idle. Contenders run side by side: only memory is looked
    at."""
    wait, mib = (2, 256) if setting.few else (10, 1024)
    table = {}
    jobs = [(c, name, size) for name, size in (("small", 64), ("mix", 0), ("large", 1 << 20))
            for c in preloaded(setting)]
    at_once = max(1, min(6, os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") //
                         (3 << 30)))
    for first in range(0, len(jobs), at_once):
        running = [(c, name, subprocess.Popen([setting.program("spike"), f"size={size}",
                                               f"wait={wait}", f"mib={mib}"],
                                              env=c.environment(), stdout=subprocess.PIPE,
                                              text=True))
                   for c, name, size in jobs[first:first + at_once]]
        for c, name, process in running:
            try:
                answer = checked(json.loads(answer_of(process)), c)
                for key in ("after_KiB", "idle_KiB", "busy_KiB"):
                    answer[key.replace("KiB", "percent")] = 100 * answer[key] / (mib * 1024)
            except (ValueError, KeyError, Failed) as why:
                setting.say(f"  {c.name}, {name}: no answer ({why})")
                continue
            for key, value in answer.items():
                table.setdefault(c.name, {})[f"{name} {key}"] = [value]
    return table


class MemoryGroup:
    """A memory control group of this run's own (version 1 or 2), with a limit."""

    V1, V2 = pathlib.Path("/sys/fs/cgroup/memory"), pathlib.Path("/sys/fs/cgroup")

    def __init__(self, limit):
        v1 = (self.V1 / "memory.limit_in_bytes").exists()
        self.path = (self.V1 if v1 else self.V2) / f"stook-bench-{os.getpid()}"
        self.peak_file = "memory.max_usage_in_bytes" if v1 else "memory.peak"
        try:
            self.path.mkdir()
            (self.path / ("memory.limit_in_bytes" if v1 else "memory.max")).write_text(str(limit))
            if not v1:
                (self.path / "memory.swap.max").write_text("0")
        except OSError as why:
            self.close()
            raise Failed(f"no memory control group can be made here: {why}") from None

    def enter(self):
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def peak(self):
        return int((self.path / self.peak_file).read_text())

    def close(self):
        try:
            self.path.rmdir()
        except OSError:
            pass


def cgroup(setting):
    """128 threads touch every size class within 64 MiB."""
    def once(contender):
        group = MemoryGroup(64 << 20)
        try:
            metrics = {"killed": 1.0}
            try:
                metrics.update(macro([setting.program("touch_classes")], contender, group.enter),
                               killed=0.0)
            except Failed as why:
                if "SIGKILL" not in str(why):
                    raise
            metrics["group_peak_KiB"] = group.peak() / 1024
            return metrics
        finally:
            group.close()

    return rounds(setting, preloaded(setting), min(setting.pairs, PAIRS_ENOUGH), once)


def realloc(setting):
    """Growing to 1 GiB in steps of 4 KiB, beside glibc."""
    only = (OURS, PLAIN) if setting.chosen is None else None
    return rounds(setting, preloaded(setting, only), min(setting.pairs, 10),
                  lambda c: macro([setting.program("large"), "realloc",
                                   "mib=" + ("64" if setting.few else "1024")], c))


def calloc(setting):
    """A fresh zeroed object of 1 GiB."""
    return rounds(setting, preloaded(setting), min(setting.pairs, PAIRS_ENOUGH),
                  lambda c: macro([setting.program("large"), "calloc"], c))


def churn(setting):
    """Values whose sizes drift from 100 bytes to 10 KiB and back."""
    return rounds(setting, preloaded(setting), min(setting.pairs, PAIRS_ENOUGH),
                  lambda c: macro([setting.program("churn")] +
                                  (["mib=16", "steps=10"] if setting.quick else []), c))


# Name: options of a cell of phases.
PHASES = {"2 MiB 1 ms": "mib=2 pause=1 phases=60",
          "20 MiB 50 ms": "mib=20 pause=50 phases=14",
          "60 MiB 300 ms": "mib=60 pause=300 phases=8",
          "20 MiB 900 ms": "mib=20 pause=900 phases=6",
          "20 MiB of 100 KB 50 ms": "mib=20 pause=50 phases=14 size=100000"}


def phases(setting):
    """Work in phases, all freed in each pause: faults, against what is kept meanwhile."""
    def once(contender):
        metrics = {}
        for name, options in list(PHASES.items())[:2 if setting.quick else None]:
            answer = macro([setting.program("phases")] + options.split() + ["wait=0"], contender)
            metrics.update({f"{name} {key}": answer[key] for key in ("faults", "us", "pause_MiB")})
        return metrics
    return rounds(setting, preloaded(setting), min(setting.pairs, PAIRS_ENOUGH), once)


def live_set(setting):
    """1 GiB of 1 KiB objects: first touch, accesses at random, and what frees at random leave."""
    return rounds(setting, preloaded(setting), min(setting.pairs, PAIRS_ENOUGH),
                  lambda contender: macro([setting.program("live_set")], contender))


def huge_runs(setting):
    """512 MiB of 256-byte objects: an object cache, one in runs of huge pages, malloc."""
    options = ["size=256", "mib=" + ("64" if setting.quick else "512"), "wait=1000"]
    contenders, once = malloc_and_cache(setting, "live_set")
    runs = Contender(OURS + "-cache-huge")

    def one(contender):
        if contender is runs:
            return macro([setting.program("live_set-cache"), *options, "huge=1"], contender)
        return once(contender, options)

    return rounds(setting, [runs, *contenders], min(setting.pairs, PAIRS_ENOUGH), one)


# What is printed; everything is in the result file. None: all metrics without a space in their
# name.
SHOWN = {
    "malloc_pair": ["pair/64", "pair/512", "pair/4096", "pair/40000", "pair/65536", "batch64/64",
                    "pair_mix", "batch64_mix", "batch64_mix held_KiB", "live_64MiB",
                    "live_64MiB held_KiB"],
    "object_pair": ["pair", "batch/10", "batch/64", "batch/1000", "batch/1000 cached_KiB",
                    "batch/1000 resident_KiB"],
    # tables.py prints them
    "maple_map": [], "random_order": [], "replay": [], "sizes": [],
    "remote": ["objects_per_cpu_us", "objects_per_us"] +
              [f"{n} in turn {what}" for n in HANDED for what in ("producer_ns", "consumer_ns")] +
              [f"{n}, {c} % {what}" for n, c in EXCHANGES
               for what in ("objects_per_cpu_us", "again_percent")],
    "one_side": [f"{cell} {what}" for cell in ONE_SIDE_CELLS
                 for what in ("alloc_ns", "free_ns", "one_by_one")],
    "prodcons": ["64 objects_per_cpu_us", "64 objects_per_us", "64 resident_KiB",
                 "mix objects_per_cpu_us", "mix objects_per_us", "mix resident_KiB"],
    "spike": ["small after_percent", "small idle_percent", "small busy_percent",
              "mix idle_percent", "large idle_percent"],
    "phases": [f"{name} {metric}" for name in PHASES for metric in ("faults", "us", "pause_MiB")],
    "live_set": ["touch_ns", "access_ns", "faults", "peak_MiB", "old_MiB", "end_MiB"],
    "freed_once": [f"{cell} {metric}" for metric in ("left_MiB", "free_ns")
                   for cell in ("none kept", "1,000 kept")],
    "huge_runs": ["touch_ns", "access_ns", "free_ns", "faults", "peak_MiB", "huge_MiB", "end_MiB"],
    "empty": ["added_us", "resident_KiB", "core_KiB", "mlockall_KiB"],
}

ALL = {e.__name__: e for e in (object_pair, malloc_pair, malloc_calls, least_pair, heap_pair,
                               mixtures, bulk, barn, remote, one_side, malloc1, malloc2, maple_map,
                               prodcons, parked, empty, spike, cgroup, realloc, calloc, churn,
                               phases, random_order, freed_once, live_set, huge_runs,
                               sparse_caches, replay, sizes)}
