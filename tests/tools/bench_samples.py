"""
What the tests of `stook bench` measure instead of allocators: samples with known medians.
Place: imported by tests/tools/bench.py and bench_page.py. Nothing is measured here.
"""

import os
import pathlib
import sys

sys.dont_write_bytecode = True
BENCH = pathlib.Path(os.environ["STOOK_SOURCE"]) / "bench"
sys.path[:0] = [str(BENCH / folder) for folder in (".", "measure", "tables", "pages", "peers")]

import tables                                               # noqa: E402

ABOUT = {"processor": "a <processor>", "cpus": 2, "linux": "6", "libc": "glibc 2", "load": 0.1,
         "load_after": 0.1, "commit": "0123456789ab", "date": "2026-01-01T00:00:00+00:00",
         "compiler": "gcc 12", "backend": "rseq"}


def times(first, n=8, step=0.01):
    """n values around `first`."""
    return [first * (1 + step * (i % 3)) for i in range(n)]


def session(ours=1.0, theirs=2.0, n=8, **about):
    """Results with a workload of each kind: ours takes so much, glibc so much."""
    table = {"stook": {"lifo/1 ns": times(ours, n), "lifo/1 peak_KiB": times(10000 * ours, n)},
             "glibc": {"lifo/1 ns": times(theirs, n), "lifo/1 peak_KiB": times(5000, n)},
             "mimalloc": {"lifo/1 ns": times(theirs * 2, n), "lifo/1 peak_KiB": times(90000, n)}}
    threads = {name: {f"{n_threads} threads {metric}": times(cost * n_threads, n)
                      for n_threads in (1, 64, 2000) for metric in ("ns", "peak_KiB")}
               for name, cost in (("stook", ours), ("glibc", theirs))}
    results = {"pattern_rows": table, "oversubscribed": threads,
               "table12": {"before": {f"{s} {o}": times(4, n) for s, o in tables.DROPS_12},
                           "after": {f"{s} {o}": times(1, n) for s, o in tables.DROPS_12}},
               "prodcons": {"stook": {"64 objects_per_cpu_us": times(9, n)},
                            "glibc": {"64 objects_per_cpu_us": times(3, n)}}}
    return {"format": 2, "machine": {**ABOUT, **about}, "pairs": n, "quick": False,
            "command_line": "stook bench", "left_out": {"snmalloc": "there is no cargo"},
            "peers": {"stook": "", "glibc": "2.36", "mimalloc": "3.1.6"}, "results": results}
