"""
bench/tables/tables.py - tables 1.1 and 1.2 in the layout of the kernel's

Purpose: the two tables that the kernel work published, with what was measured here in the kernel's
places, its gain beside each of ours, and whether that is reached. A gain is 1 - ours / theirs of
neighbouring runs, so it is given with the 95 % interval of its median (interval.py); it is reached
when the worse end of that interval reaches it, and unclear with fewer than six pairs.
Place: run.py prints them; figures.py takes the kernel's gains from here.
"""

import tables_aspace
import tables_contention
import tables_locality
import tables_memory
from interval import common, has_interval, ratios, summary

# Per cent, from the kernel work: 64-byte objects, capacity 32; "none" is SLUB's older front end.
GAINS_11 = {"1": 17.2, "10": 15.3, "100": 31.0, "1000": 30.2, "10 shuffled": 12.6,
            "100 shuffled": 28.6, "1000 shuffled": 6.3}
GAINS_11_ACCOUNTED = {"1": 11.5, "10": 11.0, "100": 24.6, "1000": 24.4, "10 shuffled": 11.6,
                      "100 shuffled": 25.6, "1000 shuffled": 8.7}
# Per cent that the sheaf code costs a cache without sheaves.
UNUSED_11 = 2.4
DROPS_12 = {(16, "plain"): 54.4, (32, "plain"): 60.2, (64, "plain"): 62.9,
            (128, "plain"): 71.3, (256, "plain"): 74.0, (512, "plain"): 71.4,
            (16, "random"): 62.4, (32, "random"): 64.2, (64, "random"): 68.7,
            (128, "random"): 68.4, (256, "random"): 73.2, (512, "random"): 73.6}
# Later, with one general iterator: ns an object, plain and in random order; before both: the first.
BEFORE_12 = {16: (5.29, 9.32), 32: (7.65, 11.68), 64: (11.07, 16.69), 128: (19.95, 23.41),
             256: (24.31, 29.80), 512: (22.48, 30.38)}
LATER_12 = {16: (3.12, 4.36), 32: (3.79, 4.93), 64: (4.83, 6.14), 128: (6.43, 8.35),
            256: (6.97, 9.44), 512: (7.12, 9.21)}
ITERATOR_12 = {(size, order): round(100 * (1 - LATER_12[size][i] / BEFORE_12[size][i]), 1)
               for size in BEFORE_12 for i, order in enumerate(("plain", "random"))}
BATCHES_12 = {16: 256, 32: 128, 64: 64, 128: 32, 256: 32, 512: 32}


class Cell:
    """Ours beside theirs: medians, and the gain in per cent with its interval."""

    def __init__(self, table, ours, theirs, metric):
        ours, theirs = common(table.get(ours, {}).get(metric, []),
                              table.get(theirs, {}).get(metric, []))
        pairs = ratios(ours, theirs)
        self.known = bool(pairs)
        if self.known:
            self.ours, self.theirs = summary(ours)["median"], summary(theirs)["median"]
            r = summary(pairs)
            self.enough = has_interval(r)
            self.gain, self.low, self.high = (100 * (1 - r[k]) for k in ("median", "high", "low"))

    def gain_text(self):
        return self.per_cent(self.gain, self.low, self.high) if self.known else "-"

    def cost_text(self):
        return self.per_cent(-self.gain, -self.high, -self.low) if self.known else "-"

    def per_cent(self, middle, low, high):
        return f"{middle:.1f} %" + (f" ({low:.1f} .. {high:.1f})" if self.enough else "")

    def verdict(self, least):
        if not self.known:
            return "-"
        if not self.enough:
            return "unclear"
        return "reached" if self.low >= least else "unclear" if self.gain >= least else "missed"


def cycles(value):
    return f"{value:,.0f}"


def rows_11(table, none, ours, gains, suffix=""):
    rows = []
    for batch, kernel in gains.items():
        cell = Cell(table, ours, none, batch + suffix)
        rows.append([batch,
                     f"{cycles(cell.theirs)} -> {cycles(cell.ours)}" if cell.known else "-",
                     cell.gain_text(), f"{kernel} %" if none == "none-cas" else "no loss",
                     cell.verdict(kernel if none == "none-cas" else 0)])
    return rows


def check_11(table, say):
    """The rival must be worth beating: no slower than the C library's malloc."""
    libc = summary(table.get("glibc", {}).get("1", []))
    if not libc:
        return
    for none in ("none-rseq", "none-cas"):
        cell = Cell(table, none, "glibc", "1")
        if not cell.known:
            continue
        holds = cell.ours <= cell.theirs
        say(f"  check: {none} takes {cell.ours / 1e6:.1f} cycles a pair, "
            f"glibc's malloc and free {cell.theirs / 1e6:.1f}: "
            + ("no slower, the table holds" if holds else "slower"))
        one = summary(table[none].get("instruction", []))
        if not holds and none == "none-cas" and one:
            say(f"         its two compare-and-swaps alone take {2 * one['median']:.1f} "
                f"(one: {one['median']:.1f}, "
                "measured in the same processes): no front end of that form can be faster here")
        elif not holds:
            say("         THE TABLE IS VOID: the rival is too weak")


def print_unused(table, say, print_table):
    """What the sheaf code costs a cache without sheaves."""
    if "no-sheaves" not in table or "slabs-alone" not in table:
        return
    rows = [["B", "slabs alone -> no sheaves, cycles", "cost (95 %)", "at most", ""]]
    for batch in GAINS_11:
        cell = Cell(table, "no-sheaves", "slabs-alone", batch)
        rows.append([batch, f"{cycles(cell.theirs)} -> {cycles(cell.ours)}" if cell.known else "-",
                     cell.cost_text(), f"{UNUSED_11} %", cell.verdict(-UNUSED_11)])
    say("  a cache without sheaves beside the same slabs without any code for sheaves")
    print_table(rows, 5)


def print_11(table, say, print_table):
    head = ["B", "none -> sheaves, cycles", "gain (95 %)", "to reach", ""]
    for none, form in (("none-cas", "double-word compare-and-swap, as the kernel had it"),
                       ("none-rseq", "section, the stronger rival: not to lose is asked")):
        for ours, text in (("sheaves-32", "sheaves of 32, as published"),
                           ("sheaves", "sheaves as they come, which grow")):
            if ours not in table or none not in table:
                continue
            say(f"  {text}; none popped by a {form}; plain")
            print_table([head] + rows_11(table, none, ours, GAINS_11), 5)
            if any(m.endswith(" accounted") for m in table[ours]):
                say("  the same, accounted")
                print_table([head] + rows_11(table, none, ours, GAINS_11_ACCOUNTED, " accounted"),
                            5)
    if not any(m.endswith(" accounted") for answers in table.values() for m in answers):
        say("  accounted: - (this build of the library has no accounting groups)")
    print_unused(table, say, print_table)
    check_11(table, say)


def print_12(table, say, print_table):
    head = ["size / batch", "before -> after", "drop (95 %)", "kernel", "", "general iterator", ""]
    for order in ("plain", "random"):
        rows = [head]
        for size, batch in BATCHES_12.items():
            cell = Cell(table, "after", "before", f"{size} {order}")
            first, later = DROPS_12[size, order], ITERATOR_12[size, order]
            rows.append([f"{size} / {batch}",
                         f"{cell.theirs:.2f} -> {cell.ours:.2f}" if cell.known else "-",
                         cell.gain_text(), f"{first} %", cell.verdict(first), f"{later} %",
                         cell.verdict(later)])
        say(f"  ns an object, {'in random order' if order == 'random' else order}")
        print_table(rows, len(head))


PRINTED = {"table11": print_11, "table12": print_12, **tables_aspace.PRINTED,
           **tables_contention.PRINTED, **tables_locality.PRINTED, **tables_memory.PRINTED}
