"""
bench/tables_aspace.py - tables 1.3 to 1.5 of the kernel work, and the maple tree beside ordered
maps

Purpose: what bench/aspace and bench/micro/maple_map.cc measured, in the kernel's places.
Place: run.py prints them by way of tables.PRINTED.
"""

from interval import ratios, summary

FRONTS = ["slabs", "cpu-slab-cas", "cpu-slab", "array", "double", "sheaves"]
THREADS = [1, 2, 4, 8, 16]
# Operations a second and process, and what the double cache and sheaves alone gained (192 CPUs).
KERNEL_MMAP2 = {"slabs": "-", "cpu-slab-cas": "224,832", "double": "300,541 (+33.7 %)",
                "sheaves": "220,009 (-2.1 %)"}
STAGES = ["counters only", "array on the node cache", "bulk calls turned into loops",
          "preallocation replaced by prefill"]
KERNEL_STAGES = {  # taken from the array, at once, after a miss; given likewise
    "counters only": (0, 54842, 8142, 0, 32336, 23484),
    "array on the node cache": (11956, 40675, 7308, 12082, 23617, 17956),
    "bulk calls turned into loops": (54673, 4491, 737, 54759, 332, 4723),
    "preallocation replaced by prefill": (15036, 4651, 656, 15102, 299, 4835),
}

# What is measured of the maple tree and other maps: options of bench/micro/maple_map.cc.
MAPLE_KINDS = {
    "1,000 ranges": ["n=1000"],
    "100,000 ranges": ["n=100000"],
    "100,000 ranges with gaps between them": ["n=100000", "gaps=1"],
    "10 million ranges": ["n=10000000", "beside=0"],
    "10 million ranges, stored in order": ["n=10000000", "order=1", "beside=0"],
}


def median(table, contender, metric):
    s = summary(table.get(contender, {}).get(metric, []))
    return s["median"] if s else None


def number(value):
    return "-" if value is None else f"{value:,.0f}"


def against(table, ours, theirs, metric):
    """Gain in per cent of neighbouring runs, with the interval of its median."""
    r = summary(ratios(table.get(ours, {}).get(metric, []), table.get(theirs, {}).get(metric, [])))
    return "-" if not r else (f"{100 * (r['median'] - 1):+.1f} % "
                              f"({100 * (r['low'] - 1):+.1f} .. {100 * (r['high'] - 1):+.1f})")


def resident(table, front):
    """MiB with the fewest and the most threads that were measured."""
    kib = [k for k in (median(table, front, f"{t} resident_kib") for t in THREADS) if k]
    return f"{kib[0] / 1024:,.0f} .. {kib[-1] / 1024:,.0f}" if kib else "-"


def print_mmap2(table, say, print_table):
    rows = [["front end"] + [f"{t} threads" for t in THREADS] +
            ["sheaves gain, 1 thread", "2 threads", "resident MiB", "kernel, a process"]]
    for front in FRONTS:
        gains = ["", ""] if front == "sheaves" else [
            against(table, "sheaves", front, f"{t} pairs") for t in (1, 2)]
        rows.append([front] + [number(median(table, front, f"{t} pairs")) for t in THREADS] +
                    gains + [resident(table, front), KERNEL_MMAP2.get(front, "-")])
    say("  maps and unmaps of 128 MiB, pairs a second and thread, "
        "each thread with an address space of its own")
    print_table(rows, len(rows[0]))


def flatness(table, front):
    """What a thread loses when there are two, in per cent."""
    r = summary(ratios(table.get(front, {}).get("2 faults", []),
                       table.get(front, {}).get("1 faults", [])))
    return "-" if not r else (f"{100 * (r['median'] - 1):+.1f} % "
                              f"({100 * (r['low'] - 1):+.1f} .. {100 * (r['high'] - 1):+.1f})")


def print_page_fault3(table, say, print_table):
    rows = [["front end"] + [f"{t} threads" for t in THREADS] +
            ["a thread, 1 to 2", "resident MiB"]]
    for front in FRONTS:
        rows.append([front] + [number(median(table, front, f"{t} faults")) for t in THREADS] +
                    [flatness(table, front), resident(table, front)])
    say("  page faults a second and thread, all threads in one address space "
        "(kernel, 1 to 256 threads of an EPYC: 2,410,188 -> 2,151,474)")
    print_table(rows, len(rows[0]))
    retries = [median(table, "sheaves", f"{t} retries_per_1000_barn_calls") for t in THREADS]
    if all(r is not None for r in retries):
        say(f"  of 1,000 gets and puts at the barn were tried again at most {max(retries):,.1f}")


def print_stages(table, say, print_table):
    rows = [["stage", "nodes allocated", "from the array", "from behind", "given to the array",
             "to behind", "kernel: array + fast + slow"]]
    for stage in STAGES:
        taken, behind, given, given_behind = (median(table, stage, m) for m in
                                              ("taken", "taken_behind", "given", "given_behind"))
        if taken is None:
            continue
        k = KERNEL_STAGES[stage]
        # Behind an array, objects come and go by halves of it; they count once, where the user got
        # them.
        rows.append([stage, number(taken or behind), number(taken), number(behind), number(given),
                     number(given_behind),
                     f"{sum(k[:3]):,} = {k[0]:,} + {k[1]:,} + {k[2]:,}"])
    say("  tree nodes allocated while one recorded program's calls are replayed once")
    print_table(rows, len(rows[0]))
    worst, exact = (median(table, s, "taken") for s in STAGES[2:])
    if worst and exact:
        say(f"  with prefill {exact / worst:.2f} of the allocations of "
            f"worst-case preallocation (to reach: a third)")


def figure(value):
    return "-" if value is None else f"{value:,.3g}" if value < 1 else f"{value:,.1f}"


def print_maple_map(table, say, print_table):
    """Columns of times have the ratio to the tree in the same form: with RCU for btree and std,
    too, which have none."""
    maps = [name for name in ("maple", "maple-external", "std", "btree", "btreemap", "rangemap")
            if name in table]
    for kind in MAPLE_KINDS:
        if median(table, "maple", f"{kind} store_ns") is None:
            continue
        say(f"  {kind}")
        rows = [["map", "store, ns", "replace, ns", "lookup, ns", "lookup against the tree",
                 "the same, external lock", "bytes an entry", "in nodes", "cached", "slack",
                 "lookups a us beside a writer", "its writes a us"]]
        for name in maps:
            mine = name.startswith("maple")
            cells = {m: figure(median(table, name, f"{kind} {m}")) for m in
                     ("store_ns", "replace_ns", "lookup_ns", "bytes", "node_bytes", "cached_bytes",
                      "slack_bytes", "beside_per_us", "beside_writes_per_us")}
            rows.append([name, cells["store_ns"], cells["replace_ns"], cells["lookup_ns"]] +
                        ["" if mine else against(table, name, tree, f"{kind} lookup_ns")
                         for tree in ("maple", "maple-external")] +
                        [cells["bytes"]] +
                        [cells[m] if mine else ""
                         for m in ("node_bytes", "cached_bytes", "slack_bytes")] +
                        [cells["beside_per_us"], cells["beside_writes_per_us"]])
        print_table(rows, len(rows[0]))


PRINTED = {"maple_map": print_maple_map, "mmap2": print_mmap2, "page_fault3": print_page_fault3,
           "node_counts": print_stages}
