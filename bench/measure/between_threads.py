"""
bench/measure/between_threads.py - experiments of several threads, or processes

Purpose: a barn that several threads share, objects that one thread allocates and another frees, and
will-it-scale's two for malloc.
Place: run.py runs them.
"""

from contenders import OURS, Contender, name_of_build
from engine import Failed, macro
from setting import cells, preloaded, rounds


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


SHOWN = {
    "remote": ["objects_per_cpu_us", "objects_per_us"] +
              [f"{n} in turn {what}" for n in HANDED for what in ("producer_ns", "consumer_ns")] +
              [f"{n}, {c} % {what}" for n, c in EXCHANGES
               for what in ("objects_per_cpu_us", "again_percent")],
    "one_side": [f"{cell} {what}" for cell in ONE_SIDE_CELLS
                 for what in ("alloc_ns", "free_ns", "one_by_one")],
    "prodcons": ["64 objects_per_cpu_us", "64 objects_per_us", "64 resident_KiB",
                 "mix objects_per_cpu_us", "mix objects_per_us", "mix resident_KiB"],
}
ALL = {e.__name__: e for e in (barn, remote, one_side, malloc1, malloc2, prodcons)}
