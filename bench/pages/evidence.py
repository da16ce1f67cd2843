"""
bench/pages/evidence.py - what the page of results shows of one run

Purpose: the rows that a reader looks for, in words of a reader, time and memory side by side; what
Stook loses, whatever row it is in; how it stands against each single peer; which rows are known
badly.
Place: report.py puts it into Markdown, page.py into HTML.
"""

import workloads
from contenders import OURS
from interval import geometric_mean, has_interval
from text import number

# (experiment, cell, with what it is against where several are): what it is. The first workload of
# that name counts.
ROWS = {
    ("object_pair", "pair"): "an object cache, inlined, beside malloc: a pair of 64 B",
    ("object_pair", "batch/64"): "an object cache, inlined, beside malloc: batches of 64",
    ("malloc_pair", "pair/64"): "malloc and free, 64 B",
    ("malloc_pair", "pair_mix"): "malloc and free, mixed sizes",
    ("malloc_pair", "batch64_mix"): "batches of 64, mixed sizes",
    ("malloc_pair", "live_64MiB"): "64 MiB alive, replaced at random",
    ("malloc_calls", "realloc_24_to_100"): "a buffer that grows (realloc)",
    ("malloc_calls", "map_of_strings"): "C++: a map of strings",
    ("mixtures", "espresso"): "bursts of small sets (espresso)",
    ("mixtures", "cfrac"): "long numbers (cfrac)",
    ("prodcons", "64"): "one thread allocates, another frees",
    ("pattern_rows", "larson/2"): "a server's objects change hands (larson)",
    ("pattern_rows", "xmalloc/2"): "batches freed by another thread (xmalloc)",
    ("pattern_rows", "mstress/2"): "threads that live shortly (mstress)",
    ("pattern_rows", "alloc_test/1"): "100,000 entries, sizes by a power law (alloc_test)",
    ("pattern_rows", "malloc_large/1"): "8 large objects (malloc_large)",
    ("random_order", "64 B x 100,000 random"): "100,000 objects freed in random order",
    ("rcu", "free (against a call_rcu for each object)"):
        "frees that wait for RCU readers, beside a call_rcu for each object",
    ("rcu", "free (against arrays handed to call_rcu)"):
        "frees that wait for RCU readers, beside arrays handed to call_rcu",
    ("maple_map", "100,000 ranges"): "a lookup among 100,000 ranges, beside other maps",
}
# Eight figures for README, with losses: (experiment, cell, which side).
README_ROWS = [
    ("object_pair", "pair", "time"), ("malloc_pair", "pair/64", "time"),
    ("malloc_pair", "live_64MiB", "time"), ("prodcons", "64", "time"),
    ("rcu", "free (against a call_rcu for each object)", "time"),
    ("rcu", "free (against arrays handed to call_rcu)", "time"),
    ("programs", "python", "time"), ("programs", "sqlite", "memory"),
]
HEAD = ["", "time", "best peer", "ratio", "95 %", "", "memory", "best peer", "ratio", "95 %", ""]
UNITS = {"KiB": (1 / 1024, "MiB"), "by what is asked for": (1, "x")}


def key(w):
    whole = (w.experiment, w.short_name())
    return whole if whole in ROWS else (w.experiment, w.cell)


def title(w):
    return ROWS.get(key(w), w.cell if w.experiment == "programs" else w.name())


def first_of_each(found):
    """{key: workload}"""
    first = {}
    for w in found:
        first.setdefault(key(w), w)
    return first


def chosen(found):
    """The workloads of ROWS, in their order."""
    first = first_of_each(found)
    return [first[row] for row in ROWS if row in first]


def of(found, experiment):
    return [w for w in found if w.experiment == experiment]


def shown(found):
    """All that have a row on the page."""
    return of(found, "programs") + chosen(found) + of(found, "fleet_mixes")


def amount(value, unit):
    by, unit = UNITS.get(unit, (1, unit))
    return f"{number(value * by)} {unit}"


def cells(side):
    if side is None:
        return [""] * 5
    low, high = side.cost_bounds()
    return [amount(side.ours["median"], side.unit),
            f"{side.rival} {amount(side.theirs['median'], side.unit)}", f"{side.cost():.2f}",
            f"{low:.2f} to {high:.2f}" if has_interval(side.ratio) else "",
            side.says]


def rows(some):
    return [HEAD] + [[title(w), *cells(w.time), *cells(w.memory)] for w in some]


def named(some, which, says):
    """"NAME 1.12, ..." of the sides that say so, the largest difference first."""
    found = sorted(((w, s) for w, s in workloads.sides(some, which) if s.says == says),
                   key=lambda pair: pair[1].cost(), reverse=says == workloads.BEHIND)
    return "; ".join(f"{title(w)} {s.cost():.2f} ({s.rival})" for w, s in found)


def against(rival, results):
    """The workloads with one peer as the only rival."""
    for rule in workloads.RULES:
        alone = workloads.Rule(rule.experiment, rule.time, rule.memory, rule.unit,
                               rule.memory_unit, rule.ours,
                               lambda name, rule=rule: rule.rivals(name) and
                               name.rpartition("preloaded-")[2] == rival, rule.higher, rule.what,
                               rule.floor)
        yield from workloads.of_rule(alone, results["results"].get(rule.experiment, {}))


def peers(results):
    """Those that ran preloaded."""
    return [name for name in results.get("peers", {}) if name != OURS]


def single_peers(results):
    """A row for each peer: geometric means over the page's rows that both have, and in how many
    Stook is ahead and behind."""
    table = [["beside", "time", "rows", "ahead", "behind", "memory", "rows", "ahead", "behind"]]
    for peer in peers(results):
        found, line = shown(list(against(peer, results))), [peer]
        for which in ("time", "memory"):
            sides = [side for _, side in workloads.sides(found, which)]
            mean = geometric_mean([s.cost() for s in sides])
            line += [f"{mean:.2f}" if mean else "", str(len(sides)),
                     *(str(sum(s.says == word for s in sides))
                       for word in (workloads.AHEAD, workloads.BEHIND))]
        table.append(line)
    return table


def readme_rows(results):
    """(what, Stook, best peer, ratio with interval, experiment)"""
    found = first_of_each(workloads.all_of(results))
    for experiment, cell, which in README_ROWS:
        w = found.get((experiment, cell))
        if w and (side := getattr(w, which)):
            ours, theirs, ratio, interval, _ = cells(side)
            what = title(w) + (f", {'peak memory' if which == 'memory' else 'processor time'}"
                               if experiment == "programs" else "")
            yield [what, ours, theirs, f"{ratio} ({interval or side.says})", f"`{experiment}`"]
