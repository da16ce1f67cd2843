"""
bench/measure/kernel_tables.py - the experiments that repeat what the kernel work published

Purpose: tables 1.1 to 1.6 of the kernel work, and what its authors named and left unmeasured: which
share of sheaves is recycled after a grace period, and contention. Each experiment returns the same
kind of table as the others do. And the maple tree beside other maps.
Place: run.py runs them as the suite `tables`; tables*.py print them; published.py has what was
published, and the verdicts.
"""

import pathlib

import tables_aspace
import tables_contention
from contenders import Contender, Linked
from engine import Failed, macro
from interval import PAIRS_ENOUGH
from setting import cells, preloaded, rounds

CAPACITY = {"STOOK_CAPACITY": "32"}     # as published
# Contenders of table 1.1, and the front end of bench/table11 that each is.
FRONTS = {"none-cas": "none-cas", "none-rseq": "none-rseq", "glibc": "malloc",
          "sheaves": "sheaves", "sheaves-32": "sheaves", "no-sheaves": "no-sheaves",
          "slabs-alone": "slabs-alone"}
CHARGED = "none-cas", "none-rseq", "sheaves"        # front ends that have a form -charged
RCU_WAITS = "untold", "told", "epoch_none", "epoch"
NO_GROUPS = 3           # exit status of bench/table11 where the library has no groups


def table11(setting):
    """Sheaves of 32 objects, and as they come, beside the kernel's older front end, allocating and
    freeing in batches; and what unused sheaf code costs (table 1.1)."""
    program = setting.program("table11")
    pairs = "pairs=50000" if setting.few else "pairs=200000" if setting.quick else "pairs=1000000"
    # Without sheaves a pair takes twenty times as long.
    few = "pairs=10000" if setting.quick else "pairs=100000"
    contenders = [Contender(name, extra=CAPACITY if name == "sheaves-32" else {})
                  for name in FRONTS]

    def once(contender):
        front = FRONTS[contender.name]
        if front in ("no-sheaves", "slabs-alone"):
            return macro([program, "front=" + front, few], contender)
        metrics = macro([program, "front=" + front, pairs], contender)
        if front in CHARGED:
            try:
                charged = macro([program, f"front={front}-charged", pairs], contender)
                metrics.update({f"{name} accounted": value for name, value in charged.items()})
            except Failed as why:
                if why.status != NO_GROUPS:
                    raise
                setting.left_out["accounted columns of table 1.1"] = "this library has no groups"
        return metrics

    return rounds(setting, contenders, setting.pairs, once)


def table12(setting):
    """Bulk allocation beside building each slab's free list and walking it (table 1.2)."""
    options = ["mb=16", "rounds=1"] if setting.quick else ["mb=256", "rounds=2"]
    return rounds(setting, [Contender("before"), Contender("after")], setting.pairs,
                  lambda c: macro([setting.program("table12"), "side=" + c.name] + options, c))


def aspace(setting, work, steps, options=(), fronts=tables_aspace.FRONTS):
    """Answers of bench/aspace for each front end, as "STEP METRIC": a step is a number of threads
    or processes."""
    def once(contender):
        spins = contender.name == tables_aspace.SPINNING
        program = setting.program("aspace-spin" if spins else "aspace")
        front = "sheaves" if spins else contender.name
        metrics = {}
        for n in steps:
            answer = macro([program, "work=" + work, "front=" + front, f"threads={n}", "seconds=1",
                            *options], contender)
            metrics.update({f"{n} {k}": v for k, v in answer.items()})
        return metrics

    return rounds(setting, [Contender(front) for front in fronts], setting.pairs, once)


def steps_of(setting, steps):
    return [1, 2] if setting.quick else steps


def mmap2(setting):
    """Threads that map and unmap, each in an address space of its own, on six front ends (table
    1.4)."""
    return aspace(setting, "mmap2", steps_of(setting, tables_aspace.THREADS))


def mmap2_processes(setting):
    """The same by processes, as published (table 1.4)."""
    return aspace(setting, "mmap2", steps_of(setting, tables_aspace.PROCESSES), ["processes=1"],
                  tables_aspace.PUBLISHED_FRONTS)


def page_fault3(setting):
    """Page faults of threads in one address space, on six front ends (table 1.5)."""
    return aspace(setting, "page_fault3", steps_of(setting, tables_aspace.THREADS))


def page_fault3_processes(setting):
    """The same by processes, each with an address space of its own (beside table 1.5)."""
    return aspace(setting, "page_fault3", steps_of(setting, tables_aspace.PROCESSES),
                  ["processes=1"], tables_aspace.PUBLISHED_FRONTS)


def page_fault3_alloc(setting):
    """The same where every fault allocates 64 bytes and an unmap frees them in bulk, beside a barn
    under a spinning lock, too (table 1.5)."""
    return aspace(setting, "page_fault3", steps_of(setting, tables_aspace.THREADS), ["objects=64"],
                  [*tables_aspace.FRONTS, tables_aspace.SPINNING])


def phone(setting):
    """Mapping a page, reading it, unmapping it, by one thread (beside table 1.3)."""
    return aspace(setting, "phone", [1], (), tables_aspace.PUBLISHED_FRONTS)


def node_counts(setting):
    """Tree nodes allocated while a recorded program maps and unmaps, on Stook's sheaves of 32 and
    on the older front ends, in stages (table 1.3)."""
    calls = "file=" + str(pathlib.Path(__file__).resolve().parents[2] /
                          "examples/address_space/python3.ops")
    stages = {**tables_aspace.STAGES, **tables_aspace.OLDER_STAGES}

    def once(contender):
        front, how = stages[contender.name]
        return macro([setting.program("aspace"), "work=replay", "seconds=0", calls,
                      "front=" + front, f"prealloc={how}"], contender)

    return rounds(setting, [Contender(stage, extra=CAPACITY) for stage in stages], 1, once)


def locality(setting):
    """Pages under 1,000 successive allocations after frees in random order, over time, and what
    stays after the last free (what sheaves were said to lose, 1.6)."""
    options = ["objects=20000", "steps=10"] if setting.quick else []
    caches = {"no sheaves": ({}, ["none=1"]), "sheaves-32": (CAPACITY, []), "sheaves": ({}, [])}

    def job(size):
        def once(contender):
            extra, its = caches.get(contender.name, (None, []))
            program = "locality" if extra is None else "locality-cache"
            return macro([setting.program(program), f"size={size}", *its, *options], contender)
        return once

    contenders = [Contender(name, extra=extra) for name, (extra, _) in caches.items()]
    return cells(setting, [*contenders, *preloaded(setting)], min(setting.pairs, PAIRS_ENOUGH),
                 {f"{size} B": job(size) for size in ((64,) if setting.quick else (64, 256, 1024))})


def rcu(setting):
    """Frees that wait for readers, ns an object: by sheaf; a call_rcu of liburcu for each object;
    arrays handed to call_rcu and freed one by one. Which share of sheaves is recycled."""
    # Medians over the rounds: in the first ones sheaves are made, and the barn's room grows.
    options = ["objects=20000", "rounds=20"] if setting.quick else ["objects=100000", "rounds=9"]
    ways = ["call_rcu_malloc", "call_rcu", "call_rcu_array", "free_rcu"]

    def once(contender):
        command = [setting.program("rcu"), "way=" + contender.name, *options]
        metrics = macro(command, contender)
        if not setting.few:
            replaced = macro([*command, "replace=1"], contender)
            metrics.update({f"replace {name}": value for name, value in replaced.items()})
        return metrics

    return rounds(setting, [Contender(way) for way in ways], setting.pairs, once)


def rcu_waits(setting):
    """KiB that wait for readers at a fixed rate of frees, where the program has grace periods of
    its own, told of or not."""
    options = ["ms=" + ("200" if setting.quick else "1000")]
    return rounds(setting, [Contender(way) for way in RCU_WAITS], setting.pairs,
                  lambda c: macro([setting.program("rcu_waits"), "way=" + c.name, *options], c))


def contention(setting):
    """Frees in random order by several threads: retries and waits, counted, and extrapolated to
    192 CPUs. Of many CPUs: tools/machines/emulated-machine (bench/README.md)."""
    contenders = [Contender(f"{n} threads") for n in tables_contention.THREADS]

    def once(contender):
        metrics = {}
        for kind, options in tables_contention.KINDS.items():
            answer = macro([setting.program("contention"),
                            "threads=" + contender.name.split()[0], *options], contender)
            metrics.update({f"{kind} {name}": value for name, value in answer.items()})
        return metrics

    return rounds(setting, contenders, min(setting.pairs, PAIRS_ENOUGH), once)


def slab_turns(setting):
    """Contention for the lock of a node's slab lists on 1 to 16 CPUs that run in turn,
    instruction by instruction; and extrapolated to 192."""
    program = setting.program("slab_turns")
    if not program.exists():
        raise Failed("bench/slab_turns is not built; it is of x86-64 only")
    options = ["size=256", "rounds=2", "objects=" + ("96" if setting.quick else "480")]

    def job(kind):
        return lambda c: macro([program, "threads=" + c.name.split()[0], *options,
                                *tables_contention.TURNS[kind]], c)

    # The same in each round.
    return cells(setting, [Contender(f"{n} CPUs") for n in tables_contention.THREADS], 1,
                 {kind: job(kind) for kind in tables_contention.TURNS})


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


# tables.py prints it.
SHOWN = {"maple_map": []}
ALL = {e.__name__: e for e in (table11, table12, node_counts, phone, mmap2, mmap2_processes,
                               page_fault3, page_fault3_processes, page_fault3_alloc, locality,
                               rcu, rcu_waits, contention, slab_turns, maple_map)}
