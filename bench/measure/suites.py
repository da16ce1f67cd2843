"""
bench/measure/suites.py - which experiments make up a suite, and how long each may take

Purpose: `stook bench` has five suites. --quick runs some experiments of each, in six rounds where
time allows: with fewer nothing can be said of a difference. Time is shared out; what does not fit
is left out, and a program that is late is ended. So it ends in less than two minutes on a slow
machine, too. --short does the same with all experiments, in twenty.
Place: run.py runs what chosen() returns.
"""

import time

import between_threads
import held_memory
import kernel_tables
import micro
import programs
import scale

MODULES = micro, between_threads, held_memory, kernel_tables, scale, programs
ALL = {name: experiment for module in MODULES for name, experiment in module.ALL.items()}
# What is printed; everything is in the result file. None: all metrics without a space in their
# name.
SHOWN = {name: shown for module in MODULES for name, shown in getattr(module, "SHOWN", {}).items()}
SUITES = {
    "micro": ["object_pair", "malloc_pair", "sampling", "hardened_pair", "malloc_calls",
              "heap_pair", "heap_ends", "mixtures", "bulk", "pattern_rows", "rcu", "rcu_waits",
              "prodcons", "realloc", "calloc"],
    "scale": ["oversubscribed", "many_caches", "slots", "nodes", "heap_size", "barn", "remote",
              "one_side", "malloc1", "malloc2"],
    "memory": ["parked", "empty", "spike", "cgroup", "churn", "phases", "random_order",
               "freed_once", "live_set", "huge_runs", "sparse_caches", "replay", "sizes"],
    "tables": ["table11", "table12", "node_counts", "phone", "mmap2", "mmap2_processes",
               "page_fault3", "page_fault3_processes", "page_fault3_alloc", "locality",
               "contention", "slab_turns", "maple_map"],
    "programs": ["programs", "sampled_programs", "fleet_mixes"],
}
# Of each suite what shows most in a short time; the number is its share of the time.
QUICK = {"object_pair": 3, "malloc_pair": 5, "pattern_rows": 6, "rcu": 1, "prodcons": 2,
         "oversubscribed": 3, "many_caches": 1, "heap_size": 2, "parked": 1, "random_order": 2,
         "table11": 3, "table12": 2, "programs": 6}
QUICK_SECONDS = 115
SHORT_SECONDS = 1200
# Of the time, the part in which rounds begin. At its end programs that still run are ended.
ROUNDS_PART = 0.87
# What else takes more or less than 2 where time is shared out among all.
SHARES = {"object_pair": 3, "malloc_pair": 5, "malloc_calls": 5, "bulk": 1, "pattern_rows": 16,
          "heap_pair": 1, "heap_ends": 1, "prodcons": 4, "realloc": 1, "calloc": 1,
          "oversubscribed": 4, "nodes": 4, "heap_size": 4, "spike": 6, "churn": 4, "phases": 3,
          "random_order": 4, "live_set": 3, "sparse_caches": 1, "replay": 5, "sizes": 4,
          "table11": 6, "table12": 3, "mmap2": 3, "page_fault3": 3, "maple_map": 4,
          "programs": 55, "fleet_mixes": 50}
QUICK_PAIRS = 6


def suite_of(experiment):
    return next((suite for suite, names in SUITES.items() if experiment in names), "")


def chosen(suites, only, quick):
    """Names of experiments in the order in which they run. ValueError names what there is not."""
    names = [name for suite in suites or SUITES for name in SUITES.get(suite, [])
             if not quick or name in QUICK]
    unknown = [suite for suite in suites or () if suite not in SUITES]
    if unknown:
        raise ValueError(f"no such suite: {', '.join(unknown)}; there are {', '.join(SUITES)}")
    if only:
        unknown = [name for name in only if name not in ALL]
        if unknown:
            raise ValueError(f"no such experiment: {', '.join(unknown)} (--list names them)")
        names = [name for name in only if not suites or suite_of(name) in suites]
    if not names:
        raise ValueError("the suites that were chosen have none of these experiments")
    return names


def ends(names, seconds, now=time.monotonic, shares=QUICK):
    """For each experiment, as its turn comes: (name, the time at which it makes no further round).
    What one leaves over, the later ones have. Without `seconds` there is no such time."""
    start = now()
    for i, name in enumerate(names):
        if not seconds:
            yield name, None
            continue
        rest = max(seconds - (now() - start), 0)
        share = shares.get(name, 2) / sum(shares.get(n, 2) for n in names[i:])
        yield name, now() + rest * share
