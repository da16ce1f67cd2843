"""
bench/tables/tables_aspace.py - tables 1.3 to 1.5 of the kernel work, and the maple tree beside
ordered maps

Purpose: what bench/aspace and bench/micro/maple_map.cc measured, in the kernel's places.
Place: run.py prints them by way of tables.PRINTED.
"""

from interval import ratios, summary

FRONTS = ["slabs", "cpu-slab-cas", "cpu-slab", "array", "double", "sheaves"]
SPINNING = "sheaves, spinning barn"     # bench/aspace/spin_stack.h
# The kernel's: before sheaves, sheaves above per-CPU slabs (cached twice), without them.
PUBLISHED_FRONTS = ["cpu-slab-cas", "double", "sheaves"]
THREADS = [1, 2, 4, 8, 16]
PROCESSES = [1, 2, 8, 16]
# Operations a second and process, and what the double cache and sheaves alone gained (192 CPUs).
KERNEL_MMAP2 = {"slabs": "-", "cpu-slab-cas": "224,832", "double": "300,541 (+33.7 %)",
                "sheaves": "220,009 (-2.1 %)"}
# Stage: front end, and enum front_preallocation of bench/aspace/front.h. On Stook's own sheaves:
STAGES = {
    "counters only": ("slabs", 1),
    "array on the node cache": ("sheaves", 1),
    "bulk calls turned into loops": ("sheaves", 2),
    "preallocation replaced by prefill": ("sheaves", 0),
    "prefill of the CPU's own sheaf": ("sheaves", 3),
}
# On a slab for each CPU, and arrays above it, as the kernel had them.
OLDER_STAGES = {
    "older: counters only": ("cpu-slab", 1),
    "older: array on the node cache": ("double", 1),
    "older: bulk calls turned into loops": ("double", 2),
    "older: preallocation replaced by prefill": ("double", 0),
}
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
    "100,000 ranges, stored in order": ["n=100000", "order=1", "beside=0"],
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


def print_pairs(table, steps, what, say, print_table):
    """Steps: numbers of threads, or of processes."""
    rows = [["front end"] + [f"{t} {what}" for t in steps] +
            [f"sheaves gain, {t} {what}" for t in steps[:2]] +
            ["resident MiB", "kernel, a process"]]
    for front in FRONTS:
        if front not in table:
            continue
        gains = ["", ""] if front == "sheaves" else [
            against(table, "sheaves", front, f"{t} pairs") for t in steps[:2]]
        rows.append([front] + [number(median(table, front, f"{t} pairs")) for t in steps] +
                    gains + [resident(table, front), KERNEL_MMAP2.get(front, "-")])
    print_table(rows, len(rows[0]))


def print_mmap2(table, say, print_table):
    say("  maps and unmaps of 128 MiB, pairs a second and thread, "
        "each thread with an address space of its own")
    print_pairs(table, THREADS, "threads", say, print_table)


def print_mmap2_processes(table, say, print_table):
    say("  the same by processes, pairs a second and process; cpu-slab-cas: before sheaves; "
        "double: sheaves above per-CPU slabs; sheaves: without them")
    print_pairs(table, PROCESSES, "processes", say, print_table)


def print_phone(table, say, print_table):
    rows = [["front end", "loops a second", "sheaves gain (kernel: +1.8 %)"]]
    for front in PUBLISHED_FRONTS:
        rows.append([front, number(median(table, front, "1 loops")),
                     "" if front == "sheaves" else against(table, "sheaves", front, "1 loops")])
    say("  one thread maps a page, reads it, unmaps it")
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
    for front in table:
        rows.append([front] + [number(median(table, front, f"{t} faults")) for t in THREADS] +
                    [flatness(table, front), resident(table, front)])
    say("  page faults a second and thread, all threads in one address space "
        "(kernel, 1 to 256 threads of an EPYC: 2,410,188 -> 2,151,474)")
    print_table(rows, len(rows[0]))
    for front in ("sheaves", SPINNING):
        retries = [median(table, front, f"{t} retries_per_1000_barn_calls") for t in THREADS]
        retries = [r for r in retries if r is not None]
        if retries:
            say(f"  {front}: of 1,000 gets and puts at the barn "
                f"{'waited' if front == SPINNING else 'were tried again'} at most "
                f"{max(retries):,.1f}")


def print_page_fault3_processes(table, say, print_table):
    rows = [["front end"] + [f"{n} processes" for n in PROCESSES]]
    for front in table:
        rows.append([front] + [number(median(table, front, f"{n} faults")) for n in PROCESSES])
    say("  page faults a second and process, each with an address space of its own")
    print_table(rows, len(rows[0]))


def with_shares(table):
    """node_counts with two more figures of each stage: which share of the nodes came from sheaves,
    and how many there were, by those of the stage of loops."""
    def added(stage):
        taken, alone, loops = (median(table, *of) for of in (
            (stage, "taken"), (stage, "taken_alone"), ("bulk calls turned into loops", "taken")))
        shares = {}
        if taken is not None and alone is not None and taken + alone:
            shares["from_sheaves"] = [taken / (taken + alone)]
        if taken is not None and loops:
            shares["of_loops"] = [taken / loops]
        return shares

    return {stage: {**answers, **added(stage)} for stage, answers in (table or {}).items()}


def print_stages(table, say, print_table):
    """Behind sheaves and arrays, objects come and go in batches; those count at the sheaf or array
    that hands them out, and once more here."""
    head = ["stage", "from sheaves", "of these prefilled", "one by one from slabs",
            "refilled from slabs", "given to sheaves", "one by one to slabs", "flushed to slabs",
            "kernel: from the array + fast + slow", "given: array + fast + slow"]
    for stages, text in ((STAGES, "on Stook, sheaves of 32"),
                         (OLDER_STAGES, "on a slab for each CPU, and arrays of 32 above it")):
        rows = [head]
        for stage in stages:
            if stage not in table:
                continue
            n = {m: median(table, stage, m) for m in table[stage]}
            older = n.get("taken_alone") is None or stage in OLDER_STAGES
            lone_in = None if older else n["taken_alone"]
            lone_out = None if older else n["given_alone"]
            k = KERNEL_STAGES.get(stage.removeprefix("older: "))
            rows.append([stage, number(n["taken"]), "-" if older else number(n["lent"]),
                         number(lone_in), number(n["taken_behind"] - (lone_in or 0)),
                         number(n["given"]), number(lone_out),
                         number(n["given_behind"] - (lone_out or 0)),
                         *(" + ".join(f"{v:,}" for v in part) if k else "-"
                           for part in ((k or ())[:3], (k or ())[3:]))])
        if len(rows) > 1:
            say(f"  tree nodes while one recorded program's calls are replayed once, {text}")
            print_table(rows, len(head))
    shares = with_shares(table)
    for stage in ("preallocation replaced by prefill", "prefill of the CPU's own sheaf"):
        if of_loops := median(shares, stage, "of_loops"):
            say(f"  {stage}: {of_loops:.2f} of the allocations of loops (kernel: 0.27)")


def figure(value):
    return "-" if value is None else f"{value:,.3g}" if value < 1 else f"{value:,.1f}"


def print_maple_map(table, say, print_table):
    """Columns of times have the ratio to the tree in the same form: with RCU for btree and std,
    too, which have none."""
    for kind in MAPLE_KINDS:
        if median(table, "maple", f"{kind} store_ns") is None:
            continue
        say(f"  {kind}")
        rows = [["map", "store, ns", "replace, ns", "lookup, ns", "lookup against the tree",
                 "the same, external lock", "a step up, ns", "down, ns", "lowest room, ns",
                 "highest room, ns", "bytes an entry", "in nodes", "cached", "slack",
                 "lookups a us beside a writer", "its writes a us"]]
        for name in table:
            mine = name.startswith("maple")
            cells = {m: figure(median(table, name, f"{kind} {m}")) for m in
                     ("store_ns", "replace_ns", "lookup_ns", "up_ns", "down_ns", "room_ns",
                      "room_rev_ns", "bytes", "node_bytes", "cached_bytes", "slack_bytes",
                      "beside_per_us", "beside_writes_per_us")}
            rows.append([name, cells["store_ns"], cells["replace_ns"], cells["lookup_ns"]] +
                        ["" if mine else against(table, name, tree, f"{kind} lookup_ns")
                         for tree in ("maple", "maple-external")] +
                        [cells[m] for m in
                         ("up_ns", "down_ns", "room_ns", "room_rev_ns", "bytes")] +
                        [cells[m] if mine else ""
                         for m in ("node_bytes", "cached_bytes", "slack_bytes")] +
                        [cells["beside_per_us"], cells["beside_writes_per_us"]])
        print_table(rows, len(rows[0]))


PRINTED = {"maple_map": print_maple_map, "mmap2": print_mmap2, "phone": print_phone,
           "mmap2_processes": print_mmap2_processes, "page_fault3": print_page_fault3,
           "page_fault3_processes": print_page_fault3_processes,
           "page_fault3_alloc": print_page_fault3, "node_counts": print_stages}
