"""
bench/tables/tables_locality.py - what sheaves were said to lose

Purpose: pages under 1,000 successive allocations, over time; slabs that cached objects keep; what
stays after a spike was freed in random order: for caches without sheaves, with sheaves of 32, as
they come, and for each malloc.
Place: run.py prints by way of tables.PRINTED.
"""

from interval import summary

COLUMNS = (("touched_1", "pages, step 1"), ("touched_10", "step 10"), ("touched_100", "step 100"),
           ("packed", "packed"), ("live_KiB", "alive, KiB"), ("left_KiB", "left, KiB"),
           ("pinned_slabs", "slabs left"), ("cached", "objects cached"))


def print_locality(table, say, print_table):
    sizes = dict.fromkeys(key.rpartition(" ")[0] for answers in table.values() for key in answers)
    for size in sizes:
        rows = [["", *(text for _, text in COLUMNS)]]
        for name, answers in table.items():
            found = [summary(answers.get(f"{size} {metric}", [])) for metric, _ in COLUMNS]
            rows.append([name] + [f"{s['median']:,.0f}" if s else "-" for s in found])
        say(f"  objects of {size}; half of them freed in random order in each step; pages of 4 KiB "
            "under the next 1,000 allocations")
        print_table(rows, len(rows[0]))


PRINTED = {"locality": print_locality}
