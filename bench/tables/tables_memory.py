"""
bench/tables/tables_memory.py - tables of what large live sets cost

Purpose: random_order runs many cells (a size, a number of objects, an order); replay and sizes
have a cell for each recorded program. For each cell and contender there are times and resident
memory. The ratio is that of Stook's malloc to the contender in neighbouring runs, with the 95 %
interval of its median (interval.py).
Place: tables.py hands these to run.py.
"""

from contenders import OURS
from interval import beside, standing, summary

COLUMNS_ORDER = (("alloc_ns", "alloc, ns"), ("free_ns", "free, ns"),
                 ("again_ns", "allocate again, ns"), ("left_MiB", "left, MiB"))
COLUMNS_PROGRAM = (("rounding_percent", "rounding, %"), ("peak_KiB", "peak, KiB"),
                   ("end_KiB", "at the end, KiB"), ("ns_per_event", "ns an event"))


def figure(value):
    return "-" if value is None else f"{value:,.1f}"


def median(table, name, metric):
    """Of the rounds that Stook's malloc ran, too; where there are none, of all of this one's."""
    ours, theirs = (table.get(n, {}).get(metric, []) for n in (OURS, name))
    both = beside(ours, {name: theirs})
    s = both[name][1] if both else summary(theirs)
    return s and s["median"]


def against(table, name, metric):
    """Stook's ratio to this contender, and its interval; where rounds are missing, how many are
    there."""
    s = standing(*(table.get(n, {}).get(metric, []) for n in (OURS, name)))
    if not s or name == OURS:
        return ""
    of = f" {s['n']} of {s['rounds']} runs" if s["n"] < s["rounds"] else ""
    return f"{s['median']:.2f} ({s['low']:.2f} .. {s['high']:.2f})" + of


def cells_of(table, columns):
    """The cells in the order in which they ran."""
    suffixes = tuple(" " + metric for metric, _ in columns)
    cells = {}
    for answers in table.values():
        for key in answers:
            for suffix in suffixes:
                if key.endswith(suffix):
                    cells[key.removesuffix(suffix)] = None
    return list(cells)


def print_cells(table, columns, say, print_table):
    head = ["allocator"]
    for _, text in columns:
        head += [text, "Stook / it"]
    for cell in cells_of(table, columns):
        rows = [head]
        for name in table:
            if median(table, name, f"{cell} {columns[0][0]}") is None:
                continue
            row = [name]
            for metric, _ in columns:
                key = f"{cell} {metric}"
                row += [figure(median(table, name, key)), against(table, name, key)]
            rows.append(row)
        say(f"  {cell}")
        print_table(rows, len(head))


def print_random_order(table, say, print_table):
    print_cells(table, COLUMNS_ORDER, say, print_table)


def print_programs(table, say, print_table):
    say("  rounding: what malloc_usable_size has beyond what was asked for; headers are not in it")
    print_cells(table, COLUMNS_PROGRAM, say, print_table)


PRINTED = {"random_order": print_random_order, "replay": print_programs, "sizes": print_programs}
