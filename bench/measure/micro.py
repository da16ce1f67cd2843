"""
bench/measure/micro.py - the experiments whose rows are measured in slices

Purpose: which programs of bench/micro run for which contender, and which rows of them count.
Place: run.py runs them; slices.py measures.
"""

import tempfile

from contenders import OURS, Contender
from engine import Failed, macro
from setting import linked, ours_sampled, preloaded, rounds
from slices import Job, measure

BATCHES = ["batch/10", "batch/64", "batch/1000"]
PAIRS = [f"pair/{size}" for size in (16, 64, 512, 4096, 40000, 65536)]
MALLOC = [*PAIRS, "batch64/64", "batch64/512", "pair_mix", "batch64_mix", "live_64MiB"]
CALLS = ["realloc_in_place", "realloc_24_to_100", "calloc/64", "calloc/1024",
         "aligned_alloc/64/64", "aligned_alloc/64/512", "memalign/4096/4096",
         "posix_memalign/64/64", "posix_memalign/4096/4096", "malloc_usable_size", "strdup",
         "new_delete", "new_nothrow", "new_aligned", "new_array_mix", "new_and_malloc_mix",
         "map_of_strings", "list_of_strings"]
MIXTURES = ["cfrac", "espresso", "mixed", "fifo", "lifo", "mixed64"]
# Of a quick run.
FEW = ["pair/64", "pair/40000", "batch64/64", "pair_mix", "batch64_mix", "live_64MiB"]


# Pools of objects of one size: the program's name, and the package that it is built from.
POOLS = {"pool-dpdk": "libdpdk-dev", "pool-boost": "libboost-dev",
         "pool-boost-private": "libboost-dev"}


def object_pair(setting):
    """Pair and batches of 64-byte objects, ns an object: object cache, private array, pools, and
    peers linked statically."""
    programs = {name: setting.program("object_pair-" + name)
                for name in ("inline", "inline-unloadable", "inline-static", "cache", "array")}
    for path in sorted((setting.peers / "bin").glob("pair-*")):
        peer = path.name.removeprefix("pair-")
        if setting.chosen is None or peer in setting.chosen:
            programs["static-" + peer] = path
    for pool in POOLS:
        if setting.chosen is None or pool in setting.chosen:
            programs[pool] = setting.program("object_pair-" + pool)
            if not programs[pool].exists():
                setting.left_out[pool] = f"not built: needs {POOLS[pool]}"
    contenders = [Contender(name, extra={"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
                            if "tcmalloc" in name else {})
                  for name, path in programs.items() if path.exists()]
    for c in contenders:
        c.is_behind = lambda malloc_from: True          # linked statically: malloc may be theirs
    for c in preloaded(setting):
        if c.name != OURS:
            contenders.append(Contender("preloaded-" + c.name, c.library, c.extra))
            programs[contenders[-1].name] = setting.program("object_pair-malloc")
    return measure(setting, [Job(c, [programs[c.name]]) for c in contenders], ["pair", *BATCHES])


def of_malloc(setting, program, rows):
    """The rows of a program on each library that can be preloaded."""
    return measure(setting, [Job(c, [setting.program(program)]) for c in preloaded(setting)], rows)


def malloc_pair(setting):
    """malloc and free preloaded, ns an object: pairs, batches, mixes, and a live set of 64 MiB."""
    return of_malloc(setting, "malloc_pair", FEW if setting.few else MALLOC)


MICRO_SAMPLING = ["off", "on", "guard", "on-64K", "watched", "exact"]
SAMPLED = ["pair/64", "pair_mix", "batch64_mix", "live_64MiB"]


def sampling(setting):
    """Samples off, on, and by watched caches, preloaded, ns an object."""
    with tempfile.TemporaryDirectory() as folder:
        return measure(setting, [Job(c, [setting.program("malloc_pair")])
                                 for c in ours_sampled(setting, MICRO_SAMPLING, folder)], SAMPLED)


def hardened_pair(setting):
    """The same by STOOK_HARDEN, beside hardened_malloc."""
    ours, others = preloaded(setting, [OURS])[0], preloaded(setting, ["hardened"])
    hardened = [Contender(f"{ours.name} {how}", ours.library, {**ours.extra, "STOOK_HARDEN": how})
                for how in ("1", "all")]
    return measure(setting, [Job(c, [setting.program("malloc_pair")])
                             for c in [ours, *hardened, *others]], FEW)


def malloc_calls(setting):
    """realloc, calloc, aligned allocation, strdup, new and delete, containers, preloaded: each by
    itself."""
    return of_malloc(setting, "malloc_calls", CALLS)


def mixtures(setting):
    """malloc and free in six mixtures of sizes, preloaded, ns an object."""
    return of_malloc(setting, "mixtures", MIXTURES)


def heap_pair(setting):
    """Objects of a heap beside malloc, ns an object: pairs, mixes, batches."""
    names = {"heap_free": "stook-heap", "heap": "stook-heap, stook_free", "malloc": "stook-malloc"}
    return measure(setting, [Job(Contender(name), [setting.program("heap_pair"), f"calls={calls}"])
                             for calls, name in names.items()], ["pair", "mix", "batch"])


def heap_ends(setting):
    """What a heap takes, and what its end costs."""
    options = ["rounds=100", "objects=100000"] if setting.quick else []
    return rounds(setting, [Contender(OURS + "-cache")], setting.pairs,
                  lambda c: macro([setting.program("heap_ends"), *options], c))


def bulk(setting):
    """Bulk calls of an object cache beside storing pointers, ns an object."""
    kinds = ["warm_alloc", "store_alloc", "warm_both", "store_pointers"] + \
        ([] if setting.few else ["cold_alloc", "cold_alloc_random"])
    rows = [f"{kind}/size:{size}/batch:{batch}" for kind in kinds for size, batch in SIZES]
    return measure(setting, [Job(c, [setting.program("bulk")]) for c in linked(setting, "cache")],
                   rows)


# Of bulk: bytes of an object, objects of a call.
SIZES = ((16, 256), (32, 128), (64, 64), (128, 32), (256, 32), (512, 32))
SHOWN = {
    "malloc_pair": ["pair/64", "pair/512", "pair/4096", "pair/40000", "pair/65536", "batch64/64",
                    "pair_mix", "batch64_mix", "batch64_mix held_KiB", "live_64MiB",
                    "live_64MiB held_KiB"],
    "object_pair": ["pair", *BATCHES, "batch/1000 cached_KiB", "batch/1000 resident_KiB"],
    "heap_pair": ["pair", "mix", "batch"],
}
ALL = {e.__name__: e for e in (object_pair, malloc_pair, sampling, hardened_pair, malloc_calls,
                                heap_pair, heap_ends, mixtures, bulk)}
