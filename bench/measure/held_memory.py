"""
bench/measure/held_memory.py - experiments of what memory is held, and for how long

Purpose: live sets that are freed, idle processes, limits, what recorded programs ask for.
Place: run.py runs them. A round is a run of one program for each contender.
"""

import json
import lzma
import os
import pathlib
import resource
import signal
import subprocess
import tempfile

from contenders import OURS, PLAIN, Contender
from engine import NO_TIME, PROGRAM_SECONDS, Failed, allowed, checked, macro, run
from interval import PAIRS_ENOUGH
from setting import cells, malloc_and_cache, preloaded, rounds


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
    return rounds(setting, preloaded(setting, (OURS, PLAIN)), min(setting.pairs, 10),
                  lambda c: macro([setting.program("large"), "realloc",
                                   "mib=" + ("64" if setting.quick else "1024")], c))


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


SHOWN = {
    # tables.py prints them
    "random_order": [], "replay": [], "sizes": [],
    "spike": ["small after_percent", "small idle_percent", "small busy_percent",
              "mix idle_percent", "large idle_percent"],
    "phases": [f"{name} {metric}" for name in PHASES for metric in ("faults", "us", "pause_MiB")],
    "live_set": ["touch_ns", "access_ns", "faults", "peak_MiB", "old_MiB", "end_MiB"],
    "freed_once": [f"{cell} {metric}" for metric in ("left_MiB", "free_ns")
                   for cell in ("none kept", "1,000 kept")],
    "huge_runs": ["touch_ns", "access_ns", "free_ns", "faults", "peak_MiB", "huge_MiB", "end_MiB"],
    "empty": ["added_us", "resident_KiB", "core_KiB", "mlockall_KiB"],
}
ALL = {e.__name__: e for e in (parked, empty, spike, cgroup, realloc, calloc, churn, phases,
                               random_order, freed_once, live_set, huge_runs, sparse_caches,
                               replay, sizes)}
